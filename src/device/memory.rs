//! Device memory and page-locked host memory that free themselves.

use std::cell::RefCell;
use std::ffi::c_void;
use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use super::context::Context;
use super::reserve::Piece;
use super::stream::Stream;
use super::{DeviceError, Event};

/// Bytes of device memory.
pub struct DeviceBuffer {
    address: CUdeviceptr,
    bytes: usize,
    context: Context,
    /// Known to hold nothing but zeros, with no work queued that could change it.
    clean: bool,
}

impl DeviceBuffer {
    /// Allocates; the content is not defined, but never that of a former buffer. A buffer of no
    /// bytes has one, so that its address is valid.
    ///
    /// # Errors
    /// `out_of_memory`, naming what was asked and what is free.
    pub fn new(context: &Context, bytes: u64, what: &str) -> Result<Self, DeviceError> {
        let operation = format!("allocate {bytes} bytes of device memory for {what}");
        let Ok(size) = usize::try_from(bytes) else {
            return Err(DeviceError::local(
                operation,
                "out_of_memory",
                "more than this machine can address",
            ));
        };
        let buffer =
            |address| Self { address, bytes: size, context: context.clone(), clean: false };
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
        // What is kept for reuse must not be what is missing.
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

    /// Gives the buffer back for reuse. Its content must have been overwritten with zeros, and the
    /// device must have finished all work.
    pub fn retire_clean(mut self) {
        self.clean = true;
    }

    /// Device address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Size, bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Queues setting every byte to `value`.
    ///
    /// # Errors
    /// As the driver says.
    pub fn fill(&self, value: u8, stream: &Stream) -> Result<(), DeviceError> {
        // SAFETY: the range is ours.
        let result = unsafe {
            (self.context.api().fill)(self.address, value, self.bytes.max(1), stream.handle)
        };
        self.context.api().check(result, "fill device memory")
    }

    /// Queues copying all of `source`, which has the same size.
    ///
    /// # Errors
    /// Sizes differ, or as the driver says.
    pub fn copy_from_device(
        &self,
        source: &DeviceBuffer,
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        check_range("copy on the device", 0, source.bytes, self.bytes)?;
        if source.bytes == 0 {
            return Ok(());
        }
        let (to, from) = (self.address, source.address);
        // SAFETY: both ranges are ours, and the driver frees memory only after queued work.
        let result =
            unsafe { (self.context.api().copy_on_device)(to, from, source.bytes, stream.handle) };
        self.context.api().check(result, "copy on the device")
    }

    /// Copies `source` to `offset` and waits for it.
    ///
    /// # Errors
    /// It does not fit, or as the driver says.
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

    /// Copies from `offset` into `target` and waits for it.
    ///
    /// # Errors
    /// It reaches past the end, or as the driver says.
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
        if self.clean {
            let gone = self.context.reserve().put((self.address, size));
            release(&self.context, gone);
            return;
        }
        // The driver hands freed memory out again as it is, so it is zeroed first. Failures mean
        // that the context is lost, and its memory with it.
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

/// Returns memory to the driver.
fn release(context: &Context, pieces: impl IntoIterator<Item = Piece>) {
    for (address, _) in pieces {
        // SAFETY: allocated by us, freed once. A failure means the context is lost already.
        let _ = unsafe { (context.api().memory_free)(address) };
    }
}

/// Waits for a copy that involves memory the caller lent. A stream that cannot be waited for has a
/// lost context, whose copies the driver has ended.
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
    let text = format!("bytes {offset}+{bytes} of a buffer of {capacity}");
    Err(DeviceError::local(operation, "invalid_value", text))
}

/// Page-locked host memory: the device copies to and from it at full speed.
pub struct PinnedBuffer {
    start: *mut u8,
    bytes: usize,
    context: Context,
}

impl PinnedBuffer {
    /// Allocates zeroed memory.
    ///
    /// # Errors
    /// As the driver says.
    pub fn new(context: &Context, bytes: usize) -> Result<Self, DeviceError> {
        let mut start: *mut c_void = std::ptr::null_mut();
        // SAFETY: the context is current; 0 are the default flags.
        let result = unsafe { (context.api().host_alloc)(&mut start, bytes.max(1), 0) };
        context.api().check(result, &format!("allocate {bytes} bytes of page-locked memory"))?;
        // SAFETY: the driver just gave us this many bytes.
        unsafe { std::ptr::write_bytes(start.cast::<u8>(), 0, bytes.max(1)) };
        Ok(Self { start: start.cast(), bytes, context: context.clone() })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: allocated and initialised by us; nothing writes while the borrow lasts, because
        // every copy into it takes the slice mutably and waits.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }

    /// The bytes, to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and self is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) }
    }
}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated by us, freed once.
        let _ = unsafe { (self.context.api().host_free)(self.start.cast()) };
    }
}

