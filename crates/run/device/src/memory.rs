//! Device memory, which is freed when it is dropped.

use std::ffi::c_void;

use cudarc::driver::sys::CUdeviceptr;

use super::context::Context;
use super::reserve::Piece;
use super::stream::Stream;
use super::{DeviceError, PendingCopy, Staging};

use warpgauge_model::FailureCode;

/// A block of device memory.
pub struct DeviceBuffer {
    address: CUdeviceptr,
    bytes: usize,
    context: Context,
    /// Whether the block contains only zeros and no queued work could change that.
    clean: bool,
    /// Whether another process owns the block and frees it.
    imported: bool,
}

impl DeviceBuffer {
    /// Allocates a block. Its content is undefined, but contains nothing from a former buffer. If
    /// `bytes` is 0, the block has one byte, so that its address is valid.
    ///
    /// # Errors
    /// Returns `out_of_memory`, with the requested and the free size, or another error of the
    /// driver.
    pub fn new(context: &Context, bytes: u64, what: &str) -> Result<Self, DeviceError> {
        let operation = format!("allocate {bytes} bytes of device memory for {what}");
        let Ok(size) = usize::try_from(bytes) else {
            return Err(DeviceError::local(
                operation,
                FailureCode::OutOfMemory,
                "the size exceeds the address space of this machine",
            ));
        };
        let buffer = |address| Self {
            address,
            bytes: size,
            context: context.clone(),
            clean: false,
            imported: false,
        };
        if let Some(address) = context.reserve().take(size.max(1)) {
            return Ok(buffer(address));
        }
        let allocate = || {
            let mut address: CUdeviceptr = 0;
            // SAFETY: the context is current on this thread.
            let result = unsafe { (context.api().memory_alloc)(&mut address, size.max(1)) };
            context.api().check(result, &operation).map(|()| address)
        };
        let first = allocate();
        // Memory kept for reuse must not cause a failure. It is therefore freed, and the allocation
        // is repeated.
        let kept = if first.is_err() { context.reserve().drain() } else { Vec::new() };
        let address = if kept.is_empty() {
            first
        } else {
            release(context, kept);
            allocate()
        };
        address.map(buffer).map_err(|mut error| {
            if let Ok((free, total)) = context.memory_info() {
                error.detail = format!("; {free} of {total} bytes are free");
            }
            error
        })
    }

    /// Drops the buffer and keeps its memory for reuse. The caller must have overwritten the
    /// content with zeros, and the device must have finished all work.
    pub fn retire_clean(mut self) {
        self.clean = true;
    }

    pub(super) fn imported(address: CUdeviceptr, bytes: usize, context: &Context) -> Self {
        Self { address, bytes, context: context.clone(), clean: false, imported: true }
    }

