//! Races on global memory between blocks: unordered accesses of different blocks of a launch to one
//! byte, at least one of which is a non-atomic write.
//!
//! The launch has one clock. Every atomic, and every volatile, relaxed or release store, is a
//! *release*: it advances the clock and stores the time with its words. An atomic that returns the
//! old value, and a volatile, relaxed or acquire load, is an *acquire*. After it, the block counts
//! as ordered after everything that any block did before the stored time. This overestimates the
//! order, because the block that stored the time may not be ordered after all of that itself. Thus
//! no order that a program can establish is overlooked, but some races are missed. Fences are not
//! required, as in [`race`](super::race). The accesses of one block are not compared with each
//! other.
//!
//! The following are not reported:
//! - atomics, volatile, relaxed, acquire and release accesses among each other;
//! - a plain read and an atomic: reading a first guess for a compare-and-swap is common;
//! - a write that does not change the bytes, such as a flag that many blocks set.
//!
//! For each word of memory, the last plain write, the last release and two reads are recorded, in
//! pages that are created on first access. Beyond [`MOST_PAGES`] pages nothing is recorded, and an
//! acquire of such words counts as ordered after everything.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*, fence};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::memory::{Cells, Table};

/// Bytes of memory that a page of records covers. The page itself uses eight times as much memory.
const PAGE: u64 = 64 << 10;
/// Maximum number of pages of records of a launch. They cover 64 MiB of memory and use 512 MiB.
const MOST_PAGES: usize = 1024;
/// Maximum number of blocks in a launch whose races are detected.
const MOST_BLOCKS: u64 = 1 << 27;

/// Kind of an access, for races between blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::exec) enum Act {
    Read,
    /// A plain write that changes the bytes.
    Write,
    Atomic,
    /// A volatile, relaxed or release store.
    StrongWrite,
}

/// The earlier access of a race between blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::exec) struct Other {
    /// Index of the block that made the access.
    pub(in crate::exec) block: u64,
    /// Description of the access, for a message.
    pub(in crate::exec) what: &'static str,
}

/// An access by a block. The upper half is its time. The lower half holds the block's index + 1,
/// whether it was an atomic, and the bytes of the word. 0 means no access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Event(u64);

impl Event {
    fn new(time: u32, block: u32, atomic: bool, mask: u8) -> Self {
        let who = (block + 1) << 5 | u32::from(atomic) << 4 | u32::from(mask);
        Self(u64::from(time) << 32 | u64::from(who))
    }

    fn time(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns the index of the block, or the largest number if there is no access.
    fn block(self) -> u32 {
        (self.0 as u32 >> 5).wrapping_sub(1)
    }

    fn is_atomic(self) -> bool {
        self.0 >> 4 & 1 == 1
    }

    fn mask(self) -> u8 {
        self.0 as u8 & 15
    }

    /// Returns `other`, merged with this event if both are by the same block at the same time.
    fn joined(self, other: Event) -> Event {
        if self.0 >> 5 == other.0 >> 5 { Event(self.0 | other.0) } else { other }
    }
}

/// Access of a block, for the detection of races: the block and the time of the access. Accesses of
/// other blocks before the time `known` are ordered before this access.
#[derive(Debug, Clone, Copy)]
pub(in crate::exec) struct Me {
    pub(in crate::exec) block: u32,
    pub(in crate::exec) time: u32,
    pub(in crate::exec) known: u32,
}

impl Me {
    /// Returns whether the event is by another block and not ordered before this block's access.
    fn unordered(&self, e: Event) -> bool {
        let known = e.time() < self.known || e.time() == u32::MAX;
        e.0 != 0 && e.block() != self.block && !known
    }
}

type Pages = Box<[OnceLock<Option<Cells>>]>;

/// The accesses of all blocks of a launch.
pub(in crate::exec) struct BlockRaces {
    /// Pages of records for each region of the table.
    regions: Vec<OnceLock<Pages>>,
    pages: AtomicUsize,
    /// Time of the next release on the launch's clock.
    clock: AtomicU64,
    /// Time on the launch's clock after the most recent `free` on the device's heap.
    heap: AtomicU64,
    missed: AtomicBool,
    /// Locks that are held while an element is compared with its new value and written. Two blocks
    /// that write the same value at the same time do not race.
    writing: [Mutex<()>; 64],
}

impl BlockRaces {
    /// Returns the record for a launch of `blocks` blocks. Returns `None` if the launch has only
    /// one block, or too many.
    pub(in crate::exec) fn new(table: &Table, blocks: u64) -> Option<Self> {
        (2..MOST_BLOCKS).contains(&blocks).then(|| Self {
            regions: table.regions.iter().map(|_| OnceLock::new()).collect(),
            pages: AtomicUsize::new(0),
            clock: AtomicU64::new(0),
            heap: AtomicU64::new(0),
            missed: AtomicBool::new(false),
            writing: [const { Mutex::new(()) }; 64],
        })
    }

