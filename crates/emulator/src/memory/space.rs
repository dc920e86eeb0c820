//! Allocates and releases device memory, and accesses it on behalf of the host.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::mapping::Mapping;
use super::shadow::Shadow;
use super::table::{Freed, Region, Table};
use super::texture::TexelObject;
use super::{Heap, MemoryError, raw};

/// Number of freed allocations whose addresses stay reserved, to identify a use after free.
const QUARANTINE: usize = 256;
/// Maximum bytes of address space that freed allocations keep reserved.
const QUARANTINE_BYTES: u64 = 1 << 40;
/// Maximum size of an allocation, bytes. It fits well into a 47-bit user address space.
const LARGEST: u64 = 1 << 44;

/// The purpose for which memory is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllocKind {
    /// Memory of the device with this ordinal.
    Device(u32),
    /// Host memory that devices can access.
    Host,
    /// Variables of a module loaded on the device with this ordinal.
    Module(u32),
}

/// Description of an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// First address of the allocation.
    pub base: u64,
    /// Requested size of the allocation, bytes.
    pub bytes: u64,
    pub kind: AllocKind,
}

/// The address space that all emulated devices and the host share.
#[derive(Default)]
pub struct Memory {
    state: RwLock<State>,
    track: AtomicBool,
    heap: Heap,
}

#[derive(Default)]
struct State {
    live: BTreeMap<u64, Arc<Region>>,
    freed: VecDeque<Arc<Region>>,
    freed_bytes: u64,
    objects: Arc<HashMap<u64, TexelObject>>,
    /// The table of `live` and of the textures and surfaces. It is discarded when one of them
    /// changes.
    table: Option<Arc<Table>>,
}

impl State {
    fn find(&self, va: u64) -> Option<&Arc<Region>> {
        let (_, region) = self.live.range(..=va).next_back()?;
        (va < region.end()).then_some(region)
    }

    fn table(&mut self) -> Arc<Table> {
        let build = || Table {
            regions: self.live.values().cloned().collect(),
            freed: self.freed.iter().map(|r| Freed::of(r)).collect(),
            objects: Arc::clone(&self.objects),
        };
        self.table.get_or_insert_with(|| Arc::new(build())).clone()
    }

    /// Inserts a region if its range is free.
    fn insert(&mut self, region: Region) -> Result<u64, MemoryError> {
        let (va, bytes) = (region.base, region.bytes);
        let last = self.live.range(..va + bytes).next_back().map(|(_, r)| r);
        if let Some(other) = last.filter(|r| r.end() > va) {
            return Err(MemoryError::Overlap { va, bytes, other: other.base });
        }
        self.forget_freed(va, bytes);
        self.live.insert(va, Arc::new(region));
        self.table = None;
        Ok(va)
    }

    /// Removes the records of freed regions in a range that is in use again.
    fn forget_freed(&mut self, va: u64, bytes: u64) {
        let before = self.freed.len();
        self.freed.retain(|r| r.end() <= va || va + bytes <= r.base);
        if self.freed.len() != before {
            self.freed_bytes = self.freed.iter().map(|r| r.bytes).sum();
        }
    }

    fn quarantine(&mut self, region: Arc<Region>) {
        if let Some(mapping) = &region.backing {
            // A running launch may still read the pages. Then they are released together with the
            // region.
            if Arc::strong_count(&region) == 1 {
                mapping.discard();
            }
        }
        self.freed_bytes += region.bytes;
        self.freed.push_back(region);
        while self.freed.len() > QUARANTINE || self.freed_bytes > QUARANTINE_BYTES {
            let Some(old) = self.freed.pop_front() else {
                break;
            };
            self.freed_bytes -= old.bytes;
        }
    }
}

impl Memory {
    /// Creates an empty address space.
    pub fn new() -> Self {
        Self::default()
    }

