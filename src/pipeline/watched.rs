//! Runs of an evaluation's kernel under tools, after its timed run and on the same lease.

use std::time::Duration;

use super::prepare::Prepared;
use super::run::Shared;
use super::sanitized;
use crate::contract::EvaluateRequest;
use crate::report::SanitizeReport;
use crate::worker::Lease;
use crate::worker::protocol::RunOutcome;

/// What tools told in runs of their own.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// Memory and race checks of a GPU, if they were asked for.
    pub(super) sanitize: Option<SanitizeReport>,
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
        Watched { sanitize: sanitized::check(self, lease, request, prepared, outcome).await }
    }

    /// How long one run of a tool may take.
    pub(super) fn tool_limit(&self) -> Duration {
        Duration::from_secs_f64(self.config.tools.timeout_s)
    }
}
