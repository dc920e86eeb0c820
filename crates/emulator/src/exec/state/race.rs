//! Races on shared memory: unordered accesses of different warps to one byte, at least one of which
//! is a write.
//!
//! A vector clock for each warp ([`Clocks`]) tracks the order of accesses. An arrival at a barrier
//! of the block or at an `mbarrier`, and an atomic write, *release* the warp's clock to that
//! object. The end of a wait, and an atomic read, *acquire* the object's clock. All atomics order
//! accesses as if they were `acq_rel`: code that combines relaxed atomics with fences is common,
//! and is not reported.
//!
//! Two lanes of one warp are compared only if one of them did not execute the other's write
//! instruction ([`together`](super::together)). Atomics do not race with each other. Objects in
//! global memory do not order accesses here: accesses to global memory ([`within`](super::within))
//! have separate clocks. Warps that write the same bytes do not race with each other either: in
//! Triton's code several warps compute and write the same values.

use super::clocks::{Clocks, Object};
use super::together::{self, Together};
use super::within::{Within, Words};

/// Kind of an access, for the detection of races on shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::exec) enum Mode {
    Read,
    Write,
    /// A write of the value that memory already contains.
    Again,
    /// An atomic that writes to memory.
    Atomic,
    /// An atomic that only reads memory.
    AtomicRead,
}

/// Size of the record for one byte of shared memory, bytes.
pub(in crate::exec) const BYTES_PER_BYTE: usize = size_of::<Last>() + together::BYTES_PER_BYTE;

/// An access: thread + 1 (0 for none) and the time of its warp.
type Event = (u32, u32);

/// The last accesses to a byte of shared memory.
#[derive(Clone, Copy, Default)]
struct Last {
    write: Event,
    atomic: Event,
    read: Event,
    /// Another read, by a warp other than the one that made `read`.
    second: Event,
}

/// The recorded accesses of a block to its shared memory and to global memory.
pub(in crate::exec) struct Races {
    bytes: Vec<Last>,
    together: Together,
    clocks: Clocks,
    global: Clocks,
    words: Words,
}

impl Races {
    pub(in crate::exec) fn new(bytes: u32, warps: usize) -> Self {
        Self {
            bytes: vec![Last::default(); bytes as usize],
            together: Together::new(bytes, warps),
            clocks: Clocks::new(warps),
            global: Clocks::new(warps),
            words: Words::default(),
        }
    }

    /// Records that `warp` arrives at the object. Warps that wait for the object are then ordered
    /// after it.
    pub(in crate::exec) fn release(&mut self, object: Object, warp: u32) {
        self.clocks.release(object, warp);
        self.global.release(object, warp);
    }

    /// Records that all warps for which the object waited have arrived.
    pub(in crate::exec) fn publish(&mut self, object: Object) {
        self.clocks.publish(object);
        self.global.publish(object);
    }

    /// Records that `warp` has waited for the object.
    pub(in crate::exec) fn acquire(&mut self, object: Object, warp: u32) {
        self.clocks.acquire(object, warp);
        self.global.acquire(object, warp);
        self.together.synchronise(warp, u32::MAX);
    }

    /// Records that lanes of a warp synchronise with each other.
    pub(in crate::exec) fn synchronise_lanes(&mut self, warp: u32, lanes: u32) {
        self.together.synchronise(warp, lanes);
    }

    /// Records an access by a lane that `lanes` of its warp execute together. Returns the thread of
    /// the same warp whose write races with the access.
    pub(in crate::exec) fn access_in_warp(
        &mut self,
        (at, len): (u64, u32),
        (warp, lane): (u32, u32),
        lanes: u32,
        mode: Mode,
    ) -> Option<u32> {
        let rival = match mode {
            Mode::Read | Mode::Write => self.together.rival(at, len, warp, lane),
            Mode::Again | Mode::Atomic | Mode::AtomicRead => None,
        };
        if mode == Mode::Write {
            self.together.wrote(at, len, warp, lane, lanes);
        }
        rival
    }