    fn read_state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_state(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets whether future allocations record which of their bytes have been written. The check for
    /// uninitialised reads needs this record, which takes an eighth of the memory and slows
    /// accesses down.
    pub fn track_initialisation(&self, on: bool) {
        self.track.store(on, Relaxed);
    }

    /// Reserves `bytes` zero bytes, aligned to a page. The operating system provides a page on
    /// first access.
    ///
    /// # Errors Fails if `bytes` is 0 or above 2^44, or if no memory is available.
    pub fn alloc(&self, bytes: u64, kind: AllocKind) -> Result<u64, MemoryError> {
        let len = size(bytes)?;
        let failed = |source| MemoryError::Reserve { bytes, source };
        let mapping = Mapping::new(len).map_err(failed)?;
        // Variables of a module are always initialised: they are zero unless the PTX sets them.
        let track = self.track.load(Relaxed) && !matches!(kind, AllocKind::Module(_));
        let shadow = track.then(|| Shadow::new(bytes)).transpose().map_err(failed)?;
        let region = Region::new(mapping.base(), bytes, kind, Some(mapping), shadow);
        self.write_state().insert(region)
    }

    /// Reserves a range like [`alloc`](Self::alloc). The caller replaces it by memory of another
    /// process. All of it counts as written. After its release, messages call the range closed
    /// instead of freed.
    ///
    /// # Errors The errors of [`alloc`](Self::alloc).
    pub fn alloc_foreign(&self, bytes: u64, kind: AllocKind) -> Result<u64, MemoryError> {
        let failed = |source| MemoryError::Reserve { bytes, source };
        let mapping = Mapping::new(size(bytes)?).map_err(failed)?;
        let mut region = Region::new(mapping.base(), bytes, kind, Some(mapping), None);
        region.foreign = true;
        self.write_state().insert(region)
    }

    /// Marks all of the allocation that contains `va` as written, because other processes write to
    /// it too.
    ///
    /// # Errors
    /// Fails if `va` is in no allocation.
    pub fn assume_written(&self, va: u64) -> Result<(), MemoryError> {
        let region = self.region(va, 1)?;
        mark(&region, region.base, region.bytes);
        Ok(())
    }

    /// Adds memory of the caller to the space, at its existing address. All of it counts as
    /// written. The caller keeps it mapped until [`unmap`](Self::unmap) has returned and every
    /// launch that was running at that time has ended.
    ///
    /// # Errors
    /// Fails if `bytes` is 0 or above 2^44, if `host` is null or the end overflows, or if the range
    /// overlaps another allocation.
    pub fn map(&self, host: *mut u8, bytes: u64, kind: AllocKind) -> Result<u64, MemoryError> {
        size(bytes)?;
        let va = host as u64;
        if va == 0 || va.checked_add(bytes).is_none() {
            return Err(MemoryError::Size { bytes });
        }
        self.write_state().insert(Region::new(va, bytes, kind, None, None))
    }

    /// Releases an allocation that [`alloc`](Self::alloc) returned.
    ///
    /// # Errors
    /// Fails if `va` is not the start of such an allocation.
    pub fn free(&self, va: u64) -> Result<(), MemoryError> {
        self.remove(va, true, "an allocation of device memory")
    }

    /// Removes a range that [`map`](Self::map) added.
    ///
    /// # Errors
    /// Fails if `va` is not the start of such a range.
    pub fn unmap(&self, va: u64) -> Result<(), MemoryError> {
        self.remove(va, false, "a mapped range of host memory")
    }

    fn remove(&self, va: u64, owned: bool, what: &'static str) -> Result<(), MemoryError> {
        let mut state = self.write_state();
        if state.live.get(&va).is_none_or(|r| r.backing.is_some() != owned) {
            return Err(MemoryError::NotBase { va, what });
        }
        state.table = None;
        if let Some(region) = state.live.remove(&va) {
            state.quarantine(region);
        }
        Ok(())
    }

    /// Adds a texture or a surface. Kernels find it by its handle from the next launch on.
    pub fn add_object(&self, handle: u64, object: TexelObject) {
        let mut state = self.write_state();
        Arc::make_mut(&mut state.objects).insert(handle, object);
        state.table = None;
    }

    /// Removes the texture or surface of a handle if `is_it` returns true for it. Returns whether
    /// it was removed.
    pub fn remove_object(&self, handle: u64, is_it: impl Fn(&TexelObject) -> bool) -> bool {
        let mut state = self.write_state();
        let found = state.objects.get(&handle).is_some_and(is_it);
        if found {
            Arc::make_mut(&mut state.objects).remove(&handle);
            state.table = None;
        }
        found
    }

    /// Returns the allocation that contains `va`.
    pub fn allocation(&self, va: u64) -> Option<Allocation> {
        let state = self.read_state();
        let r = state.find(va)?;
        Some(Allocation { base: r.base, bytes: r.bytes, kind: r.kind })
    }

    /// Sets whether the allocation that contains `va` is read-only for kernels. A store to or an
    /// atomic on read-only memory causes the finding `read_only_write`, or a fault without the
    /// sanitiser.
    ///
    /// # Errors
    /// Fails if `va` is in no allocation.
    pub fn set_read_only(&self, va: u64, on: bool) -> Result<(), MemoryError> {
        let region = self.region(va, 1)?;
        region.set_read_only(on);
        Ok(())
    }

    /// Returns the region that contains all `bytes` bytes at `va`.
    fn region(&self, va: u64, bytes: u64) -> Result<Arc<Region>, MemoryError> {
        let mut found = self.read_state().find(va).cloned();
        // The end of an allocation is a valid start of an empty range.
        if found.is_none() && bytes == 0 && va > 0 {
            found = self.read_state().find(va - 1).cloned();
        }
        let Some(r) = found else {
            let note = format!(": {}", self.snapshot().describe(va));
            return Err(MemoryError::NotAllocated { va, note });
        };
        if bytes > r.end() - va {
            return Err(MemoryError::OutOfRange { va, bytes, base: r.base, size: r.bytes });
        }
        Ok(r)
    }

    /// Copies `data` to `va`.
    ///
    /// # Errors
    /// Fails if the range is not within one allocation.
    pub fn write(&self, va: u64, data: &[u8]) -> Result<(), MemoryError> {
        let r = self.region(va, data.len() as u64)?;
        // SAFETY: the range is within `r`, which stays mapped while we hold it.
        unsafe { raw::write(va, data) };
        mark(&r, va, data.len() as u64);
        Ok(())
    }

    /// Copies `out.len()` bytes from `va`.
    ///
    /// # Errors
    /// Fails if the range is not within one allocation.
    pub fn read(&self, va: u64, out: &mut [u8]) -> Result<(), MemoryError> {
        let _r = self.region(va, out.len() as u64)?;
        // SAFETY: the range is within `_r`, which stays mapped while we hold it.
        unsafe { raw::read(va, out) };
        Ok(())
    }

    /// Copies `bytes` bytes from `src` to `dst`. The ranges should not overlap.
    ///
    /// # Errors
    /// Fails if one of the ranges is not within one allocation.
    pub fn copy(&self, dst: u64, src: u64, bytes: u64) -> Result<(), MemoryError> {
        let (to, from) = (self.region(dst, bytes)?, self.region(src, bytes)?);
        // SAFETY: the ranges are within `to` and `from`, which stay mapped while we hold them.
        unsafe { raw::copy(dst, src, bytes) };
        match (&to.shadow, &from.shadow) {
            (Some(t), Some(f)) => t.copy(dst - to.base, f, src - from.base, bytes),
            _ => mark(&to, dst, bytes),
        }
        Ok(())
    }

    /// Writes `pattern` (1, 2 or 4 bytes) `count` times from `va`.
    ///
    /// # Errors
    /// Fails if the length of the pattern is not 1, 2 or 4, or if the range is not within one
    /// allocation.
    pub fn fill(&self, va: u64, pattern: &[u8], count: u64) -> Result<(), MemoryError> {
        let len = pattern.len();
        if !matches!(len, 1 | 2 | 4) {
            return Err(MemoryError::Pattern { len });
        }
        let bytes = count.checked_mul(len as u64).ok_or(MemoryError::Size { bytes: count })?;
        let r = self.region(va, bytes)?;
        // SAFETY: the range is within `r`, which stays mapped while we hold it.
        unsafe { raw::fill(va, pattern, bytes) };
        mark(&r, va, bytes);
        Ok(())
    }

    /// Returns the heap of device-side `malloc`.
    pub(crate) fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Sets the size of the heap of device-side `malloc`, in bytes (`cudaLimitMallocHeapSize`). Returns
    /// false if a kernel that uses the heap has already been launched.
    pub fn set_heap_limit(&self, bytes: u64) -> bool {
        self.heap.set_limit(bytes)
    }

    /// Returns the size of the heap of device-side `malloc`, in bytes.
    pub fn heap_limit(&self) -> u64 {
        self.heap.limit()
    }

    /// Returns a table of all current allocations.
    pub(crate) fn snapshot(&self) -> Arc<Table> {
        if let Some(table) = &self.read_state().table {
            return table.clone();
        }
        self.write_state().table()
    }
}

fn size(bytes: u64) -> Result<usize, MemoryError> {
    if bytes == 0 || bytes > LARGEST {
        return Err(MemoryError::Size { bytes });
    }
    usize::try_from(bytes).map_err(|_| MemoryError::Size { bytes })
}

fn mark(region: &Region, va: u64, bytes: u64) {
    if let Some(shadow) = &region.shadow {
        shadow.mark(va - region.base, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_any_alignment_round_trip() {
        let m = Memory::new();
        let a = m.alloc(10_000, AllocKind::Device(0)).unwrap();
        let b = m.alloc(10_000, AllocKind::Device(0)).unwrap();
        assert_eq!(a % 512, 0);
        let data: Vec<u8> = (0..9001u32).map(|i| (i * 7) as u8).collect();
        for shift in [0, 1, 3, 8, 13] {
            m.write(a + shift, &data).unwrap();
            m.copy(b + 5, a + shift, 9001).unwrap();
            let mut out = vec![0; 9001];
            m.read(b + 5, &mut out).unwrap();
            assert_eq!(out, data);
        }
        m.fill(a + 2, &[1, 2], 3).unwrap();
        let mut out = [0; 6];
        m.read(a + 2, &mut out).unwrap();
        assert_eq!(out, [1, 2, 1, 2, 1, 2]);
    }

    #[test]
    fn ranges_outside_an_allocation_are_refused() {
        let m = Memory::new();
        let a = m.alloc(100, AllocKind::Device(0)).unwrap();
        assert!(m.write(a + 97, &[0; 3]).is_ok());
        assert!(matches!(m.write(a + 98, &[0; 3]), Err(MemoryError::OutOfRange { .. })));
        let e = m.write(a + 100, &[0; 1]).unwrap_err();
        assert!(e.to_string().contains("0 bytes after a 100-byte allocation"), "{e}");
        assert!(m.fill(a, &[0; 4], u64::MAX / 2).is_err());
        assert!(m.free(a + 1).is_err());
        m.free(a).unwrap();
        assert!(matches!(m.free(a), Err(MemoryError::NotBase { .. })));
        let e = m.read(a + 4, &mut [0; 1]).unwrap_err();
        assert!(e.to_string().contains("4 bytes into a freed 100-byte allocation"), "{e}");
    }

    #[test]
    fn neighbours_do_not_touch() {
        let m = Memory::new();
        let all: Vec<u64> =
            (1..40).map(|n| m.alloc(n * 4096, AllocKind::Device(0)).unwrap()).collect();
        for (va, n) in all.iter().zip(1..) {
            let end = va + n * 4096;
            assert_eq!(m.allocation(end - 1).unwrap().base, *va);
            for after in [0, 255, 4095] {
                assert_eq!(m.allocation(end + after), None, "{after} bytes after");
            }
        }
    }

    #[test]
    fn mapped_memory_keeps_its_address_and_belongs_to_the_caller() {
        let m = Memory::new();
        let mut host = vec![0u8; 64];
        let va = m.map(host.as_mut_ptr(), 64, AllocKind::Host).unwrap();
        assert_eq!(va, host.as_ptr() as u64);
        assert!(matches!(
            m.map((va + 8) as *mut u8, 8, AllocKind::Host),
            Err(MemoryError::Overlap { .. })
        ));
        m.write(va + 3, &[9]).unwrap();
        assert!(m.free(va).is_err());
        m.unmap(va).unwrap();
        assert_eq!(host[3], 9);
        assert!(m.allocation(va).is_none());
    }
}
