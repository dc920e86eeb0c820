//! The owners of memory: the driver's records of allocations in `Memory`.
//!
//! `Memory` knows the mapped ranges. The ledger knows in which context memory was allocated, how to
//! release it, and how many bytes each device has allocated.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::device::DeviceInfo;
use super::pages::{self, Pages};
use super::registry::registry;
use super::segment::{Content, Name, Segment};
use crate::driver::c::abi::Handle;
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::lock;
use crate::memory::AllocKind;

/// The function that made an allocation. It determines how the allocation is released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The allocation was made by `cuMemAlloc`, a similar function, or `cuMemAllocAsync`.
    Device,
    /// The allocation was made by `cuMemAllocManaged`.
    Managed,
    /// The allocation was made by `cuMemAllocHost` or `cuMemHostAlloc`.
    Pinned,
    /// The memory belongs to the caller, and was added by `cuMemHostRegister`.
    Registered,
    /// The memory belongs to another process, and was opened by `cuIpcOpenMemHandle`.
    Imported,
    /// The allocation was made while a graph was captured. It is released with the graph.
    Graph,
    /// The allocation was made by `cuArrayCreate` or `cuArray3DCreate`.
    Array,
}

/// Description of an allocation.
#[derive(Clone, Copy)]
pub struct Block {
    pub base: u64,
    pub bytes: u64,
    pub kind: Kind,
    pub context: Handle,
    pub device: u32,
    /// Flags of `cuMemHostAlloc` or `cuMemHostRegister`.
    pub flags: u32,
    /// The pool of the allocation; 0 means none.
    pub pool: Handle,
    /// A number that is unique among all allocations of the process.
    pub id: u64,
    /// Whether a release is queued in a stream.
    pub leaving: bool,
}

struct Row {
    block: Block,
    /// Pages that the driver mapped itself. For other allocations `Memory` owns the pages.
    pages: Option<Pages>,
    /// The file behind the allocation, if it is shared with other processes.
    shared: Option<Shared>,
}

/// The part of an allocation's record that exists if processes share the memory.
enum Shared {
    /// Memory of this process, exported to others. The file is removed with the allocation.
    Exported(Arc<Segment>),
    /// Memory of another process: its name, and the number of times it was opened and not yet
    /// closed.
    Imported { name: Name, opened: u64 },
}

/// Running work by start number, and pages to unmap once all work that started before their release
/// has ended.
#[derive(Default)]
struct Activity {
    next: u64,
    running: BTreeSet<u64>,
    retired: Vec<(u64, Pages)>,
}

/// The allocations by address, and their total size per device.
#[derive(Default)]
struct Book {
    rows: BTreeMap<u64, Row>,
    used: BTreeMap<u32, u64>,
}

impl Book {
    fn insert(&mut self, row: Row) {
        if limited(row.block.kind) {
            *self.used.entry(row.block.device).or_default() += row.block.bytes;
        }
        self.rows.insert(row.block.base, row);
    }

    fn remove(&mut self, base: u64) -> Option<Row> {
        let row = self.rows.remove(&base)?;
        if limited(row.block.kind) {
            *self.used.entry(row.block.device).or_default() -= row.block.bytes;
        }
        Some(row)
    }

    fn used(&self, device: u32) -> u64 {
        self.used.get(&device).copied().unwrap_or(0)
    }
}

/// The driver's records of memory.
#[derive(Default)]
pub struct Ledger {
    book: Mutex<Book>,
    next_id: AtomicU64,
    activity: Mutex<Activity>,
    quiet: Condvar,
    /// Lock that is held while memory of another process is opened.
    imports: Mutex<()>,
}

/// A guard. While it exists, work that accesses memory is running.
pub struct Running<'a> {
    ledger: &'a Ledger,
    number: u64,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut activity = lock(&self.ledger.activity);
        activity.running.remove(&self.number);
        let first = activity.running.first().copied().unwrap_or(u64::MAX);
        let kept = activity.retired.extract_if(.., |entry| entry.0 <= first).collect::<Vec<_>>();
        drop(activity);
        drop(kept);
        self.ledger.quiet.notify_all();
    }
}

