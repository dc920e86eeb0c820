//! Anonymous memory of this process, backed page by page as it is touched.

use std::io;
use std::ptr;

/// Addresses after a mapping that belong to no other, in bytes: an overrun of an allocation does not end
/// in its neighbour, and is found, as far as a page of device memory goes.
const GAP: usize = 2 << 20;

/// An anonymous private mapping; unmapped on drop.
pub(super) struct Mapping {
    base: *mut libc::c_void,
    /// Without the gap.
    len: usize,
}

// SAFETY: a mapping is an address range owned by this value; it is only ever accessed through
// relaxed atomics (`raw`), from whatever thread.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves `len` bytes of zeros, and a gap.
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

    /// Gives the pages back to the system; the range stays reserved and reads as zeros.
    pub(super) fn discard(&self) {
        // SAFETY: the range is ours. A failure leaves the pages in place, which is harmless.
        unsafe { libc::madvise(self.base, self.len, libc::MADV_DONTNEED) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is ours and nobody can reach it any more: tables of running launches
        // hold the region that holds this mapping.
        unsafe { libc::munmap(self.base, self.len + GAP) };
    }
}
