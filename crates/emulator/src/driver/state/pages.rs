//! Pages that the driver maps itself: pinned and managed memory, and memory shared by processes.

use std::fs::File;
use std::io::{self, Error};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::ptr::null_mut;

/// A readable and writable mapping, which is unmapped on drop.
pub struct Pages {
    base: *mut u8,
    bytes: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread; this value is only its address.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Returns zeroed memory of this process. Its pages are allocated on first access.
    pub fn anonymous(bytes: u64) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        Self::map(null_mut(), bytes, flags, -1)
    }

    /// Maps the first `bytes` bytes of a file, shared with other processes that map it.
    pub fn shared(file: &File, bytes: u64) -> io::Result<Self> {
        Self::map(null_mut(), bytes, libc::MAP_SHARED, file.as_raw_fd())
    }

    fn map(at: *mut u8, bytes: u64, flags: i32, fd: i32) -> io::Result<Self> {
        let bytes = usize::try_from(bytes).map_err(|_| Error::from(io::ErrorKind::OutOfMemory))?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: without MAP_FIXED, a new mapping affects no memory that is in use; callers that specify
        // the address own the range there.
        let base = unsafe { libc::mmap(at.cast(), bytes, access, flags, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        Ok(Pages { base: base.cast(), bytes })
    }

    pub fn base(&self) -> *mut u8 {
        self.base
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: this value owns the range, and the ledger keeps the value as long as any running work
        // may access the range.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

/// Writes the contents of a range to the start of a file. Every byte is written, including zeros,
/// so that a full file system causes an error now and not when the memory is used.
///
/// # Safety
/// The range is mapped, and no code writes to it during the call.
pub unsafe fn save(base: u64, bytes: u64, file: &File) -> io::Result<()> {
    // SAFETY: by contract.
    let contents = unsafe { std::slice::from_raw_parts(base as *const u8, bytes as usize) };
    file.write_all_at(contents, 0)
}

/// Replaces a mapped range by a mapping of a file that is `bytes` bytes long.
///
/// # Safety `base` begins a page of a private mapping that is `bytes` bytes long, rounded up to
/// pages. Its owner may unmap it but does not depend on what backs it. No code accesses it during
/// the call.
pub unsafe fn share(base: u64, bytes: u64, file: &File) -> io::Result<()> {
    let flags = libc::MAP_SHARED | libc::MAP_FIXED;
    let pages = Pages::map(base as *mut u8, bytes, flags, file.as_raw_fd())?;
    // The range belongs to the owner of the previous mapping.
    std::mem::forget(pages);
    Ok(())
}

/// Reverses [`share`]: private memory that contains zeros replaces the file. If that fails, the
/// file stays mapped.
///
/// # Safety The requirements of [`share`] apply, except that other code may access the range during
/// the call.
pub unsafe fn unshare(base: u64, bytes: u64) {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    if let Ok(pages) = Pages::map(base as *mut u8, bytes, flags, -1) {
        std::mem::forget(pages);
    }
}