    /// Changes the size that the buffer reports, without allocating memory.
    pub(super) fn of_size(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Returns whether another process allocated the block and will free it.
    pub fn is_imported(&self) -> bool {
        self.imported
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    pub fn address(&self) -> u64 {
        self.address
    }

    pub fn len(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Queues setting every byte to `value`.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn fill(&self, value: u8, stream: &Stream) -> Result<(), DeviceError> {
        // SAFETY: the range is ours.
        let result = unsafe {
            (self.context.api().fill)(self.address, value, self.bytes.max(1), stream.handle)
        };
        self.context.api().check(result, "fill device memory")
    }

    /// Queues setting `bytes` bytes, starting at `offset`, to `value`.
    ///
    /// # Errors
    /// Fails if the range exceeds the buffer, or with the driver's error.
    pub fn fill_range(
        &self,
        offset: usize,
        bytes: usize,
        value: u8,
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        const OPERATION: &str = "fill device memory";
        check_range(OPERATION, offset, bytes, self.bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let address = self.address + offset as u64;
        // SAFETY: the range was checked.
        let result = unsafe { (self.context.api().fill)(address, value, bytes, stream.handle) };
        self.context.api().check(result, OPERATION)
    }

    /// Queues filling `bytes` bytes, starting at `offset`, with copies of the four bytes of `word`,
    /// the lowest byte first. The resulting address must be a multiple of 4.
    ///
    /// # Errors
    /// Fails if the range exceeds the buffer, or with the driver's error.
    pub fn fill_words(
        &self,
        offset: usize,
        bytes: usize,
        word: u32,
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        const OPERATION: &str = "fill device memory";
        check_range(OPERATION, offset, bytes, self.bytes)?;
        let address = self.address + offset as u64;
        if !address.is_multiple_of(4) {
            let text = format!("{address:#x} is not a multiple of 4");
            return Err(DeviceError::local(OPERATION, FailureCode::InvalidValue, text));
        }
        let whole = bytes / 4 * 4;
        if whole > 0 {
            // SAFETY: the range was checked.
            let result =
                unsafe { (self.context.api().fill_words)(address, word, whole / 4, stream.handle) };
            self.context.api().check(result, OPERATION)?;
        }
        for at in whole..bytes {
            self.fill_range(offset + at, 1, word.to_le_bytes()[at % 4], stream)?;
        }
        Ok(())
    }

    /// Queues copying `bytes` bytes of `source`, starting at `from`, to offset `to`.
    ///
    /// # Errors
    /// Fails if a range exceeds its buffer, or with the driver's error.
    pub fn copy_range_from_device(
        &self,
        to: usize,
        source: &DeviceBuffer,
        from: usize,
        bytes: usize,
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        const OPERATION: &str = "copy on the device";
        check_range(OPERATION, to, bytes, self.bytes)?;
        check_range(OPERATION, from, bytes, source.bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let (to, from) = (self.address + to as u64, source.address + from as u64);
        // SAFETY: both ranges were checked, and the driver frees memory only after queued work.
        let result = unsafe { (self.context.api().copy_on_device)(to, from, bytes, stream.handle) };
        self.context.api().check(result, OPERATION)
    }

    /// Queues a copy of device memory, from `offset` on, that fills `target`. The returned value
    /// yields `target` when the copy is done.
    ///
    /// # Errors
    /// Fails if the range exceeds the buffer, or with the driver's error.
    pub fn start_copy_to_host(
        &self,
        offset: usize,
        mut target: Staging,
        stream: &Stream,
    ) -> Result<PendingCopy, DeviceError> {
        const OPERATION: &str = "copy from the device";
        let bytes = target.bytes_mut();
        check_range(OPERATION, offset, bytes.len(), self.bytes)?;
        if !bytes.is_empty() {
            let (start, length) = (bytes.as_mut_ptr().cast::<c_void>(), bytes.len());
            let address = self.address + offset as u64;
            // SAFETY: the source was checked; the target is kept in the pending copy, which waits
            // before it releases the target.
            let result =
                unsafe { (self.context.api().copy_to_host)(start, address, length, stream.handle) };
            self.context.api().check(result, OPERATION)?;
        }
        Ok(PendingCopy::new(target, &self.context))
    }

    /// Copies `source` to `offset` and waits until the copy is done.
    ///
    /// # Errors
    /// Fails if `source` does not fit, or with the driver's error.
    pub fn copy_from_host(
        &self,
        offset: usize,
        source: &[u8],
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        const OPERATION: &str = "copy to the device";
        check_range(OPERATION, offset, source.len(), self.bytes)?;
        if source.is_empty() {
            return Ok(());
        }
        let address = self.address + offset as u64;
        // SAFETY: the destination was checked; the source outlives the copy because we wait.
        let result = unsafe {
            let start = source.as_ptr().cast::<c_void>();
            (self.context.api().copy_to_device)(address, start, source.len(), stream.handle)
        };
        self.context.api().check(result, OPERATION)?;
        wait_for_copy(stream)
    }

    /// Copies device memory, starting at `offset`, into `target` and waits until the copy is done.
    ///
    /// # Errors
    /// Fails if the range exceeds the buffer, or with the driver's error.
    pub fn copy_to_host(
        &self,
        offset: usize,
        target: &mut [u8],
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        const OPERATION: &str = "copy from the device";
        check_range(OPERATION, offset, target.len(), self.bytes)?;
        if target.is_empty() {
            return Ok(());
        }
        let address = self.address + offset as u64;
        // SAFETY: the source was checked; the target outlives the copy because we wait.
        let result = unsafe {
            let start = target.as_mut_ptr().cast::<c_void>();
            (self.context.api().copy_to_host)(start, address, target.len(), stream.handle)
        };
        self.context.api().check(result, OPERATION)?;
        wait_for_copy(stream)
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        let size = self.bytes.max(1);
        if self.imported {
            // SAFETY: opened by us, closed once. A failure means that the context is lost already.
            let _ = unsafe { (self.context.api().ipc_close_memory)(self.address) };
            return;
        }
        if self.clean {
            let gone = self.context.reserve().put((self.address, size));
            release(&self.context, gone);
            return;
        }
        // The driver reuses freed memory without clearing it, so the memory is zeroed first. A
        // failure means that the context and its memory are lost.
        let zeroed = self.context.synchronize().is_ok_and(|()| {
            // SAFETY: the range is ours; the null handle is the default stream.
            let result =
                unsafe { (self.context.api().fill)(self.address, 0, size, std::ptr::null_mut()) };
            self.context.api().check(result, "zero freed memory").is_ok()
        });
        if zeroed {
            let _ = self.context.synchronize();
        }
        release(&self.context, [(self.address, size)]);
    }
}

/// Returns pieces of memory to the driver.
fn release(context: &Context, pieces: impl IntoIterator<Item = Piece>) {
    for (address, _) in pieces {
        // SAFETY: allocated by us, freed once. A failure means the context is lost already.
        let _ = unsafe { (context.api().memory_free)(address) };
    }
}

/// Waits for a copy that uses the caller's memory. If waiting fails, the context is lost, and the
/// driver has ended its copies.
fn wait_for_copy(stream: &Stream) -> Result<(), DeviceError> {
    stream.synchronize()
}

fn check_range(
    operation: &str,
    offset: usize,
    bytes: usize,
    capacity: usize,
) -> Result<(), DeviceError> {
    if offset.checked_add(bytes).is_some_and(|end| end <= capacity) {
        return Ok(());
    }
    let text = format!("{bytes} bytes at offset {offset} exceed a buffer of {capacity} bytes");
    Err(DeviceError::local(operation, FailureCode::InvalidValue, text))
}