    /// Prevents other writes to the element at `va` while the guard exists.
    pub(in crate::exec) fn alone(&self, va: u64) -> MutexGuard<'_, ()> {
        let lock = &self.writing[(va / 8 % 64) as usize];
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether some accesses could not be recorded.
    pub(in crate::exec) fn missed(&self) -> bool {
        self.missed.load(Relaxed)
    }

    /// Returns the current time. The clock stops at its maximum; all later accesses then count as
    /// ordered.
    pub(in crate::exec) fn now(&self) -> u32 {
        u32::try_from(self.clock.load(SeqCst)).unwrap_or(u32::MAX)
    }

    /// Advances the clock and returns the time of the release.
    pub(in crate::exec) fn release(&self) -> u32 {
        let time = self.clock.fetch_add(1, SeqCst);
        if time >= u64::from(u32::MAX) {
            self.missed.store(true, Relaxed);
        }
        u32::try_from(time).unwrap_or(u32::MAX)
    }

    /// Returns a time after all accesses made so far.
    fn everything(&self) -> u32 {
        self.release().saturating_add(1)
    }

    /// Records that memory is about to be returned to the device's heap.
    pub(in crate::exec) fn freed(&self) {
        let time = self.release();
        self.heap.fetch_max(u64::from(time) + 1, SeqCst);
    }

    /// Returns the time before which accesses are ordered before a block that has just allocated
    /// memory from the device's heap.
    pub(in crate::exec) fn allocated(&self) -> u32 {
        u32::try_from(self.heap.load(SeqCst)).unwrap_or(u32::MAX)
    }

    /// Returns the records of the word at `va`, a multiple of 4.
    fn cell(&self, table: &Table, va: u64) -> Option<&[AtomicU64; 4]> {
        let n = table.regions.partition_point(|r| r.base & !3 <= va).checked_sub(1)?;
        let region = &table.regions[n];
        let offset = va - (region.base & !3);
        let room = (region.bytes + 4).div_ceil(PAGE) as usize;
        let pages = self.regions[n].get_or_init(|| (0..room).map(|_| OnceLock::new()).collect());
        let page = pages.get((offset / PAGE) as usize)?.get_or_init(|| {
            let room = self.pages.fetch_add(1, Relaxed) < MOST_PAGES;
            let cells = if room { Cells::new((PAGE / 4) as usize).ok() } else { None };
            if cells.is_none() {
                self.missed.store(true, Relaxed);
            }
            cells
        });
        page.as_ref()?.at((offset % PAGE / 4) as usize)
    }

    /// Calls `f` with the records of each word of an access and the mask of its bytes. Returns
    /// false if some words have no records.
    fn each<'s>(
        &'s self,
        table: &Table,
        va: u64,
        bytes: u32,
        mut f: impl FnMut(&'s [AtomicU64; 4], u8),
    ) -> bool {
        let (mut at, end) = (va, va + u64::from(bytes));
        let mut all = true;
        while at < end {
            let n = (4 - at % 4).min(end - at);
            let mask = ((1u8 << n) - 1) << (at % 4);
            match self.cell(table, at & !3) {
                Some(cell) => f(cell, mask),
                None => all = false,
            }
            at += n;
        }
        all
    }

