//! Runs of an evaluation's kernel under tools, after its timed run and on the same lease.

use std::time::Instant;

use crate::clock::ms;
use crate::host::Host;
use crate::prepare::Prepared;
use crate::profiling::profiled::{self, Profiled};
use crate::profiling::sanitized;
use crate::profiling::timeline;
use warpgauge_contract::EvaluateRequest;
use warpgauge_nsight::ToolFile;
use warpgauge_report::{SanitizeReport, TimelineReport};
use warpgauge_worker::Lease;
use warpgauge_worker::protocol::{EvaluatedRun, RunOutcome};

/// Results of the tools. Each tool has a separate run.
#[derive(Default)]
pub(crate) struct ToolRuns {
    /// Memory and race checks on a GPU, if requested.
    pub(crate) sanitize: Option<SanitizeReport>,
    /// Device metrics of a GPU, if requested.
    pub(crate) profiled: Option<Profiled>,
    /// Timeline of the GPU and the driver, if requested.
    pub(crate) timeline: Option<TimelineReport>,
    /// Files of the tools to store. They are in the job's directory.
    pub(crate) artifacts: Vec<ToolFile>,
    /// Wall-clock time that metrics and timeline took, in milliseconds.
    pub(crate) profile_ms: f64,
}

impl ToolRuns {
    /// Reads the device metrics that the request asks for.
    pub(crate) async fn profile(
        &mut self,
        host: &Host,
        lease: &mut Lease,
        request: &EvaluateRequest,
        prepared: &Prepared,
        outcome: &RunOutcome<EvaluatedRun>,
    ) {
        let start = Instant::now();
        let told = profiled::collect(host, lease, request, prepared, outcome).await;
        if let Some((profiled, artifacts)) = told {
            self.profiled = Some(profiled);
            self.artifacts.extend(artifacts);
            self.profile_ms += ms(start);
        }
    }
}

/// Runs the kernel again under the tools that the request asks for. The timed run is over, so
/// failures here do not affect its results.
pub(crate) async fn run(
    host: &Host,
    lease: &mut Lease,
    request: &EvaluateRequest,
    prepared: &Prepared,
    outcome: &RunOutcome<EvaluatedRun>,
) -> ToolRuns {
    let mut tool_runs = ToolRuns::default();
    tool_runs.profile(host, lease, request, prepared, outcome).await;
    let start = Instant::now();
    if let Some((timeline, artifacts)) =
        timeline::trace(host, lease, request, prepared, outcome).await
    {
        tool_runs.timeline = Some(timeline);
        tool_runs.artifacts.extend(artifacts);
        tool_runs.profile_ms += ms(start);
    }
    tool_runs.sanitize = sanitized::check(host, lease, request, prepared, outcome).await;
    tool_runs
}
