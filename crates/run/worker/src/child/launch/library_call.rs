//! Calls of functions of NVIDIA's libraries in place of kernels: their arguments, and the memory
//! that they use.

use crate::child::device::executor::Executor;
use crate::child::failure::{Failed, JobResult};
use crate::child::memory::residue::Residue;
use crate::protocol::{Argument, Blame, KernelLaunch};
use warpgauge_device::libraries::{LibraryCall, TypedLibraryFunction};
use warpgauge_device::{DeviceBuffer, DeviceError};
use warpgauge_model::{DeviceKind, FailureCode};

/// Function that returns the address of a buffer, given its index; `None` if there is no such
/// buffer.
pub(crate) type AddressOf<'a> = &'a dyn Fn(usize) -> Option<u64>;

/// A call of a library function, bound to buffers.
pub(crate) struct BoundCall {
    call: LibraryCall,
    symbol: String,
    /// Indices of the buffers that the function takes, in the order of its parameters.
    buffers: Vec<usize>,
}

impl BoundCall {
    /// Opens the library at its first use, and binds the function that a launch names.
    pub(crate) fn new(
        executor: &Executor,
        launch: &KernelLaunch,
        address: AddressOf<'_>,
        residue: &mut Residue,
        blame: Blame,
    ) -> JobResult<Self> {
        let function = TypedLibraryFunction::of_image(&launch.image);
        let function = function.ok_or_else(|| environment(unknown(&launch.symbol)))?;
        let library = function.library();
        if executor.device.kind == DeviceKind::Emulator {
            let text = format!("the emulated device has no {}", library.title());
            let operation = format!("call {}", function.symbol());
            return Err(environment(DeviceError::local(operation, FailureCode::NoLibrary, text)));
        }
        let (mut extents, mut buffers) = (Vec::new(), Vec::new());
        for argument in &launch.arguments {
            match argument {
                Argument::Scalar(bytes) => extents.push(extent(bytes, &launch.symbol)?),
                Argument::Buffer(buffer) => buffers.push(*buffer),
                Argument::Inside(..)
                | Argument::Workspace(..)
                | Argument::Scratch(_)
                | Argument::Structure(..)
                | Argument::Map(..)
                | Argument::Texture(..)
                | Argument::Object(_)
                | Argument::PointerArray(_) => {
                    return Err(environment(unknown(&launch.symbol)));
                }
            }
        }
        let addresses = addresses(&buffers, address, &launch.symbol);
        let addresses = addresses.map_err(environment)?;
        residue.note_library(library.title());
        let bound = executor.libraries.bind(function, &extents, &addresses, &executor.stream);
        let call = bound.map_err(|error| match error.code {
            // A library that the machine lacks is not the kernel's fault.
            FailureCode::NoLibrary => environment(error),
            _ => Failed::device(error, blame),
        })?;
        Ok(Self { call, symbol: launch.symbol.clone(), buffers })
    }

    /// Queues the call on the executor's stream, with the current addresses of the buffers.
    pub(crate) fn queue(&mut self, address: AddressOf<'_>) -> Result<(), DeviceError> {
        self.call.set_addresses(&addresses(&self.buffers, address, &self.symbol)?)?;
        self.call.queue()
    }

    /// Returns the memory that the call used in addition to the buffers, for scrubbing.
    pub(crate) fn into_memory(self) -> DeviceBuffer {
        self.call.into_memory()
    }
}

fn environment(error: DeviceError) -> Failed {
    Failed::device(error, Blame::Environment)
}

fn addresses(
    buffers: &[usize],
    address: AddressOf<'_>,
    symbol: &str,
) -> Result<Vec<u64>, DeviceError> {
    let there = |buffer: &usize| {
        address(*buffer).ok_or_else(|| {
            let text = format!("buffer {buffer} does not exist");
            DeviceError::local(format!("call {symbol}"), FailureCode::InternalError, text)
        })
    };
    buffers.iter().map(there).collect()
}

/// Parses an extent in the server's encoding.
fn extent(bytes: &[u8], symbol: &str) -> JobResult<i64> {
    let bytes = <[u8; 8]>::try_from(bytes).map_err(|_| environment(unknown(symbol)))?;
    Ok(i64::from_le_bytes(bytes))
}

fn unknown(symbol: &str) -> DeviceError {
    let text =
        "server and worker do not agree on the function's arguments; this is a defect of warpgauge";
    DeviceError::local(format!("call {symbol}"), FailureCode::InternalError, text)
}
