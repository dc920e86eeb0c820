//! Runs of an evaluation's kernel under tools, after its timed run and on the same lease.

use std::time::{Duration, Instant};

use super::local::LocalExecutor;
use super::prepare::Prepared;
use super::profiled::{self, Profiled};
use super::run::ms;
use super::{sanitized, timeline};
use warpgauge_contract::EvaluateRequest;
use warpgauge_report::{SanitizeReport, TimelineReport};
use warpgauge_tools::Artifact;
use warpgauge_worker::Lease;
use warpgauge_worker::protocol::{Evaluated, RunOutcome};

/// What tools told in runs of their own.
#[derive(Default)]
pub(super) struct ToolRuns {
    /// Memory and race checks of a GPU, if they were asked for.
    pub(super) sanitize: Option<SanitizeReport>,
    /// Device metrics of a GPU, if they were asked for.
    pub(super) profiled: Option<Profiled>,
    /// What the GPU and the driver did, if it was asked for.
    pub(super) timeline: Option<TimelineReport>,
    /// Files of the tools' that are worth keeping, in the job's directory.
    pub(super) artifacts: Vec<Artifact>,
    /// Wall time that metrics and timeline took, milliseconds.
    pub(super) profile_ms: f64,
}

impl ToolRuns {
    /// Reads the device metrics that the request asks for.
    pub(super) async fn profile(
        &mut self,
        shared: &LocalExecutor,
        lease: &mut Lease,
        request: &EvaluateRequest,
        prepared: &Prepared,
        outcome: &RunOutcome<Evaluated>,
    ) {
        let start = Instant::now();
        let told = profiled::collect(shared, lease, request, prepared, outcome).await;
        if let Some((profiled, artifacts)) = told {
            self.profiled = Some(profiled);
            self.artifacts.extend(artifacts);
            self.profile_ms += ms(start);
        }
    }
}

impl LocalExecutor {
    /// Runs the kernel again under the tools that the request asks for. The timed run is over, and
    /// nothing that goes wrong here takes anything from it.
    pub(super) async fn run_tools(
        &self,
        lease: &mut Lease,
        request: &EvaluateRequest,
        prepared: &Prepared,
        outcome: &RunOutcome<Evaluated>,
    ) -> ToolRuns {
        let mut tool_runs = ToolRuns::default();
        tool_runs.profile(self, lease, request, prepared, outcome).await;
        let start = Instant::now();
        if let Some((timeline, artifacts)) =
            timeline::trace(self, lease, request, prepared, outcome).await
        {
            tool_runs.timeline = Some(timeline);
            tool_runs.artifacts.extend(artifacts);
            tool_runs.profile_ms += ms(start);
        }
        tool_runs.sanitize = sanitized::check(self, lease, request, prepared, outcome).await;
        tool_runs
    }

    /// How long one run of a tool may take.
    pub(super) fn tool_limit(&self) -> Duration {
        Duration::from_secs_f64(self.config.tools.timeout_s)
    }
}
