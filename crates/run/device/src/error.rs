//! Errors of the driver, with codes that are the same in all driver versions.

use cudarc::driver::sys::CUresult;

use serde::{Deserialize, Serialize};
use warpgauge_model::FailureCode;

/// A failed call of the driver.
#[derive(Debug, Clone, thiserror::Error, Serialize, Deserialize)]
#[error("{operation}: {name} ({number}): {text}{detail}")]
pub struct DeviceError {
    /// The failed operation, e.g. `launch saxpy`.
    pub operation: String,
    /// Stable error code; [`error_code`] assigns it.
    pub code: FailureCode,
    /// The driver's error number. It is negative if the error has no number of the driver.
    pub number: i32,
    /// The driver's name of the error, `CUDA_ERROR_…`.
    pub name: Box<str>,
    /// The driver's description of the error.
    pub text: String,
    /// Further details, such as the log of the PTX assembler. The text starts with a separator, or
    /// is empty.
    pub detail: String,
    /// Whether the error occurred in another process, so that this process's context is not
    /// affected.
    pub elsewhere: bool,
}

impl DeviceError {
    /// Returns an error that this crate detected itself instead of the driver.
    pub fn local(operation: impl Into<String>, code: FailureCode, text: impl Into<String>) -> Self {
        Self {
            operation: operation.into(),
            code,
            number: -1,
            name: "warpgauge".into(),
            text: text.into(),
            detail: String::new(),
            elsewhere: false,
        }
    }

    /// Returns whether this process's context is now unusable.
    pub fn is_sticky(&self) -> bool {
        !self.elsewhere && is_sticky(self.number)
    }
}

/// A row of the table: the driver's code, the stable code, and whether the error makes the context
/// unusable.
type Row = (CUresult, FailureCode, bool);

const ROWS: &[Row] = &[
    (CUresult::CUDA_ERROR_INVALID_VALUE, FailureCode::InvalidValue, false),
    (CUresult::CUDA_ERROR_OUT_OF_MEMORY, FailureCode::OutOfMemory, false),
    (CUresult::CUDA_ERROR_NOT_INITIALIZED, FailureCode::NotInitialized, true),
    (CUresult::CUDA_ERROR_DEINITIALIZED, FailureCode::Deinitialized, true),
    (CUresult::CUDA_ERROR_STUB_LIBRARY, FailureCode::StubLibrary, true),
    (CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE, FailureCode::DeviceUnavailable, true),
    (CUresult::CUDA_ERROR_NO_DEVICE, FailureCode::NoDevice, true),
    (CUresult::CUDA_ERROR_INVALID_DEVICE, FailureCode::InvalidDevice, true),
    (CUresult::CUDA_ERROR_INVALID_IMAGE, FailureCode::InvalidImage, false),
    (CUresult::CUDA_ERROR_INVALID_CONTEXT, FailureCode::InvalidContext, true),
    (CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU, FailureCode::NoBinaryForGpu, false),
    (CUresult::CUDA_ERROR_ECC_UNCORRECTABLE, FailureCode::EccUncorrectable, true),
    (CUresult::CUDA_ERROR_INVALID_PTX, FailureCode::InvalidPtx, false),
    (CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE, FailureCode::NvlinkUncorrectable, true),
    (CUresult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND, FailureCode::JitCompilerNotFound, false),
    (CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION, FailureCode::UnsupportedPtxVersion, false),
    (CUresult::CUDA_ERROR_JIT_COMPILATION_DISABLED, FailureCode::JitCompilationDisabled, false),
    (CUresult::CUDA_ERROR_INVALID_SOURCE, FailureCode::InvalidSource, false),
    (CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, FailureCode::UnresolvedSymbol, false),
    (CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, FailureCode::SharedObjectInitFailed, false),
    (CUresult::CUDA_ERROR_OPERATING_SYSTEM, FailureCode::OperatingSystem, true),
    (CUresult::CUDA_ERROR_INVALID_HANDLE, FailureCode::InvalidHandle, false),
    (CUresult::CUDA_ERROR_NOT_FOUND, FailureCode::NotFound, false),
    (CUresult::CUDA_ERROR_NOT_READY, FailureCode::NotReady, false),
    (CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, FailureCode::IllegalAddress, true),
    (CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, FailureCode::LaunchOutOfResources, false),
    (CUresult::CUDA_ERROR_LAUNCH_TIMEOUT, FailureCode::LaunchTimeout, true),
    (CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED, FailureCode::ContextIsDestroyed, true),
    (CUresult::CUDA_ERROR_ASSERT, FailureCode::Assert, true),
    (CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR, FailureCode::HardwareStackError, true),
    (CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION, FailureCode::IllegalInstruction, true),
    (CUresult::CUDA_ERROR_MISALIGNED_ADDRESS, FailureCode::MisalignedAddress, true),
    (CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE, FailureCode::InvalidAddressSpace, true),
    (CUresult::CUDA_ERROR_INVALID_PC, FailureCode::InvalidPc, true),
    (CUresult::CUDA_ERROR_LAUNCH_FAILED, FailureCode::LaunchFailed, true),
    (
        CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
        FailureCode::CooperativeLaunchTooLarge,
        false,
    ),
    (CUresult::CUDA_ERROR_TENSOR_MEMORY_LEAK, FailureCode::TensorMemoryLeak, true),
    (CUresult::CUDA_ERROR_NOT_PERMITTED, FailureCode::NotPermitted, false),
    (CUresult::CUDA_ERROR_NOT_SUPPORTED, FailureCode::NotSupported, false),
    (CUresult::CUDA_ERROR_SYSTEM_NOT_READY, FailureCode::SystemNotReady, true),
    (CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, FailureCode::DriverMismatch, true),
    (CUresult::CUDA_ERROR_INVALID_CLUSTER_SIZE, FailureCode::InvalidClusterSize, false),
    (CUresult::CUDA_ERROR_TIMEOUT, FailureCode::DriverTimeout, true),
    (CUresult::CUDA_ERROR_UNKNOWN, FailureCode::Unknown, true),
];

/// Returns the stable code for a driver's code, or `driver_error` if the table does not contain the
/// code.
pub fn error_code(number: i32) -> FailureCode {
    row(number).map_or(FailureCode::DriverError, |row| row.1.clone())
}

/// Returns whether a code means that the context is unusable. This is assumed for a code that the
/// table does not contain, because a new context costs little and a wrong result costs more.
pub fn is_sticky(number: i32) -> bool {
    number > 0 && row(number).is_none_or(|row| row.2)
}

fn row(number: i32) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.0 as i32 == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_stable_and_unknown_ones_are_safe() {
        assert_eq!(error_code(700), FailureCode::IllegalAddress);
        assert_eq!(error_code(716), FailureCode::MisalignedAddress);
        assert_eq!(error_code(719), FailureCode::LaunchFailed);
        assert_eq!(error_code(209), FailureCode::NoBinaryForGpu);
        assert_eq!(error_code(4711), FailureCode::DriverError);
        assert!(is_sticky(700) && is_sticky(4711));
        assert!(!is_sticky(2) && !is_sticky(1) && !is_sticky(0) && !is_sticky(-1));
    }

    #[test]
    fn no_code_appears_twice() {
        for (index, row) in ROWS.iter().enumerate() {
            let rest = &ROWS[index + 1..];
            assert!(rest.iter().all(|other| other.0 != row.0 && other.1 != row.1), "{}", row.1);
        }
    }
}