    /// Records an access that is about to be made, and returns the access that it races with. An
    /// atomic or a strong store is a release. It also acquires the time stored with its words
    /// before, so that time need not be kept.
    pub(in crate::exec) fn access(
        &self,
        table: &Table,
        (va, bytes): (u64, u32),
        me: &mut Me,
        act: Act,
    ) -> Option<Other> {
        let mut hit = None;
        let all = self.each(table, va, bytes, |cell, mask| {
            hit = hit.or(note(cell, mask, *me, act));
            if matches!(act, Act::Atomic | Act::StrongWrite) {
                self.leave(&cell[1], mask, me, act);
            }
        });
        if !all && act == Act::Atomic {
            me.known = self.everything();
        }
        hit
    }

    /// Stores the time of a release with a word. The stored times only grow, so that a later reader
    /// of the word finds one that is late enough.
    fn leave(&self, slot: &AtomicU64, mask: u8, me: &mut Me, act: Act) {
        let mut left = slot.load(SeqCst);
        loop {
            let before = Event(left);
            let own = Event::new(me.time, me.block, act == Act::Atomic, mask);
            let joined = before.joined(own);
            let other = before.0 != 0 && before.block() != me.block;
            if other && before.time() >= me.time && me.time != u32::MAX {
                me.time = self.release();
                left = slot.load(SeqCst);
                continue;
            }
            match slot.compare_exchange(left, joined.0, SeqCst, SeqCst) {
                Ok(_) if me.unordered(before) => me.known = before.time().saturating_add(1),
                Ok(_) => {}
                Err(now) => {
                    left = now;
                    continue;
                }
            }
            return;
        }
    }

