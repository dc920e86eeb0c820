//! The heap of device-side `malloc`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{AllocKind, Memory};

/// Alignment and minimum size of a block, bytes.
const ALIGN: u64 = 16;
/// Size of the heap if [`Memory::set_heap_limit`] does not change it, bytes. It is the default of a
/// GPU.
const DEFAULT: u64 = 8 << 20;

/// A heap within one allocation of device memory, created when a kernel that needs it is launched.
#[derive(Default)]
pub(crate) struct Heap {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    base: u64,
    bytes: u64,
    limit: Option<u64>,
    /// Free blocks: the offset of each, and its size. No two are adjacent.
    free: BTreeMap<u64, u64>,
    used: BTreeMap<u64, u64>,
}

impl Heap {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the size of the heap, bytes. Returns false if the heap exists already.
    pub(super) fn set_limit(&self, bytes: u64) -> bool {
        let mut s = self.lock();
        if s.bytes == 0 {
            s.limit = Some(bytes.max(ALIGN));
        }
        s.bytes == 0
    }

    pub(super) fn limit(&self) -> u64 {
        self.lock().limit.unwrap_or(DEFAULT)
    }

    /// Creates the heap, if it does not exist yet and memory is available.
    pub(crate) fn prepare(&self, memory: &Memory, device: u32) {
        let mut s = self.lock();
        let bytes = s.limit.unwrap_or(DEFAULT);
        if s.bytes == 0
            && let Ok(base) = memory.alloc(bytes, AllocKind::Device(device))
        {
            (s.base, s.bytes) = (base, bytes);
            s.free.insert(0, bytes);
        }
    }

    /// Allocates `bytes` bytes. Returns their address, or 0 if no free block is large enough.
    pub(crate) fn alloc(&self, bytes: u64) -> u64 {
        let mut s = self.lock();
        let Some(want) = bytes.max(1).checked_next_multiple_of(ALIGN) else {
            return 0;
        };
        let Some((at, have)) = s.free.iter().find(|(_, n)| **n >= want).map(|(a, n)| (*a, *n))
        else {
            return 0;
        };
        s.free.remove(&at);
        if have > want {
            s.free.insert(at + want, have - want);
        }
        s.used.insert(at, want);
        s.base + at
    }

    /// Frees a block that `alloc` returned. An address of 0 has no effect.
    pub(crate) fn free(&self, va: u64) -> Result<(), String> {
        if va == 0 {
            return Ok(());
        }
        let mut s = self.lock();
        let at = va.wrapping_sub(s.base);
        let Some(bytes) = s.used.remove(&at) else {
            return Err(format!(
                "free of {va:#x}: malloc did not return this address, or it is already freed"
            ));
        };
        let (mut from, mut to) = (at, at + bytes);
        if let Some((a, n)) = s.free.range(..at).next_back().map(|(a, n)| (*a, *n))
            && a + n == at
        {
            s.free.remove(&a);
            from = a;
        }
        if let Some(n) = s.free.remove(&to) {
            to += n;
        }
        s.free.insert(from, to - from);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_reused_and_joined() {
        let memory = Memory::new();
        let heap = Heap::default();
        assert!(heap.set_limit(256));
        heap.prepare(&memory, 0);
        let a: Vec<u64> = (0..16).map(|_| heap.alloc(10)).collect();
        assert!(a.iter().all(|v| *v != 0 && v % 16 == 0));
        assert_eq!(heap.alloc(1), 0);
        for v in a.iter().step_by(2).chain(a.iter().skip(1).step_by(2)) {
            heap.free(*v).unwrap();
        }
        assert!(heap.free(a[3]).is_err());
        assert_ne!(heap.alloc(256), 0);
    }
}
