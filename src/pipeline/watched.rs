//! Runs of an evaluation's kernel under tools, after its timed run and on the same lease.

use std::time::{Duration, Instant};

use super::prepare::Prepared;
use super::profiled::{self, Profiled};
use super::run::{Shared, ms};
use super::sanitized;
use crate::contract::EvaluateRequest;
use crate::report::SanitizeReport;
use crate::worker::Lease;
use crate::worker::protocol::RunOutcome;

/// What tools told in runs of their own.
#[derive(Default)]
pub(super) struct Watched {
    /// Memory and race checks of a GPU, if they were asked for.
    pub(super) sanitize: Option<SanitizeReport>,
    /// Device metrics of a GPU, if they were asked for.
    pub(super) profiled: Option<Profiled>,
    /// Wall time that they took, milliseconds.
    pub(super) profile_ms: f64,
}

impl Watched {
    /// Reads the device metrics that the request asks for.
    pub(super) async fn profile(
        &mut self,
        lease: &mut Lease,
        request: &EvaluateRequest,
        prepared: &Prepared,
        outcome: &RunOutcome,
    ) {
        let start = Instant::now();
        self.profiled = profiled::collect(lease, request, prepared, outcome).await;
        self.profile_ms = self.profiled.as_ref().map_or(0.0, |_| ms(start));
    }
}

impl Shared {
    /// Runs the kernel again under the tools that the request asks for. The timed run is over, and
    /// nothing that goes wrong here takes anything from it.
    pub(super) async fn watch(
        &self,
        lease: &mut Lease,
        request: &EvaluateRequest,
        prepared: &Prepared,
        outcome: &RunOutcome,
    ) -> Watched {
        let mut watched = Watched::default();
        watched.profile(lease, request, prepared, outcome).await;
        watched.sanitize = sanitized::check(self, lease, request, prepared, outcome).await;
        watched
    }

    /// How long one run of a tool may take.
    pub(super) fn tool_limit(&self) -> Duration {
        Duration::from_secs_f64(self.config.tools.timeout_s)
    }
}
