//! Data types that calls of both libraries use: element types, factors, and workspaces.

use std::ffi::{c_int, c_void};

use crate::{DeviceBuffer, DeviceError, Stream};
use warpgauge_model::FailureCode;
use warpgauge_tensor::Dtype;

/// Maximum size of a library's workspace, bytes.
const MAX_WORKSPACE: u64 = 8 << 30;

/// Returns the `cudaDataType` for elements of this type.
pub(super) fn data_type(dtype: Dtype) -> c_int {
    match dtype {
        Dtype::Float64 => 1,
        Dtype::Float16 => 2,
        Dtype::Bfloat16 => 14,
        _ => 0,
    }
}

/// The factors one and zero in a library's compute type. The library reads them on the host.
#[derive(Clone, Copy)]
pub(super) enum Factors {
    Single([f32; 2]),
    Double([f64; 2]),
}

impl Factors {
    /// Returns the factors for an element type. The compute type of half precision is binary32.
    pub(super) fn of(dtype: Dtype) -> Self {
        match dtype {
            Dtype::Float64 => Self::Double([1.0, 0.0]),
            _ => Self::Single([1.0, 0.0]),
        }
    }

    pub(super) fn pointers(&self) -> [*const c_void; 2] {
        match self {
            Self::Single(both) => [0, 1].map(|at| (&raw const both[at]).cast()),
            Self::Double(both) => [0, 1].map(|at| (&raw const both[at]).cast()),
        }
    }
}

/// Converts a device address to the libraries' pointer type.
pub(super) fn pointer(address: u64) -> *mut c_void {
    address as usize as *mut c_void
}

/// Allocates a zeroed workspace.
pub(super) fn workspace(bytes: u64, stream: &Stream) -> Result<DeviceBuffer, DeviceError> {
    const WHAT: &str = "the workspace of a library";
    if bytes > MAX_WORKSPACE {
        let text = format!("the library requires {bytes} bytes; the limit is {MAX_WORKSPACE}");
        return Err(DeviceError::local(format!("allocate {WHAT}"), FailureCode::OutOfMemory, text));
    }
    let memory = DeviceBuffer::new(stream.context(), bytes, WHAT)?;
    memory.fill(0, stream)?;
    Ok(memory)
}
