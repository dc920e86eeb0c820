//! Failures of a job, each with the party at fault.

use crate::protocol::{Blame, RunFailure};
use warpgauge_device::DeviceError;
use warpgauge_model::FailureCode;
use warpgauge_validate::Reason;

/// Failure of a job, and whether the context is lost.
#[derive(Debug)]
pub(super) struct Failed {
    pub failure: RunFailure,
    /// Whether the context is known to be lost.
    pub sticky: bool,
}

/// Result of a phase of a job.
pub(super) type JobResult<T> = Result<T, Failed>;

impl Failed {
    pub(super) fn new(code: FailureCode, message: String, blame: Blame) -> Self {
        let failure = RunFailure { code, message, blame };
        Self { failure, sticky: false }
    }

    /// Returns a failure for which the candidate is at fault.
    pub(super) fn reason(reason: Reason) -> Self {
        Self::new(reason.code.failure(), reason.message, Blame::Candidate)
    }

    pub(super) fn device(error: DeviceError, blame: Blame) -> Self {
        let sticky = error.is_sticky();
        let message = error.to_string();
        let failure = RunFailure { code: error.code, message, blame };
        Self { failure, sticky }
    }
}

/// Converts an error of work for the candidate, or of work in which the candidate's faults appear.
pub(super) fn candidate(error: DeviceError) -> Failed {
    Failed::device(error, Blame::Candidate)
}

/// Converts an error of the worker's own work.
pub(super) fn environment(error: DeviceError) -> Failed {
    Failed::device(error, Blame::Environment)
}
