//! Reports: what came of a run, as callers read it.
//!
//! Each backend assembles a report from what it measured; [`finished`] is the last step of all of them.

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
mod unranked;

/// Timed launches whose outputs are verified, or all if there are fewer: a kernel that leaves out a tenth
/// of its launches' work passes less than once in 1000 times, 0.9⁶⁶ < 0.001.
pub(crate) const AUDITS: u32 = 66;

/// A kernel that ran, or tried to, and what came of it.
pub(crate) struct Ran {
    pub request: EvaluateRequest,
    pub prepared: Prepared,
    pub outcome: RunOutcome<EvaluatedRun>,
    pub tool_runs: ToolRuns,
    pub device: DeviceInfo,
}

/// What is known of a kernel beside its run.
#[derive(Default)]
pub(crate) struct Additions {
    /// How its configuration was chosen.
    pub(crate) tuning: Option<TuningReport>,
    /// What it had compiled while it ran.
    pub(crate) extensions: Vec<TorchExtension>,
    /// Why nothing collected hardware metrics of it.
    pub(crate) unprofiled: Option<String>,
}

impl Additions {
    /// How a kernel's configuration was chosen, and nothing else.
    pub(crate) fn tuned(tuning: Option<TuningReport>) -> Self {
        Self { tuning, ..Self::default() }
    }
}

/// Completes the report of one evaluation, which took `total_ms` in all: it comes to its verdict, and is
/// counted for the operator. `allow_weak` is the request's.
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
