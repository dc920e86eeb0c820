//! Copies and fills between device, pinned and pageable memory.
//!
//! As with the real driver, the address determines the kind of memory: a pointer to host memory may
//! point to pinned memory. Addresses outside all allocations are pageable memory of the host. When
//! the call returns, an asynchronous copy *from* pageable memory has read it, and one *to* pageable
//! memory has finished. Only copies between pinned and device memory continue afterwards.

use std::sync::Arc;

use super::registry::registry;
use super::stream::Stream;
use super::task::{Fill, Task};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::host_bytes;

/// Maximum size of a copy from pageable memory that is staged, bytes. For a larger copy the call
/// waits for the stream.
const STAGED: u64 = 64 << 10;
/// Number of bytes moved at a time between host memory and device memory.
const CHUNK: usize = 1 << 20;

/// Rows of bytes to move. A plain copy is one row.
#[derive(Clone, Copy)]
pub struct Transfer {
    pub dst: Side,
    pub src: Side,
    /// Size of a row, bytes.
    pub width: u64,
    pub height: u64,
    pub depth: u64,
}

/// The source or the destination of a transfer.
#[derive(Clone, Copy)]
pub struct Side {
    pub at: u64,
    /// Distance between rows in bytes; the next field is the distance between layers.
    pub pitch: u64,
    pub layer: u64,
    /// Whether this is pageable host memory, which `Memory` does not contain.
    pub pageable: bool,
}

/// The kind of memory that a caller declares for a pointer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// A `CUdeviceptr`: it must be in an allocation.
    Device,
    /// The pointer may point to any kind of memory.
    Any,
}

impl Side {
    /// Returns the side of a transfer that is a contiguous range.
    pub fn flat(at: u64, bytes: u64, claim: Claim) -> Res<Side> {
        Side::pitched(at, [bytes, 1, 1], [bytes, bytes], claim)
    }

    /// Returns the side of a transfer that consists of rows and layers. If it begins in an
    /// allocation, the whole side must be within that allocation.
    pub fn pitched(at: u64, size: [u64; 3], steps: [u64; 2], claim: Claim) -> Res<Side> {
        let [width, height, depth] = size;
        let [pitch, layer] = steps;
        let side = Side { at, pitch, layer, pageable: false };
        if width == 0 || height == 0 || depth == 0 {
            return Ok(side);
        }
        let wide = |value: u64| u128::from(value);
        let last = wide(at) + wide(depth - 1) * wide(layer) + wide(height - 1) * wide(pitch);
        let end = last + wide(width);
        match registry()?.memory.allocation(at) {
            Some(found) if end <= wide(found.base) + wide(found.bytes) => Ok(side),
            Some(_) => Err(Code::INVALID_VALUE),
            None if claim == Claim::Device || at == 0 => Err(Code::INVALID_VALUE),
            None if end > wide(u64::MAX) => Err(Code::INVALID_VALUE),
            None => Ok(Side { pageable: true, ..side }),
        }
    }

    fn row(&self, layer: u64, row: u64) -> u64 {
        self.at + layer * self.layer + row * self.pitch
    }
}

impl Transfer {
    /// Returns the transfer of a contiguous range.
    pub fn flat(dst: (u64, Claim), src: (u64, Claim), bytes: u64) -> Res<Transfer> {
        Ok(Transfer {
            dst: Side::flat(dst.0, bytes, dst.1)?,
            src: Side::flat(src.0, bytes, src.1)?,
            width: bytes,
            height: 1,
            depth: 1,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }

    /// Performs the copy. The caller has already waited for all work that must precede it.
    pub fn run(&self) -> Res {
        for layer in 0..self.depth {
            for row in 0..self.height {
                self.move_row(self.dst.row(layer, row), self.src.row(layer, row))?;
            }
        }
        Ok(())
    }

    fn move_row(&self, dst: u64, src: u64) -> Res {
        let memory = &registry()?.memory;
        let fault = |_| Code::ILLEGAL_ADDRESS;
        match (self.dst.pageable, self.src.pageable) {
            (false, false) => memory.copy(dst, src, self.width).map_err(fault),
            (false, true) => chunks(self.width, |done, len| {
                // SAFETY: the caller of the copy function passed this range to be read. Either its call
                // has not returned (`submit` waits), or the stream's order guarantees the range.
                let bytes = unsafe { std::slice::from_raw_parts((src + done) as *const u8, len) };
                memory.write(dst + done, bytes).map_err(fault)
            }),
            (true, false) => chunks(self.width, |done, len| {
                let at = (dst + done) as *mut u8;
                // SAFETY: as above, for writing.
                let bytes = unsafe { std::slice::from_raw_parts_mut(at, len) };
                memory.read(src + done, bytes).map_err(fault)
            }),
            (true, true) => {
                // SAFETY: as above, for both; `copy` allows overlap.
                unsafe {
                    std::ptr::copy(src as *const u8, dst as *mut u8, self.width as usize);
                }
                Ok(())
            }
        }
    }

    /// Queues the copy in a stream. If `wait` is set, the call waits until the copy has finished,
    /// regardless of the kind of memory.
    pub fn submit(self, stream: &Stream, wait: bool) -> Res {
        if self.is_empty() {
            return Ok(());
        }
        if stream.captures() {
            return if wait { stream.forbid_capture() } else { stream.submit(Task::Copy(self)) };
        }
        let one_row = self.height == 1 && self.depth == 1;
        if self.src.pageable && !self.dst.pageable && one_row && self.width <= STAGED && !wait {
            // SAFETY: the caller passed this range to be read during the call.
            let bytes = unsafe { host_bytes(self.src.at as *const _, self.width as usize) };
            let bytes: Arc<[u8]> = bytes.into();
            return stream.submit(Task::Staged { dst: self.dst.at, bytes });
        }
        let point = stream.push(Task::Copy(self))?;
        if wait || self.src.pageable || self.dst.pageable {
            point.wait();
            stream.queue.core.flush_printf();
            return stream.queue.core.check();
        }
        Ok(())
    }
}

fn chunks(bytes: u64, mut each: impl FnMut(u64, usize) -> Res) -> Res {
    let mut done = 0;
    while done < bytes {
        let len = (bytes - done).min(CHUNK as u64) as usize;
        each(done, len)?;
        done += len as u64;
    }
    Ok(())
}

impl Fill {
    /// Checks the range and queues the fill in a stream.
    pub fn submit(self, stream: &Stream) -> Res {
        if self.width == 0 || self.height == 0 {
            return Ok(());
        }
        self.check()?;
        stream.submit(Task::Fill(self))
    }

    /// Checks that the rows are aligned and within one allocation.
    pub fn check(&self) -> Res {
        let element = u64::from(self.element);
        let row = self.width.checked_mul(element).ok_or(Code::INVALID_VALUE)?;
        let aligned = self.dst.is_multiple_of(element)
            && (self.height == 1 || self.pitch.is_multiple_of(element));
        if !aligned || (self.height > 1 && self.pitch < row) {
            return Err(Code::INVALID_VALUE);
        }
        Side::pitched(self.dst, [row, self.height, 1], [self.pitch, 0], Claim::Device).map(|_| ())
    }
}
