//! What CUPTI refuses, and why.

use std::ffi::c_int;

use thiserror::Error;

use warpgauge_model::Cause;

/// A call of CUPTI that failed, or a CUPTI that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{operation}: {text}")]
pub struct CuptiError {
    /// What was to be done.
    pub operation: String,
    /// What the library says, with its code.
    pub text: String,
    /// What kind of failure it is.
    pub cause: Cause,
}

impl CuptiError {
    /// A failure that is not the library's.
    pub fn local(operation: &str, cause: Cause, text: impl Into<String>) -> Self {
        Self { operation: operation.to_owned(), text: text.into(), cause }
    }

    /// A returned code.
    pub(super) fn of_code(operation: &str, code: c_int, name: &str) -> Self {
        Self::local(operation, cause(code), format!("{name} ({code})"))
    }

    /// Whether it may go away by itself: another process reads counters now.
    pub fn is_busy(&self) -> bool {
        self.cause == Cause::CountersBusy
    }
}

/// What a `CUptiResult` means for whoever wanted counters.
fn cause(code: c_int) -> Cause {
    match code {
        // INVALID_METRIC_NAME
        17 => Cause::UnknownMetric,
        // INSUFFICIENT_PRIVILEGES
        35 => Cause::NoPermission,
        // HARDWARE_BUSY, MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
        26 | 39 => Cause::CountersBusy,
        // VIRTUALIZED_DEVICE_NOT_SUPPORTED, VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES,
        // CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, MIG, SLI and WSL
        33 | 40 | 41 | 43 | 44 | 45 => Cause::UnsupportedMode,
        // NOT_SUPPORTED, LEGACY_PROFILER_NOT_SUPPORTED, CMP_DEVICE_NOT_SUPPORTED, INVALID_CHIP_NAME
        27 | 38 | 42 | 46 => Cause::UnsupportedDevice,
        // PARAMETER_SIZE_NOT_SUFFICIENT, NOT_COMPATIBLE, CUDA_COMPILER_NOT_COMPATIBLE
        10 | 14 | 34 => Cause::DriverMismatch,
        // NOT_INITIALIZED: the libraries beside it, or the driver's part, are not there
        15 => Cause::NoProfilerLibrary,
        _ => Cause::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_causes_and_only_busy_counters_are_worth_another_try() {
        let error = |code| CuptiError::of_code("start a pass", code, "CUPTI_ERROR_X");
        assert_eq!(error(35).cause, Cause::NoPermission);
        assert_eq!(error(33).cause, Cause::UnsupportedMode);
        assert_eq!(error(46).cause, Cause::UnsupportedDevice);
        assert_eq!(error(4711).cause, Cause::Unknown);
        assert!(error(26).is_busy() && !error(35).is_busy());
        assert_eq!(error(26).to_string(), "start a pass: CUPTI_ERROR_X (26)");
    }
}
