//! Memory pools. A pool is only a label of a device's allocations: released memory returns to the
//! operating system at once. So there is nothing to trim, and the reserved memory equals the used
//! memory.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::registry::registry;
use crate::driver::c::abi::Handle;
use crate::driver::c::code::Res;

/// A memory pool of a device.
pub struct Pool {
    pub device: u32,
    pub threshold: AtomicU64,
    /// Values of the attributes `CU_MEMPOOL_ATTR_REUSE_…`, which have no effect.
    pub reuse: Mutex<[u32; 3]>,
    pub high: AtomicU64,
}

impl Pool {
    pub fn of(device: u32) -> Self {
        let reuse = Mutex::new([1; 3]);
        Pool { device, threshold: AtomicU64::new(0), reuse, high: AtomicU64::new(0) }
    }

    /// Returns the bytes in use, and the maximum of the values returned so far.
    pub fn used(&self, handle: Handle) -> Res<(u64, u64)> {
        let used = registry()?.ledger.used_of_pool(handle);
        let high = self.high.fetch_max(used, Ordering::AcqRel).max(used);
        Ok((used, high))
    }
}
