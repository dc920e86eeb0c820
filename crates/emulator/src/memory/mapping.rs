//! Anonymous memory of this process. The operating system provides its pages on first access.

use std::io;
use std::ptr;

/// Unused addresses after a mapping, bytes. An overrun of up to this size does not reach the next
/// allocation, so it is detected.
const GAP: usize = 2 << 20;

/// An anonymous private mapping, which is unmapped on drop.
pub(super) struct Mapping {
    base: *mut libc::c_void,
    /// Length of the mapping without the gap, bytes.
    len: usize,
}

// SAFETY: a mapping is an address range owned by this value; it is only ever accessed through
// relaxed atomics (`raw`), from any thread.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves `len` bytes of zeros, and a gap after them.
    pub(super) fn new(len: usize) -> io::Result<Self> {
        let all = len.saturating_add(GAP);
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches no memory of
        // this program.
        let base = unsafe { libc::mmap(ptr::null_mut(), all, prot, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { base, len })
    }

    pub(super) fn base(&self) -> u64 {
        self.base as u64
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the pages to the operating system. The range stays reserved and reads as zeros.
    pub(super) fn discard(&self) {
        // SAFETY: the range is ours. A failure leaves the pages in place, which is harmless.
        unsafe { libc::madvise(self.base, self.len, libc::MADV_DONTNEED) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is ours and no longer reachable: tables of running launches hold the region
        // that holds this mapping.
        unsafe { libc::munmap(self.base, self.len + GAP) };
    }
}
