//! The C library's streams, through which the driver prints.

use std::ffi::{c_int, c_void};

unsafe extern "C" {
    fn fflush(stream: *mut c_void) -> c_int;
}

/// Flushes the C library's buffers. When this function returns, the text of a kernel's `printf` has
/// left the process.
pub fn flush_c_streams() {
    // SAFETY: a null stream means all streams; the call has no other precondition.
    let _ = unsafe { fflush(std::ptr::null_mut()) };
}
