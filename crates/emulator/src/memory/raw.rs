//! Bulk access to device memory by relaxed atomics.
//!
//! The caller of each function has checked the addresses against an allocation that is mapped for the
//! duration of the call.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// Returns the byte at `va`.
///
/// # Safety
/// `va` is mapped, readable and writable.
#[inline(always)]
unsafe fn byte<'a>(va: u64) -> &'a AtomicU8 {
    // SAFETY: by contract; a u8 has no alignment.
    unsafe { AtomicU8::from_ptr(va as *mut u8) }
}

/// Returns the aligned 8 bytes at `va`.
///
/// # Safety
/// `va..va + 8` is mapped, readable and writable, and `va` is a multiple of 8.
#[inline(always)]
unsafe fn word<'a>(va: u64) -> &'a AtomicU64 {
    // SAFETY: by contract.
    unsafe { AtomicU64::from_ptr(va as *mut u64) }
}

/// Returns the number of bytes before the first multiple of 8 at or after `va`, at most `len`.
fn head(va: u64, len: usize) -> usize {
    (va.wrapping_neg() % 8).min(len as u64) as usize
}

/// Copies `data` to `va`.
///
/// # Safety
/// `va..va + data.len()` is mapped, readable and writable.
pub(crate) unsafe fn write(va: u64, data: &[u8]) {
    let (first, rest) = data.split_at(head(va, data.len()));
    for (i, b) in first.iter().enumerate() {
        // SAFETY: within the range.
        unsafe { byte(va + i as u64) }.store(*b, Relaxed);
    }
    let mut at = va + first.len() as u64;
    let mut words = rest.chunks_exact(8);
    for w in &mut words {
        let mut b = [0; 8];
        b.copy_from_slice(w);
        // SAFETY: within the range, and a multiple of 8.
        unsafe { word(at) }.store(u64::from_ne_bytes(b), Relaxed);
        at += 8;
    }
    for (i, b) in words.remainder().iter().enumerate() {
        // SAFETY: within the range.
        unsafe { byte(at + i as u64) }.store(*b, Relaxed);
    }
}

/// Copies `out.len()` bytes from `va`.
///
/// # Safety
/// `va..va + out.len()` is mapped, readable and writable.
pub(crate) unsafe fn read(va: u64, out: &mut [u8]) {
    let (first, rest) = out.split_at_mut(head(va, out.len()));
    for (i, b) in first.iter_mut().enumerate() {
        // SAFETY: within the range.
        *b = unsafe { byte(va + i as u64) }.load(Relaxed);
    }
    let mut at = va + first.len() as u64;
    let mut words = rest.chunks_exact_mut(8);
    for w in &mut words {
        // SAFETY: within the range, and a multiple of 8.
        w.copy_from_slice(&unsafe { word(at) }.load(Relaxed).to_ne_bytes());
        at += 8;
    }
    for (i, b) in words.into_remainder().iter_mut().enumerate() {
        // SAFETY: within the range.
        *b = unsafe { byte(at + i as u64) }.load(Relaxed);
    }
}

/// Copies `bytes` bytes from `src` to `dst`, forwards.
///
/// # Safety
/// Both ranges are mapped, readable and writable.
pub(crate) unsafe fn copy(dst: u64, src: u64, bytes: u64) {
    let mut buffer = [0u8; 4096];
    let mut done = 0;
    while done < bytes {
        let n = (bytes - done).min(4096) as usize;
        // SAFETY: within the ranges.
        unsafe {
            read(src + done, &mut buffer[..n]);
            write(dst + done, &buffer[..n]);
        }
        done += n as u64;
    }
}

/// Repeats `pattern`, whose length divides 4096, over `bytes` bytes at `va`.
///
/// # Safety
/// The range is mapped, readable and writable.
pub(crate) unsafe fn fill(va: u64, pattern: &[u8], bytes: u64) {
    let mut buffer = [0u8; 4096];
    for chunk in buffer.chunks_exact_mut(pattern.len()) {
        chunk.copy_from_slice(pattern);
    }
    let mut done = 0;
    while done < bytes {
        let n = (bytes - done).min(4096) as usize;
        // SAFETY: within the range.
        unsafe { write(va + done, &buffer[..n]) };
        done += n as u64;
    }
}
