//! Errors of the driver, with codes that stay the same across driver versions.

use cudarc::driver::sys::CUresult;

/// A call to the driver that failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{operation}: {name} ({number}): {text}{detail}")]
pub struct DeviceError {
    /// What was attempted, e.g. `launch saxpy`.
    pub operation: String,
    /// Stable code, see [`error_code`].
    pub code: &'static str,
    /// The driver's number.
    pub number: i32,
    /// The driver's name for it, `CUDA_ERROR_…`.
    pub name: String,
    /// The driver's description.
    pub text: String,
    /// More, e.g. the log of the PTX assembler; starts with a separator, or is empty.
    pub detail: String,
}

impl DeviceError {
    /// A failure that this layer found itself, before or after asking the driver.
    pub fn local(
        operation: impl Into<String>,
        code: &'static str,
        text: impl Into<String>,
    ) -> Self {
        Self {
            operation: operation.into(),
            code,
            number: -1,
            name: "warpgauge".to_owned(),
            text: text.into(),
            detail: String::new(),
        }
    }

    /// Whether the context is unusable from here on.
    pub fn is_sticky(&self) -> bool {
        is_sticky(self.number)
    }
}

/// One row: the driver's code, ours, and whether it makes the context unusable.
type Row = (CUresult, &'static str, bool);

const ROWS: &[Row] = &[
    (CUresult::CUDA_ERROR_INVALID_VALUE, "invalid_value", false),
    (CUresult::CUDA_ERROR_OUT_OF_MEMORY, "out_of_memory", false),
    (CUresult::CUDA_ERROR_NOT_INITIALIZED, "not_initialized", true),
    (CUresult::CUDA_ERROR_DEINITIALIZED, "deinitialized", true),
    (CUresult::CUDA_ERROR_STUB_LIBRARY, "stub_library", true),
    (CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE, "device_unavailable", true),
    (CUresult::CUDA_ERROR_NO_DEVICE, "no_device", true),
    (CUresult::CUDA_ERROR_INVALID_DEVICE, "invalid_device", true),
    (CUresult::CUDA_ERROR_INVALID_IMAGE, "invalid_image", false),
    (CUresult::CUDA_ERROR_INVALID_CONTEXT, "invalid_context", true),
    (CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU, "no_binary_for_gpu", false),
    (CUresult::CUDA_ERROR_ECC_UNCORRECTABLE, "ecc_uncorrectable", true),
    (CUresult::CUDA_ERROR_INVALID_PTX, "invalid_ptx", false),
    (CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE, "nvlink_uncorrectable", true),
    (CUresult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "jit_compiler_not_found", false),
    (CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "unsupported_ptx_version", false),
    (CUresult::CUDA_ERROR_JIT_COMPILATION_DISABLED, "jit_compilation_disabled", false),
    (CUresult::CUDA_ERROR_INVALID_SOURCE, "invalid_source", false),
    (CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, "unresolved_symbol", false),
    (CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, "shared_object_init_failed", false),
    (CUresult::CUDA_ERROR_OPERATING_SYSTEM, "operating_system", true),
    (CUresult::CUDA_ERROR_INVALID_HANDLE, "invalid_handle", false),
    (CUresult::CUDA_ERROR_NOT_FOUND, "not_found", false),
    (CUresult::CUDA_ERROR_NOT_READY, "not_ready", false),
    (CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, "illegal_address", true),
    (CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "launch_out_of_resources", false),
    (CUresult::CUDA_ERROR_LAUNCH_TIMEOUT, "launch_timeout", true),
    (CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED, "context_is_destroyed", true),
    (CUresult::CUDA_ERROR_ASSERT, "assert", true),
    (CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR, "hardware_stack_error", true),
    (CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION, "illegal_instruction", true),
    (CUresult::CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned_address", true),
    (CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE, "invalid_address_space", true),
    (CUresult::CUDA_ERROR_INVALID_PC, "invalid_pc", true),
    (CUresult::CUDA_ERROR_LAUNCH_FAILED, "launch_failed", true),
    (CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "cooperative_launch_too_large", false),
    (CUresult::CUDA_ERROR_TENSOR_MEMORY_LEAK, "tensor_memory_leak", true),
    (CUresult::CUDA_ERROR_NOT_PERMITTED, "not_permitted", false),
    (CUresult::CUDA_ERROR_NOT_SUPPORTED, "not_supported", false),
    (CUresult::CUDA_ERROR_SYSTEM_NOT_READY, "system_not_ready", true),
    (CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "driver_mismatch", true),
    (CUresult::CUDA_ERROR_INVALID_CLUSTER_SIZE, "invalid_cluster_size", false),
    (CUresult::CUDA_ERROR_TIMEOUT, "driver_timeout", true),
    (CUresult::CUDA_ERROR_UNKNOWN, "unknown", true),
];

/// Our stable name of a driver's code; `driver_error` for one that is not listed.
pub fn error_code(number: i32) -> &'static str {
    row(number).map_or("driver_error", |row| row.1)
}

/// Whether a code means that the context is unusable. A code that is not listed is taken for one:
/// a new context is cheap, a wrong result is not.
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
        assert_eq!(error_code(700), "illegal_address");
        assert_eq!(error_code(716), "misaligned_address");
        assert_eq!(error_code(719), "launch_failed");
        assert_eq!(error_code(209), "no_binary_for_gpu");
        assert_eq!(error_code(4711), "driver_error");
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