    /// Returns the recorded accesses to global memory and their clocks.
    pub(in crate::exec) fn global(&mut self) -> Within<'_> {
        Within { words: &mut self.words, clocks: &mut self.global }
    }

    /// Returns the number of pages of the records on global memory.
    pub(in crate::exec) fn pages(&self) -> usize {
        self.words.pages()
    }

    /// Records an access. If it races, returns the other thread and whether that thread wrote.
    pub(in crate::exec) fn access(
        &mut self,
        at: u64,
        len: u32,
        warp: u32,
        lane: u32,
        mode: Mode,
    ) -> Option<(u32, bool)> {
        let clocks = &self.clocks;
        let me = (warp * 32 + lane + 1, clocks.time(warp));
        let unordered = |(thread, when): Event| {
            thread != 0 && clocks.are_apart(warp, (thread.wrapping_sub(1) / 32, when))
        };
        let from = at as usize;
        let mut hit = None;
        for last in self.bytes.get_mut(from..from + len as usize)? {
            let atomic = matches!(mode, Mode::Atomic | Mode::AtomicRead);
            if unordered(last.write) && mode != Mode::Again {
                hit = hit.or(Some((last.write.0 - 1, true)));
            }
            if !atomic && unordered(last.atomic) {
                hit = hit.or(Some((last.atomic.0 - 1, true)));
            }
            match mode {
                Mode::AtomicRead => continue,
                Mode::Read => {
                    if unordered(last.read) {
                        last.second = last.read;
                    }
                    last.read = me;
                    continue;
                }
                Mode::Write | Mode::Again | Mode::Atomic => {}
            }
            if let Some(r) = [last.read, last.second].into_iter().find(|r| unordered(*r)) {
                hit = hit.or(Some((r.0 - 1, false)));
            }
            if mode == Mode::Again && unordered(last.write) {
                // The first writer is kept: a reader must be ordered after it and after all others.
                continue;
            }
            *(if atomic { &mut last.atomic } else { &mut last.write }) = me;
        }
        hit
    }

    /// Records that an atomic of `warp` on the word at `at` has been executed.
    pub(in crate::exec) fn synchronise(&mut self, at: u64, warp: u32, mode: Mode) {
        let object = Object::Word((at / 4) as u32);
        self.acquire(object, warp);
        if mode == Mode::Atomic {
            self.release(object, warp);
            self.publish(object);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meet(r: &mut Races, warps: u32) {
        (0..warps).for_each(|w| r.release(Object::Barrier(0), w));
        r.publish(Object::Barrier(0));
        (0..warps).for_each(|w| r.acquire(Object::Barrier(0), w));
    }

    #[test]
    fn only_unordered_conflicts_of_different_warps() {
        let mut r = Races::new(64, 4);
        assert_eq!(r.access(0, 4, 0, 3, Mode::Write), None);
        assert_eq!(r.access(0, 4, 0, 4, Mode::Read), None);
        assert_eq!(r.access(2, 4, 1, 0, Mode::Read), Some((3, true)));
        meet(&mut r, 4);
        assert_eq!(r.access(0, 4, 1, 0, Mode::Read), None);
        assert_eq!(r.access(0, 4, 2, 1, Mode::Read), None);
        assert_eq!(r.access(0, 4, 2, 0, Mode::Write), Some((32, false)));
        assert_eq!(r.access(8, 4, 2, 0, Mode::Atomic), None);
        assert_eq!(r.access(8, 4, 3, 0, Mode::Atomic), None);
        assert_eq!(r.access(8, 4, 1, 0, Mode::AtomicRead), None);
        assert_eq!(r.access(8, 4, 1, 0, Mode::Read), Some((96, true)));
    }

    #[test]
    fn an_atomic_does_not_hide_a_plain_write_before_it() {
        let mut r = Races::new(64, 2);
        assert_eq!(r.access(0, 4, 0, 0, Mode::Write), None);
        assert_eq!(r.access(0, 4, 0, 0, Mode::Atomic), None);
        r.synchronise(0, 0, Mode::Atomic);
        assert_eq!(r.access(0, 4, 1, 0, Mode::Atomic), Some((0, true)));
    }

    #[test]
    fn those_who_write_the_same_do_not_race_with_each_other() {
        let mut r = Races::new(64, 3);
        assert_eq!(r.access(0, 4, 0, 0, Mode::Write), None);
        assert_eq!(r.access(0, 4, 1, 0, Mode::Again), None);
        assert_eq!(r.access(0, 4, 2, 0, Mode::Write), Some((0, true)));
        meet(&mut r, 3);
        assert_eq!(r.access(0, 4, 0, 1, Mode::Again), None);
        assert_eq!(r.access(0, 4, 1, 0, Mode::Again), None);
        // They do race with readers.
        assert_eq!(r.access(0, 4, 2, 0, Mode::Read), Some((1, true)));
        meet(&mut r, 3);
        assert_eq!(r.access(0, 4, 0, 0, Mode::Read), None);
        assert_eq!(r.access(0, 4, 1, 0, Mode::Again), Some((0, false)));
    }

    #[test]
    fn a_barrier_of_some_warps_orders_only_those() {
        let mut r = Races::new(64, 3);
        assert_eq!(r.access(0, 4, 0, 0, Mode::Write), None);
        (0..2).for_each(|w| r.release(Object::Barrier(1), w));
        r.publish(Object::Barrier(1));
        r.acquire(Object::Barrier(1), 1);
        assert_eq!(r.access(0, 4, 1, 0, Mode::Read), None);
        assert_eq!(r.access(0, 4, 2, 0, Mode::Read), Some((0, true)));
    }

    #[test]
    fn a_flag_hands_over_what_was_written_before() {
        let mut r = Races::new(64, 2);
        assert_eq!(r.access(16, 4, 0, 0, Mode::Write), None);
        assert_eq!(r.access(0, 4, 0, 0, Mode::Atomic), None);
        r.synchronise(0, 0, Mode::Atomic);
        assert_eq!(r.access(16, 4, 0, 0, Mode::Write), None);
        r.synchronise(0, 1, Mode::AtomicRead);
        // The second write came after the flag.
        assert_eq!(r.access(16, 4, 1, 0, Mode::Read), Some((0, true)));
        r.synchronise(0, 0, Mode::Atomic);
        r.synchronise(0, 1, Mode::AtomicRead);
        assert_eq!(r.access(16, 4, 1, 0, Mode::Read), None);
    }
}
