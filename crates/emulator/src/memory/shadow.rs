//! A record of which bytes of an allocation have been written, one bit per byte.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use super::mapping::Mapping;

/// Bit `i % 8` of byte `i / 8` is set when byte `i` of the allocation has been written.
pub(crate) struct Shadow {
    bits: Mapping,
}

impl Shadow {
    /// Creates the record for `bytes` bytes, none of which has been written.
    pub(super) fn new(bytes: u64) -> io::Result<Self> {
        Ok(Self { bits: Mapping::new((bytes as usize).div_ceil(8))? })
    }

    fn at(&self, index: u64) -> &AtomicU8 {
        debug_assert!((index as usize) < self.bits.len());
        // SAFETY: the index is within the mapping, which lives as long as `self`.
        unsafe { AtomicU8::from_ptr((self.bits.base() + index) as *mut u8) }
    }

    /// Marks `len` bytes from `offset` as written.
    pub(crate) fn mark(&self, offset: u64, len: u64) {
        each_byte(offset, len, |index, mask| {
            if self.at(index).load(Relaxed) & mask != mask {
                self.at(index).fetch_or(mask, Relaxed);
            }
            true
        });
    }

    /// Returns whether all `len` bytes from `offset` have been written.
    pub(crate) fn written(&self, offset: u64, len: u64) -> bool {
        each_byte(offset, len, |index, mask| self.at(index).load(Relaxed) & mask == mask)
    }

    /// Copies the records of `len` bytes from `from` in `source` to `offset` in this record.
    pub(super) fn copy(&self, offset: u64, source: &Shadow, from: u64, len: u64) {
        for i in 0..len {
            let bit = source.at((from + i) / 8).load(Relaxed) >> ((from + i) % 8) & 1;
            let (index, mask) = ((offset + i) / 8, 1 << ((offset + i) % 8));
            if bit == 1 {
                self.at(index).fetch_or(mask, Relaxed);
            } else {
                self.at(index).fetch_and(!mask, Relaxed);
            }
        }
    }
}

/// Calls `f` with each shadow byte of a range and the mask of its bits, until `f` returns false.
/// Returns whether all calls returned true.
fn each_byte(offset: u64, len: u64, mut f: impl FnMut(u64, u8) -> bool) -> bool {
    let (mut at, end) = (offset, offset + len);
    while at < end {
        let bit = at % 8;
        let n = (8 - bit).min(end - at);
        let mask = (((1u16 << n) - 1) << bit) as u8;
        if !f(at / 8, mask) {
            return false;
        }
        at += n;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_exactly_the_range() {
        let s = Shadow::new(64).unwrap();
        s.mark(5, 14);
        assert!(s.written(5, 14));
        assert!(!s.written(4, 1));
        assert!(!s.written(18, 2));
        let t = Shadow::new(64).unwrap();
        t.copy(8, &s, 4, 3);
        assert!(!t.written(8, 1));
        assert!(t.written(9, 2));
    }
}
