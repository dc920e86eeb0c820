//! Limits that parent and child of a compilation, or several parts of the parent, share.

use std::time::Duration;

/// Longest source, in bytes.
pub(crate) const MAX_SOURCE_BYTES: usize = 16 << 20;

/// Time that a compilation always has: what a request allows for a run may be far less than it takes
/// to start a compiler.
pub const LEAST_TIMEOUT: Duration = Duration::from_secs(10);

/// Address space of a compilation, bytes. NVRTC itself maps about 1 GiB; cub takes 1 GiB more.
pub(crate) const ADDRESS_SPACE: u64 = 8 << 30;

/// Largest file a compilation may write, bytes.
pub(crate) const FILE_SIZE: u64 = 256 << 20;

/// Processor time that a compilation with this deadline may take, seconds: compilers may use two
/// threads.
pub(crate) fn cpu_limit(timeout: Duration) -> u64 {
    timeout.as_secs().saturating_mul(2).saturating_add(2)
}
