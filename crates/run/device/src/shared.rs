//! Device memory and events that another process may open: CUDA IPC.
//!
//! A handle is for the whole block that the driver allocated, not for one buffer in it: small buffers
//! share a block. Whoever exports memory to a process that must see nothing else allocates whole pages.

use cudarc::driver::sys::{CUdeviceptr, CUipcEventHandle, CUipcMemHandle};
use serde::{Deserialize, Serialize};

use super::{Context, DeviceBuffer, DeviceError, Event};
use warpgauge_model::FailureCode;

/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`, the only flag there is.
const LAZY_PEER_ACCESS: u32 = 1;

/// `CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS`: what processes share has no times.
const SHARED_EVENT: u32 = 2 | 4;

/// Leads another process on the same device to memory of this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryHandle(Vec<u8>);

impl MemoryHandle {
    /// One that somebody else tells of: it may lead nowhere.
    pub fn told(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// What another process is told.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl DeviceBuffer {
    /// A handle of the block that the buffer lies in, which it must be alone in, from its begin.
    ///
    /// # Errors
    /// The driver cannot share memory, or not this.
    pub fn export(&self) -> Result<MemoryHandle, DeviceError> {
        let mut handle = CUipcMemHandle { reserved: [0; 64] };
        let api = self.context().api();
        // SAFETY: the address is ours; the handle is written by the call.
        let result = unsafe { (api.ipc_get_memory)(&mut handle, self.address()) };
        api.check(result, "export device memory")?;
        Ok(MemoryHandle(bytemuck::cast_slice(&handle.reserved).to_vec()))
    }

    /// Opens memory of another process, `bytes` of it: a whole block, which is closed and not freed when
    /// this is dropped.
    ///
    /// # Errors
    /// It is gone, or of this very process, or the driver cannot share memory.
    pub fn import(
        context: &Context,
        handle: &MemoryHandle,
        bytes: u64,
    ) -> Result<Self, DeviceError> {
        let address = open(context, handle)?;
        let size = usize::try_from(bytes).map_err(|_| wrong("more than can be addressed"))?;
        Ok(Self::imported(address, size, context))
    }

    /// Opens a block of another process, whose size the driver tells: nothing about it is believed.
    ///
    /// # Errors
    /// As [`Self::import`], or the driver cannot tell.
    pub fn import_block(context: &Context, handle: &MemoryHandle) -> Result<Self, DeviceError> {
        let address = open(context, handle)?;
        let buffer = Self::imported(address, 0, context);
        let Some(address_range) = context.api().address_range else {
            return Err(wrong("the driver does not tell how large it is"));
        };
        let (mut base, mut bytes): (CUdeviceptr, usize) = (0, 0);
        // SAFETY: the address is one that the driver gave us; both results are written.
        let result = unsafe { address_range(&mut base, &mut bytes, address) };
        context.api().check(result, OPERATION)?;
        if base != address {
            return Err(wrong("it does not begin where it was opened"));
        }
        Ok(buffer.of_size(bytes))
    }
}

impl Event {
    /// An event that other processes may open, record and wait for. It has no time, and until somebody
    /// records it nobody waits for it.
    ///
    /// # Errors
    /// The driver has no such events, or no place for what processes share of one (`/dev/shm`).
    pub fn interprocess(context: &Context) -> Result<Self, DeviceError> {
        Self::with_flags(context, SHARED_EVENT)
    }

    /// The 64 bytes by which another process opens it (`cuIpcOpenEventHandle`).
    ///
    /// # Errors
    /// It is not one made for that, or the driver cannot share it.
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
        return Err(wrong("the handle has another size"));
    }
    target.copy_from_slice(&handle.0);
    let mut address: CUdeviceptr = 0;
    // SAFETY: the context is current on this thread; the driver checks the handle.
    let result = unsafe { (context.api().ipc_open_memory)(&mut address, raw, LAZY_PEER_ACCESS) };
    context.api().check(result, OPERATION)?;
    Ok(address)
}
