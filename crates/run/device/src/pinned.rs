//! Page-locked host memory, which is freed when it is dropped.

use std::cell::RefCell;
use std::ffi::c_void;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::context::Context;
use super::{DeviceError, Event, Stream};

use warpgauge_model::FailureCode;

/// Interval at which the host checks for faults while it waits for a word from the device.
const FAULT_POLL: Duration = Duration::from_millis(1);

/// Size of the pieces in which page-locked memory is zeroed, bytes.
const SCRUB_BYTES: usize = 1 << 20;

/// Size of the smallest memory page, bytes.
const PAGE_BYTES: usize = 4 << 10;

/// Page-locked host memory, from and to which the device copies at full speed.
pub struct PinnedBuffer {
    start: *mut u8,
    bytes: usize,
    context: Context,
}

impl PinnedBuffer {
    /// Allocates zeroed memory.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn new(context: &Context, bytes: usize) -> Result<Self, DeviceError> {
        let mut start: *mut c_void = std::ptr::null_mut();
        // SAFETY: the context is current; 0 are the default flags.
        let result = unsafe { (context.api().host_alloc)(&mut start, bytes.max(1), 0) };
        context.api().check(result, &format!("allocate {bytes} bytes of page-locked memory"))?;
        // SAFETY: the driver just allocated this many bytes.
        unsafe { std::ptr::write_bytes(start.cast::<u8>(), 0, bytes.max(1)) };
        Ok(Self { start: start.cast(), bytes, context: context.clone() })
    }

    /// Returns the memory's address on the device, which equals its address on the host (unified
    /// addressing).
    pub fn address(&self) -> u64 {
        self.start.addr() as u64
    }

    /// Writes a word that the device may read at the same time.
    ///
    /// # Panics
    /// Panics if `index` is beyond the end.
    pub fn publish_word(&self, index: usize, value: u32) {
        assert!((index + 1) * 4 <= self.bytes, "word {index} of {} bytes", self.bytes);
        // SAFETY: within the allocation, which is aligned to a page; all accesses of the host to
        // such words go through this function, atomically.
        let word = unsafe { AtomicU32::from_ptr(self.start.cast::<u32>().add(index)) };
        word.store(value, Ordering::Release);
    }

    /// Reads a word that the device may write at the same time.
    ///
    /// # Panics
    /// Panics if `index` is beyond the end.
    pub fn read_word(&self, index: usize) -> u32 {
        assert!((index + 1) * 4 <= self.bytes, "word {index} of {} bytes", self.bytes);
        // SAFETY: as for publish_word.
        let word = unsafe { AtomicU32::from_ptr(self.start.cast::<u32>().add(index)) };
        word.load(Ordering::Acquire)
    }

    /// Waits until work on the stream has written `value` to a word.
    ///
    /// # Errors
    /// Returns a fault of the work on the stream, or of the driver.
    ///
    /// # Panics
    /// Panics if `index` is beyond the end.
    pub(super) fn wait_for_word(
        &self,
        index: usize,
        value: u32,
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        let mut asked = Instant::now();
        while self.read_word(index) != value {
            std::hint::spin_loop();
            // After a fault the device never writes the value.
            if asked.elapsed() >= FAULT_POLL {
                stream.is_done()?;
                asked = Instant::now();
            }
        }
        Ok(())
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: allocated and initialised by us; no code writes during the borrow, because every
        // copy into it takes the slice mutably and waits.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }

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

/// A pool of page-locked buffers for reuse, because locking pages takes far more time than a copy.
///
/// The pool holds at most `limit_bytes`. Above the limit it lends pageable memory, which the driver
/// copies through its own staging area. Kernels can read page-locked memory, so
/// [`PinnedPool::scrub`] zeroes returned buffers before the next job.
pub struct PinnedPool {
    context: Context,
    limit_bytes: usize,
    state: RefCell<PoolState>,
}

#[derive(Default)]
struct PoolState {
    free: Vec<Kept>,
    held_bytes: usize,
}

/// A buffer that is not in use. The number is the length of its beginning that may contain bytes
/// other than zero.
struct Kept {
    buffer: PinnedBuffer,
    used: usize,
}

impl PinnedPool {
    pub fn new(context: &Context, limit_bytes: usize) -> Rc<Self> {
        let state = RefCell::default();
        Rc::new(Self { context: context.clone(), limit_bytes, state })
    }

    /// Lends a buffer of `bytes` bytes. It contains zeros or earlier data of this job.
    pub fn take(self: &Rc<Self>, bytes: usize) -> Staging {
        match self.pinned(bytes) {
            Some(Kept { buffer, used }) => {
                let used = used.max(bytes);
                Staging { memory: Memory::Pinned(buffer), bytes, used, pool: Rc::clone(self) }
            }
            None => {
                let mut memory = vec![0; bytes];
                // This memory is new to the process. A single core would take longer to fault in
                // its pages than the device takes to fill them.
                let pages = memory.par_chunks_mut(PAGE_BYTES);
                pages.with_min_len(SCRUB_BYTES / PAGE_BYTES).for_each(|page| page[0] = 0);
                Staging { memory: Memory::Plain(memory), bytes, used: bytes, pool: Rc::clone(self) }
            }
        }
    }

    /// Zeroes all returned memory, so that no data of a job reaches the next job.
    pub fn scrub(&self) {
        let mut state = self.state.borrow_mut();
        let dirty = state.free.iter_mut().map(|kept| {
            let used = std::mem::take(&mut kept.used);
            &mut kept.buffer.bytes_mut()[..used]
        });
        // A single core cannot use the full bandwidth of the memory.
        let dirty = dirty.flat_map(|bytes| bytes.chunks_mut(SCRUB_BYTES)).collect::<Vec<_>>();
        dirty.into_par_iter().for_each(|bytes| bytes.fill(0));
    }

    fn pinned(&self, bytes: usize) -> Option<Kept> {
        let mut state = self.state.borrow_mut();
        // Uses the smallest buffer that is large enough, unless most of it would be wasted.
        let fit = |kept: &Kept| {
            let size = kept.buffer.bytes;
            size >= bytes && size / 4 <= bytes.max(1 << 16)
        };
        let best = state.free.iter().enumerate().filter(|(_, kept)| fit(kept));
        let best = best.min_by_key(|(_, kept)| kept.buffer.bytes).map(|(index, _)| index);
        if let Some(index) = best {
            return Some(state.free.swap_remove(index));
        }
        let size = bytes.max(1 << 16).checked_next_power_of_two()?;
        if size > self.limit_bytes {
            return None;
        }
        while state.held_bytes + size > self.limit_bytes {
            let mut freed = state.free.pop()?;
            freed.buffer.bytes_mut()[..freed.used].fill(0);
            state.held_bytes -= freed.buffer.bytes;
        }
        // If the system refuses to lock pages because of its limit, pageable memory is used, which
        // is slower.
        let buffer = PinnedBuffer::new(&self.context, size).ok()?;
        state.held_bytes += size;
        Some(Kept { buffer, used: 0 })
    }
}

enum Memory {
    Pinned(PinnedBuffer),
    Plain(Vec<u8>),
}

/// A buffer of host memory that a [`PinnedPool`] has lent.
pub struct Staging {
    memory: Memory,
    bytes: usize,
    /// Number of bytes that may not be zero when the memory is returned.
    used: usize,
    pool: Rc<PinnedPool>,
}

impl Staging {
    pub fn bytes(&self) -> &[u8] {
        match &self.memory {
            Memory::Pinned(buffer) => &buffer.bytes()[..self.bytes],
            Memory::Plain(bytes) => bytes,
        }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Pinned(buffer) => &mut buffer.bytes_mut()[..self.bytes],
            Memory::Plain(bytes) => bytes,
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let memory = std::mem::replace(&mut self.memory, Memory::Plain(Vec::new()));
        if let Memory::Pinned(buffer) = memory {
            self.pool.state.borrow_mut().free.push(Kept { buffer, used: self.used });
        }
    }
}

/// A copy to the host that may not be done yet.
pub struct PendingCopy {
    /// Buffer that receives the content. `None` only after the content was returned.
    target: Option<Staging>,
    context: Context,
}

impl PendingCopy {
    pub(super) fn new(target: Staging, context: &Context) -> Self {
        Self { target: Some(target), context: context.clone() }
    }

    /// Waits until the copy is done and returns the content.
    ///
    /// # Errors
    /// Returns a fault of work queued earlier, or of the driver.
    pub fn finish(self) -> Result<Staging, DeviceError> {
        let waited = self.context.synchronize();
        self.returned(waited)
    }

    /// Waits for an event that was recorded after the copy was queued, and returns the content.
    /// Later work may still run.
    ///
    /// # Errors
    /// Returns a fault of work queued before the event, or of the driver.
    pub(super) fn finish_at(self, passed: &Event) -> Result<Staging, DeviceError> {
        let waited = passed.synchronize();
        self.returned(waited)
    }

    fn returned(mut self, waited: Result<(), DeviceError>) -> Result<Staging, DeviceError> {
        // A fault means that the context is lost, and the copy has ended.
        let target = self.target.take();
        waited?;
        target.ok_or_else(|| {
            DeviceError::local(
                "copy from the device",
                FailureCode::InvalidValue,
                "its content was already returned",
            )
        })
    }
}

impl Drop for PendingCopy {
    fn drop(&mut self) {
        if self.target.is_some() {
            // If waiting fails, the context is lost and its copies have ended.
            let _ = self.context.synchronize();
        }
    }
}