impl Ledger {
    /// Registers work that accesses memory. The registration ends when the guard is dropped.
    pub fn running(&self) -> Running<'_> {
        let mut activity = lock(&self.activity);
        let number = activity.next;
        activity.next += 1;
        activity.running.insert(number);
        Running { ledger: self, number }
    }

    /// Backs an allocation of device memory by a file that other processes can map. Waits for all running
    /// work.
    pub fn share(&self, block: &Block) -> Res<Arc<Segment>> {
        let registry = registry()?;
        let mut activity = lock(&self.activity);
        while !activity.running.is_empty() {
            activity = self.quiet.wait(activity).unwrap_or_else(PoisonError::into_inner);
        }
        // Both locks are held: no work can start, and the allocation cannot be released meanwhile.
        let mut book = lock(&self.book);
        let row = book.rows.get_mut(&block.base);
        let row = row.filter(|row| row.block.id == block.id && row.block.kind == Kind::Device);
        let row = row.ok_or(Code::INVALID_VALUE)?;
        match &row.shared {
            Some(Shared::Exported(segment)) => return Ok(segment.clone()),
            Some(Shared::Imported { .. }) => return Err(Code::INVALID_VALUE),
            None => {}
        }
        let made = registry.segments.create(Content::Memory, block.bytes).and_then(|segment| {
            // SAFETY: `Memory` maps an allocation of device memory privately, starting at a page, and
            // only reads, writes and unmaps it. No work that could do so is running.
            unsafe {
                pages::save(block.base, block.bytes, &segment.file)?;
                pages::share(block.base, block.bytes, &segment.file)?;
            }
            Ok(Arc::new(segment))
        });
        let segment = made.map_err(|error| {
            registry.reports.message("cuIpcGetMemHandle", &error.to_string());
            match error.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Code::OUT_OF_MEMORY,
                _ => Code::OPERATING_SYSTEM,
            }
        })?;
        row.shared = Some(Shared::Exported(segment.clone()));
        registry.memory.assume_written(block.base).map_err(|_| Code::INVALID_VALUE)?;
        Ok(segment)
    }

    /// Maps memory of another process, or counts one more use in the context that has opened it.
    /// Only one context of a device can open it.
    pub fn import(
        &self,
        request: AllocationRequest,
        name: Name,
        open: impl FnOnce() -> Res<File>,
    ) -> Res<u64> {
        let _alone = lock(&self.imports);
        let mut book = lock(&self.book);
        for row in book.rows.values_mut().filter(|row| !row.block.leaving) {
            let Some(Shared::Imported { name: other, opened }) = &mut row.shared else { continue };
            if *other != name || row.block.device != request.device.ordinal {
                continue;
            }
            if row.block.context != request.context {
                return Err(Code::INVALID_HANDLE);
            }
            *opened += 1;
            return Ok(row.block.base);
        }
        drop(book);
        let file = open()?;
        let memory = &registry()?.memory;
        let made = memory.alloc_foreign(request.bytes, AllocKind::Device(request.device.ordinal));
        let base = made.map_err(|_| Code::MAP_FAILED)?;
        // SAFETY: this is a new allocation of device memory, which `Memory` has mapped privately,
        // starting at a page, and whose address no other code knows yet.
        if unsafe { pages::share(base, request.bytes, &file) }.is_err() {
            memory.free(base).map_err(|_| Code::MAP_FAILED)?;
            return Err(Code::MAP_FAILED);
        }
        self.enter(base, request, None, Some(Shared::Imported { name, opened: 1 }));
        Ok(base)
    }

    /// Ends one use of another process's memory. The last use marks the memory as about to be
    /// released, and returns it.
    pub fn close(&self, base: u64) -> Res<Option<Block>> {
        let mut book = lock(&self.book);
        let row = book.rows.get_mut(&base).filter(|row| !row.block.leaving);
        let Some(Row { block, shared: Some(Shared::Imported { opened, .. }), .. }) = row else {
            return Err(Code::INVALID_VALUE);
        };
        *opened -= 1;
        block.leaving = *opened == 0;
        Ok(block.leaving.then_some(*block))
    }

    /// Returns the number of bytes allocated on a device.
    pub fn used(&self, device: u32) -> u64 {
        lock(&self.book).used(device)
    }

    /// Returns the number of bytes allocated from a pool.
    pub fn used_of_pool(&self, pool: Handle) -> u64 {
        let book = lock(&self.book);
        let blocks = book.rows.values().map(|row| row.block);
        blocks.filter(|block| block.pool == pool).map(|block| block.bytes).sum()
    }

    /// Allocates memory for a context and records it.
    pub fn allocate(&self, request: AllocationRequest) -> Res<u64> {
        let AllocationRequest { bytes, kind, device, .. } = request;
        if bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let memory = &registry()?.memory;
        // The lock covers both the check and the insertion, so that two threads cannot both take
        // the last bytes.
        let mut book = lock(&self.book);
        let left = device.total_bytes.saturating_sub(book.used(device.ordinal));
        if limited(kind) && bytes > left {
            return Err(Code::OUT_OF_MEMORY);
        }
        let (base, pages) = match kind {
            Kind::Device | Kind::Graph | Kind::Array => {
                let made = memory.alloc(bytes, AllocKind::Device(device.ordinal));
                (made.map_err(|_| Code::OUT_OF_MEMORY)?, None)
            }
            // The host writes to this memory without `Memory`'s knowledge, so its bytes must not
            // count as uninitialised. Mapped memory counts as written.
            Kind::Managed | Kind::Pinned => {
                let pages = Pages::anonymous(bytes).map_err(|_| Code::OUT_OF_MEMORY)?;
                let target = match kind {
                    Kind::Managed => AllocKind::Device(device.ordinal),
                    _ => AllocKind::Host,
                };
                let made = memory.map(pages.base(), bytes, target);
                (made.map_err(|_| Code::OUT_OF_MEMORY)?, Some(pages))
            }
            Kind::Registered | Kind::Imported => return Err(Code::INVALID_VALUE),
        };
        let block = self.block(base, &request);
        book.insert(Row { block, pages, shared: None });
        Ok(base)
    }

    /// Returns the record of an allocation, with a new number.
    fn block(&self, base: u64, request: &AllocationRequest) -> Block {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed) + 1;
        let &AllocationRequest { bytes, kind, context, device, flags, pool } = request;
        let device = device.ordinal;
        Block { base, bytes, kind, context, device, flags, pool, id, leaving: false }
    }

    /// Records memory that is already mapped into `Memory`.
    pub fn adopt(&self, base: u64, request: AllocationRequest, pages: Option<Pages>) {
        self.enter(base, request, pages, None);
    }

    fn enter(
        &self,
        base: u64,
        request: AllocationRequest,
        pages: Option<Pages>,
        shared: Option<Shared>,
    ) {
        let block = self.block(base, &request);
        lock(&self.book).insert(Row { block, pages, shared });
    }

    /// Returns the allocation that contains an address.
    pub fn find(&self, address: u64) -> Option<Block> {
        let book = lock(&self.book);
        let (_, row) = book.rows.range(..=address).next_back()?;
        let block = row.block;
        (address - block.base < block.bytes).then_some(block)
    }

    /// Returns the allocation that begins at an address. Its kind must be one of `kinds`, and no
    /// release may be queued.
    pub fn begin(&self, base: u64, kinds: &[Kind]) -> Res<Block> {
        let block = self.find(base).filter(|block| block.base == base && !block.leaving);
        block.filter(|block| kinds.contains(&block.kind)).ok_or(Code::INVALID_VALUE)
    }

    /// Marks an allocation whose release is queued in a stream. Returns false if it is already
    /// marked.
    pub fn leave(&self, base: u64) -> bool {
        match lock(&self.book).rows.get_mut(&base) {
            Some(row) => !std::mem::replace(&mut row.block.leaving, true),
            None => false,
        }
    }

    /// Releases an allocation and removes its record.
    pub fn release(&self, base: u64) -> Res {
        let row = lock(&self.book).remove(base).ok_or(Code::INVALID_VALUE)?;
        self.give_back(row)
    }

    /// Releases all memory that was allocated in a context.
    pub fn release_context(&self, context: Handle) {
        let mut book = lock(&self.book);
        let own = book.rows.values().map(|row| row.block);
        let bases: Vec<u64> =
            own.filter(|block| block.context == context).map(|block| block.base).collect();
        let gone: Vec<Row> = bases.into_iter().filter_map(|base| book.remove(base)).collect();
        drop(book);
        for row in gone {
            // Each was recorded, so `Memory` contains it.
            let _ = self.give_back(row);
        }
    }

    fn give_back(&self, row: Row) -> Res {
        let memory = &registry()?.memory;
        let base = row.block.base;
        if row.shared.is_some() {
            // `Memory` may keep the range reserved for some time. It must not keep the pages of the
            // file.
            // SAFETY: the range still belongs to the allocation, which is being released.
            unsafe { pages::unshare(base, row.block.bytes) };
        }
        match row.block.kind {
            Kind::Device | Kind::Graph | Kind::Array | Kind::Imported => memory.free(base),
            _ => memory.unmap(base),
        }
        .map_err(|_| Code::INVALID_VALUE)?;
        if let Some(pages) = row.pages {
            let mut activity = lock(&self.activity);
            if !activity.running.is_empty() {
                let now = activity.next;
                activity.retired.push((now, pages));
            }
        }
        Ok(())
    }
}

/// A request to allocate memory, and its owner.
pub struct AllocationRequest {
    pub bytes: u64,
    pub kind: Kind,
    pub context: Handle,
    pub device: &'static DeviceInfo,
    pub flags: u32,
    pub pool: Handle,
}

/// Returns whether an allocation counts against the memory of its device.
fn limited(kind: Kind) -> bool {
    matches!(kind, Kind::Device | Kind::Managed | Kind::Graph | Kind::Array)
}
