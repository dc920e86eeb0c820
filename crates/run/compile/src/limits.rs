//! Limits that the parent and the child of a compilation share, or that several parts of the parent
//! use.

use std::time::Duration;

/// Maximum length of a source, bytes.
pub(crate) const MAX_SOURCE_BYTES: usize = 16 << 20;

/// Minimum time limit of a compilation. A request's time limit for a run may be far shorter than
/// the start-up time of a compiler.
pub const LEAST_TIMEOUT: Duration = Duration::from_secs(10);

/// Limit of a compilation's address space, bytes. NVRTC maps about 1 GiB; a source with CUB needs 1
/// GiB more.
pub(crate) const ADDRESS_SPACE: u64 = 8 << 30;

/// Maximum size of a file that a compilation writes, bytes.
pub(crate) const FILE_SIZE: u64 = 256 << 20;

/// Returns the limit of processor time for a compilation with this deadline, seconds. Compilers may
/// use two threads.
pub(crate) fn cpu_limit(timeout: Duration) -> u64 {
    timeout.as_secs().saturating_mul(2).saturating_add(2)
}