    /// Returns the time before which accesses are ordered before the block's, after it has read
    /// these bytes. `plain`: the read is a plain one, and otherwise an atomic or another strong
    /// access. The result is at least `known`.
    pub(in crate::exec) fn acquire(
        &self,
        table: &Table,
        (va, bytes): (u64, u32),
        (block, known): (u32, u32),
        plain: bool,
    ) -> u32 {
        fence(Acquire);
        let mut after = known;
        let all = self.each(table, va, bytes, |[write, release, ..], _| {
            let me = Me { block, time: 0, known: after };
            let left = Event(release.load(SeqCst));
            if me.unordered(left) {
                after = left.time().saturating_add(1);
            }
            // A plain write stores no time, so the reader counts as ordered after everything.
            if !plain && me.unordered(Event(write.load(SeqCst))) {
                after = self.everything();
            }
        });
        if all || plain { after } else { self.everything() }
    }
}

/// Records an access to some bytes of a word, and returns the access that it races with.
fn note(cell: &[AtomicU64; 4], mask: u8, me: Me, act: Act) -> Option<Other> {
    let [write, release, read, second] = cell;
    let races = |slot: &AtomicU64, what| {
        let e = Event(slot.load(Relaxed));
        let hit = e.mask() & mask != 0 && me.unordered(e);
        hit.then(|| Other { block: e.block().into(), what })
    };
    let own = Event::new(me.time, me.block, act == Act::Atomic, mask);
    match act {
        Act::Read => {
            let hit = races(write, "write");
            let before = Event(read.load(Relaxed));
            let joined = before.joined(own);
            if joined != before {
                if me.unordered(before) {
                    second.store(before.0, Relaxed);
                }
                read.store(joined.0, Relaxed);
            }
            hit
        }
        Act::Write => {
            let last = Event(release.load(Relaxed));
            let atomic = if last.is_atomic() { races(release, "atomic") } else { None };
            let hit = races(write, "write").or(atomic);
            let hit = hit.or_else(|| races(read, "read")).or_else(|| races(second, "read"));
            write.store(Event(write.load(Relaxed)).joined(own).0, Relaxed);
            hit
        }
        Act::Atomic => races(write, "write"),
        Act::StrongWrite => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{AllocKind, Memory};

    /// Blocks that keep the time that they know, and one allocation.
    struct Launch {
        table: std::sync::Arc<Table>,
        races: BlockRaces,
        known: [u32; 4],
        va: u64,
    }

    impl Launch {
        fn new() -> Self {
            let memory = Memory::new();
            let va = memory.alloc(1 << 20, AllocKind::Device(0)).unwrap();
            let table = memory.snapshot();
            let races = BlockRaces::new(&table, 4).unwrap();
            Self { table, races, known: [0; 4], va }
        }

        fn act(
            &mut self,
            block: u32,
            at: u64,
            bytes: u32,
            act: Act,
        ) -> Option<(u64, &'static str)> {
            let strong = matches!(act, Act::Atomic | Act::StrongWrite);
            let time = if strong { self.races.release() } else { self.races.now() };
            let mut me = Me { block, time, known: self.known[block as usize] };
            let hit = self.races.access(&self.table, (self.va + at, bytes), &mut me, act);
            self.known[block as usize] = me.known;
            hit.map(|o| (o.block, o.what))
        }

        fn look(&mut self, block: u32, at: u64) {
            let known = &mut self.known[block as usize];
            let place = (self.va + at, 4);
            *known = self.races.acquire(&self.table, place, (block, *known), false);
        }
    }

    #[test]
    fn only_plain_writes_that_nothing_orders() {
        let mut l = Launch::new();
        assert_eq!(l.act(0, 0, 4, Act::Write), None);
        assert_eq!(l.act(0, 0, 4, Act::Read), None);
        assert_eq!(l.act(1, 2, 4, Act::Read), Some((0, "write")));
        // Other bytes of the same word.
        assert_eq!(l.act(1, 8, 1, Act::Write), None);
        assert_eq!(l.act(2, 9, 1, Act::Write), None);
        assert_eq!(l.act(3, 12, 4, Act::Read), None);
        assert_eq!(l.act(1, 12, 4, Act::Read), None);
        assert_eq!(l.act(1, 12, 4, Act::Write), Some((3, "read")));
        assert_eq!(l.act(0, 16, 8, Act::Atomic), None);
        assert_eq!(l.act(1, 16, 8, Act::Atomic), None);
        assert_eq!(l.act(2, 20, 4, Act::Read), None);
        assert_eq!(l.act(3, 20, 4, Act::Write), Some((1, "atomic")));
        assert_eq!(l.act(0, 20, 4, Act::Atomic), Some((3, "write")));
        // Volatile stores are not compared.
        assert_eq!(l.act(0, 32, 4, Act::StrongWrite), None);
        assert_eq!(l.act(1, 32, 4, Act::Write), None);
    }

    #[test]
    fn a_flag_hands_on_what_was_done_before_it() {
        let mut l = Launch::new();
        l.act(0, 0, 4, Act::Write);
        l.act(0, 64, 4, Act::StrongWrite);
        l.look(1, 64);
        l.act(1, 68, 4, Act::Atomic);
        l.act(0, 4, 4, Act::Write);
        l.look(2, 68);
        assert_eq!(l.act(2, 0, 4, Act::Read), None);
        assert_eq!(l.act(2, 4, 4, Act::Read), Some((0, "write")));
        assert_eq!(l.act(3, 0, 4, Act::Read), Some((0, "write")));
        // An atomic of one block does not hide another's.
        l.act(0, 128, 4, Act::Write);
        for block in 0..3 {
            l.act(block, 72, 4, Act::Atomic);
        }
        l.look(2, 72);
        assert_eq!(l.act(2, 128, 4, Act::Read), None);
    }

    #[test]
    fn a_flag_that_was_set_plainly_orders_everything() {
        let mut l = Launch::new();
        l.act(0, 0, 4, Act::Write);
        l.act(1, 64, 4, Act::Write);
        l.look(2, 64);
        assert_eq!(l.act(2, 0, 4, Act::Read), None);
    }
}
