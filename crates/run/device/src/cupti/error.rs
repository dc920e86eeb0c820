//! Errors of CUPTI, and their causes.

use std::ffi::c_int;

use thiserror::Error;

use warpgauge_model::Cause;

/// A failed call of CUPTI, or the reason why CUPTI is unusable.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{operation}: {text}")]
pub struct CuptiError {
    /// The operation that failed.
    pub operation: String,
    /// The library's message, with its code.
    pub text: String,
    pub cause: Cause,
}

impl CuptiError {
    /// Returns an error that this crate detected, and not the library.
    pub fn local(operation: &str, cause: Cause, text: impl Into<String>) -> Self {
        Self { operation: operation.to_owned(), text: text.into(), cause }
    }

    /// Returns the error of a result code.
    pub(super) fn of_code(operation: &str, code: c_int, name: &str) -> Self {
        Self::local(operation, cause(code), format!("{name} ({code})"))
    }

    /// Returns whether the cause is temporary, because another process is reading counters.
    pub fn is_busy(&self) -> bool {
        self.cause == Cause::CountersBusy
    }
}

/// Returns the cause that a `CUptiResult` indicates when counters are read.
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
        // NOT_INITIALIZED: libraries in CUPTI's folder, or the driver's part, are missing
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
