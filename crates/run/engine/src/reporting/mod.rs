//! Reports on runs, in the form that callers read.
//!
//! Each backend assembles a report from its measurements. [`finished`] is the last step for all
//! backends.

use crate::prepare::Prepared;
use crate::profiling::tool_runs::ToolRuns;
use warpgauge_contract::EvaluateRequest;
use warpgauge_model::DeviceInfo;
use warpgauge_report::{Availability, EvaluateResponse, TorchExtension, TuningReport};
use warpgauge_worker::protocol::{EvaluatedRun, RunOutcome};

pub(crate) mod assemble;
pub(crate) mod kept_outputs;
mod measured;
mod recorded;
mod steps;
mod unranked;

/// Number of timed launches whose outputs are verified. If there are fewer launches, all are
/// verified. A kernel that omits the work of a tenth of its launches passes less than once in 1000
/// times: 0.9⁶⁶ < 0.001.
pub(crate) const AUDITS: u32 = 66;

/// A kernel that ran or failed to run, and the outcome of its run.
pub(crate) struct Ran {
    pub request: EvaluateRequest,
    pub prepared: Prepared,
    pub outcome: RunOutcome<EvaluatedRun>,
    pub tool_runs: ToolRuns,
    pub device: DeviceInfo,
}

/// Facts about a kernel that are not results of its run.
#[derive(Default)]
pub(crate) struct Additions {
    /// How the kernel's configuration was chosen.
    pub(crate) tuning: Option<TuningReport>,
    /// Extensions that were compiled for the kernel while it ran.
    pub(crate) extensions: Vec<TorchExtension>,
    /// Reason why there are no hardware metrics of the kernel.
    pub(crate) unprofiled: Option<String>,
}

impl Additions {
    /// Creates additions that contain only the choice of the kernel's configuration.
    pub(crate) fn tuned(tuning: Option<TuningReport>) -> Self {
        Self { tuning, ..Self::default() }
    }
}

/// Completes the report of an evaluation that took `total_ms` milliseconds in total. Sets the
/// verdict, and counts the evaluation in the telemetry. `allow_weak` comes from the request.
pub(crate) fn finished(
    mut report: EvaluateResponse,
    allow_weak: bool,
    total_ms: f64,
    additions: Additions,
) -> EvaluateResponse {
    let Additions { tuning, extensions, unprofiled } = additions;
    if let Some(tuning) = tuning {
        tuning.put_into(&mut report);
    }
    if let Some(torch) = &mut report.torch {
        torch.extensions = extensions;
    }
    if let Some(reason) = unprofiled {
        report.profile = Some(Availability { available: false, reason: Some(reason) });
    }
    report.timings.set_total(total_ms);
    report.set_verdict(allow_weak);
    recorded::evaluation(&report);
    report
}