/// Page-locked buffers kept for reuse: locking pages costs far more than a copy.
///
/// Holds at most `limit_bytes`; what is asked beyond that is ordinary memory, which the driver
/// copies through its own staging area. Buffers are zeroed when they come back, because kernels
/// can read page-locked memory.
pub struct PinnedPool {
    context: Context,
    limit_bytes: usize,
    state: RefCell<PoolState>,
}

#[derive(Default)]
struct PoolState {
    free: Vec<PinnedBuffer>,
    held_bytes: usize,
}

impl PinnedPool {
    /// An empty pool.
    pub fn new(context: &Context, limit_bytes: usize) -> Rc<Self> {
        let state = RefCell::default();
        Rc::new(Self { context: context.clone(), limit_bytes, state })
    }

    /// Lends `bytes` zero bytes.
    pub fn take(self: &Rc<Self>, bytes: usize) -> Staging {
        let memory =
            self.pinned(bytes).map_or_else(|| Memory::Plain(vec![0; bytes]), Memory::Pinned);
        Staging { memory, bytes, pool: Rc::clone(self) }
    }

    fn pinned(&self, bytes: usize) -> Option<PinnedBuffer> {
        let mut state = self.state.borrow_mut();
        // The smallest that is large enough, but not one that would be mostly wasted.
        let fit =
            |buffer: &PinnedBuffer| buffer.bytes >= bytes && buffer.bytes / 4 <= bytes.max(1 << 16);
        let best = state.free.iter().enumerate().filter(|(_, buffer)| fit(buffer));
        if let Some(index) = best.min_by_key(|(_, buffer)| buffer.bytes).map(|(index, _)| index) {
            return Some(state.free.swap_remove(index));
        }
        let size = bytes.max(1 << 16).checked_next_power_of_two()?;
        if size > self.limit_bytes {
            return None;
        }
        while state.held_bytes + size > self.limit_bytes {
            let freed = state.free.pop()?;
            state.held_bytes -= freed.bytes;
        }
        // Refused by the system (locked-memory limit): ordinary memory serves as well, slower.
        let buffer = PinnedBuffer::new(&self.context, size).ok()?;
        state.held_bytes += size;
        Some(buffer)
    }
}

enum Memory {
    Pinned(PinnedBuffer),
    Plain(Vec<u8>),
}

/// Host memory lent by a [`PinnedPool`].
pub struct Staging {
    memory: Memory,
    bytes: usize,
    pool: Rc<PinnedPool>,
}

impl Staging {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.memory {
            Memory::Pinned(buffer) => &buffer.bytes()[..self.bytes],
            Memory::Plain(bytes) => bytes,
        }
    }

    /// The bytes, to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Pinned(buffer) => &mut buffer.bytes_mut()[..self.bytes],
            Memory::Plain(bytes) => bytes,
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let used = self.bytes;
        if let Memory::Pinned(mut buffer) =
            std::mem::replace(&mut self.memory, Memory::Plain(Vec::new()))
        {
            buffer.bytes_mut()[..used].fill(0);
            self.pool.state.borrow_mut().free.push(buffer);
        }
    }
}

/// Events kept for reuse, so that a timed loop creates none.
pub struct EventPool {
    events: Vec<Event>,
}

impl EventPool {
    /// `count` events.
    ///
    /// # Errors
    /// As the driver says.
    pub fn new(context: &Context, count: usize) -> Result<Self, DeviceError> {
        let events = (0..count).map(|_| Event::new(context)).collect::<Result<_, _>>()?;
        Ok(Self { events })
    }

    /// The events.
    pub fn events(&self) -> &[Event] {
        &self.events
    }
}
