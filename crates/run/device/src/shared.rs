//! Device memory and events that other processes may open (CUDA IPC).
//!
//! A handle opens the whole block that the driver allocated, not only one buffer in it, and small
//! buffers share a block. A caller that exports memory to a process that must not see other data
//! must therefore allocate whole pages.

use cudarc::driver::sys::{CUdeviceptr, CUipcEventHandle, CUipcMemHandle};
use serde::{Deserialize, Serialize};

use super::{Context, DeviceBuffer, DeviceError, Event};
use warpgauge_model::FailureCode;

/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`, the only flag.
const LAZY_PEER_ACCESS: u32 = 1;

/// `CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS`: shared events record no times.
const SHARED_EVENT: u32 = 2 | 4;

/// A handle with which another process on the same device opens memory of the exporting process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryHandle(Vec<u8>);

impl MemoryHandle {
    /// Returns a handle that another process sent. It may be invalid.
    pub fn told(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns the bytes to send to another process.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl DeviceBuffer {
    /// Returns a handle of the block that contains the buffer. The buffer must be at the beginning
    /// of the block, and be the only buffer in it.
    ///
    /// # Errors
    /// Fails if the driver cannot share memory or cannot share this block.
    pub fn export(&self) -> Result<MemoryHandle, DeviceError> {
        let mut handle = CUipcMemHandle { reserved: [0; 64] };
        let api = self.context().api();
        // SAFETY: the address is ours; the handle is written by the call.
        let result = unsafe { (api.ipc_get_memory)(&mut handle, self.address()) };
        api.check(result, "export device memory")?;
        Ok(MemoryHandle(bytemuck::cast_slice(&handle.reserved).to_vec()))
    }

    /// Opens a whole block of `bytes` bytes that belongs to another process. Dropping the result
    /// closes the block without freeing it.
    ///
    /// # Errors
    /// Fails if the memory was freed or belongs to this process, or if the driver cannot share
    /// memory.
    pub fn import(
        context: &Context,
        handle: &MemoryHandle,
        bytes: u64,
    ) -> Result<Self, DeviceError> {
        let address = open(context, handle)?;
        let size = usize::try_from(bytes)
            .map_err(|_| wrong("the block is larger than the address space"))?;
        Ok(Self::imported(address, size, context))
    }

    /// Opens a block that belongs to another process. The size comes from the driver, because the
    /// other process is not trusted.
    ///
    /// # Errors
    /// Fails like [`Self::import`], or if the driver cannot return the size.
    pub fn import_block(context: &Context, handle: &MemoryHandle) -> Result<Self, DeviceError> {
        let address = open(context, handle)?;
        let buffer = Self::imported(address, 0, context);
        let Some(address_range) = context.api().address_range else {
            return Err(wrong("the driver does not report its size"));
        };
        let (mut base, mut bytes): (CUdeviceptr, usize) = (0, 0);
        // SAFETY: the driver returned the address; both results are written.
        let result = unsafe { address_range(&mut base, &mut bytes, address) };
        context.api().check(result, OPERATION)?;
        if base != address {
            return Err(wrong("the handle does not refer to the beginning of a block"));
        }
        Ok(buffer.of_size(bytes))
    }
}

impl Event {
    /// Creates an event that other processes may open, record and wait for. It records no time.
    /// Until a process records it, waiting for it returns at once.
    ///
    /// # Errors
    /// Fails if the driver does not support such events, or has no space for the shared data of an
    /// event (`/dev/shm`).
    pub fn interprocess(context: &Context) -> Result<Self, DeviceError> {
        Self::with_flags(context, SHARED_EVENT)
    }

    /// Returns a 64-byte handle with which another process opens the event
    /// (`cuIpcOpenEventHandle`).
    ///
    /// # Errors
    /// Fails if the event was not created for sharing, or the driver cannot share it.
    pub fn export(&self) -> Result<Vec<u8>, DeviceError> {
        let mut handle = CUipcEventHandle { reserved: [0; 64] };
        // SAFETY: the event is alive; the handle is written by the call.
        let result = unsafe { (self.context.api().ipc_get_event)(&mut handle, self.handle) };
        self.context.api().check(result, "export an event")?;
        Ok(bytemuck::cast_slice(&handle.reserved).to_vec())
    }
}

const OPERATION: &str = "open device memory of another process";

fn wrong(text: &str) -> DeviceError {
    DeviceError::local(OPERATION, FailureCode::InvalidHandle, text)
}

fn open(context: &Context, handle: &MemoryHandle) -> Result<CUdeviceptr, DeviceError> {
    let mut raw = CUipcMemHandle { reserved: [0; 64] };
    let target: &mut [u8] = bytemuck::cast_slice_mut(&mut raw.reserved);
    if target.len() != handle.0.len() {
        return Err(wrong("the handle has the wrong size"));
    }
    target.copy_from_slice(&handle.0);
    let mut address: CUdeviceptr = 0;
    // SAFETY: the context is current on this thread; the driver checks the handle.
    let result = unsafe { (context.api().ipc_open_memory)(&mut address, raw, LAZY_PEER_ACCESS) };
    context.api().check(result, OPERATION)?;
    Ok(address)
}
