//! Races on global memory between the warps of one block: unordered accesses to one byte, at least
//! one of which is a non-atomic write.
//!
//! Everything that orders accesses to shared memory also orders these ([`race`](super::race)). In
//! addition, every atomic, every volatile, relaxed or release store and every fence publishes the
//! clock of its warp. Every atomic that returns the old value, and every volatile, relaxed or
//! acquire load, acquires what any warp of the block has published. This overestimates the order,
//! because the words accessed need not be the same; other blocks may have passed the order from one
//! word to another. Thus no order that a program can establish is overlooked, but some races are
//! missed.
//!
//! The kinds of accesses that are not reported are those of [`blocks`](super::blocks). Lanes of one
//! warp are not compared.
//!
//! For each word, the last plain write, the last release and two reads are recorded, in pages that
//! are created on first access. Beyond [`MOST_PAGES`] pages of all running blocks nothing is
//! recorded.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use super::blocks::Act;
use super::clocks::{Clocks, Object};

/// Number of words of memory that a page of records covers. The page itself uses eight times as
/// much memory.
const WORDS: usize = 64;
/// Maximum number of pages of a launch. They cover 64 MiB of memory and use 512 MiB.
const MOST_PAGES: usize = 1 << 18;

/// Space for the records of all blocks of a launch.
#[derive(Default)]
pub(in crate::exec) struct Room {
    pages: AtomicUsize,
    missed: AtomicBool,
}

impl Room {
    fn take(&self) -> bool {
        let is_free = self.pages.fetch_add(1, Relaxed) < MOST_PAGES;
        if !is_free {
            self.pages.fetch_sub(1, Relaxed);
            self.missed.store(true, Relaxed);
        }
        is_free
    }

    /// Releases the pages of a completed block.
    pub(in crate::exec) fn give_back(&self, pages: usize) {
        self.pages.fetch_sub(pages, Relaxed);
    }

    /// Returns whether some accesses could not be recorded.
    pub(in crate::exec) fn missed(&self) -> bool {
        self.missed.load(Relaxed)
    }
}

/// An access. The upper half is the time of its warp. The lower half holds the thread + 1, whether
/// it was an atomic, and the bytes of the word. 0 means no access.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Event(u64);

impl Event {
    fn new(time: u32, thread: u32, atomic: bool, mask: u8) -> Self {
        let who = (thread + 1) << 5 | u32::from(atomic) << 4 | u32::from(mask);
        Self(u64::from(time) << 32 | u64::from(who))
    }

    fn time(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn thread(self) -> u32 {
        (self.0 as u32 >> 5).wrapping_sub(1)
    }

    fn is_atomic(self) -> bool {
        self.0 >> 4 & 1 == 1
    }

    fn mask(self) -> u8 {
        self.0 as u8 & 15
    }

    /// Returns `next`. The bytes of this event are added if both have the same warp, time and kind.
    fn followed_by(self, next: Event) -> Event {
        let alike = self.0 != 0
            && (self.time(), self.thread() / 32, self.is_atomic())
                == (next.time(), next.thread() / 32, next.is_atomic());
        if alike { Event(next.0 | u64::from(self.mask())) } else { next }
    }

    /// Returns whether another warp made the access, and `warp` is not ordered after it.
    fn is_apart(self, warp: u32, clocks: &Clocks) -> bool {
        self.0 != 0 && clocks.are_apart(warp, (self.thread() / 32, self.time()))
    }
}

/// The last accesses to a word.
#[derive(Clone, Copy, Default)]
struct Notes {
    write: Event,
    release: Event,
    read: Event,
    second: Event,
}

/// Records of the words that a block has accessed.
#[derive(Default)]
pub(super) struct Words {
    /// Maps the number of a page to its index in `pages`.
    places: HashMap<u64, usize>,
    pages: Vec<Box<[Notes]>>,
    /// Number and index of the most recently accessed page.
    last: Option<(u64, usize)>,
}

impl Words {
    pub(super) fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Returns the records of the word at `va`, or `None` if the limit on pages has been reached.
    fn at(&mut self, va: u64, room: &Room) -> Option<&mut Notes> {
        let (number, word) = (va / 4 / WORDS as u64, (va / 4) as usize % WORDS);
        let place = match self.last.filter(|(last, _)| *last == number) {
            Some((_, place)) => place,
            None => match self.places.get(&number) {
                Some(place) => *place,
                None if !room.take() => return None,
                None => {
                    self.places.insert(number, self.pages.len());
                    self.pages.push(vec![Notes::default(); WORDS].into_boxed_slice());
                    self.pages.len() - 1
                }
            },
        };
        self.last = Some((number, place));
        Some(&mut self.pages[place][word])
    }
}

/// The earlier access of a race: a thread of the block, and a description.
pub(in crate::exec) type Rival = (u32, &'static str);

/// The recorded accesses of a block to global memory, and their clocks.
pub(in crate::exec) struct Within<'a> {
    pub(super) words: &'a mut Words,
    pub(super) clocks: &'a mut Clocks,
}

impl Within<'_> {
    /// Records an access that is about to be made, and returns the access that it races with.
    pub(in crate::exec) fn access(
        &mut self,
        room: &Room,
        place: (u64, u32),
        thread: u32,
        act: Act,
    ) -> Option<Rival> {
        let (mut hit, mut released) = (None, false);
        for (va, mask) in words_of(place) {
            let Some(notes) = self.words.at(va, room) else { continue };
            hit = hit.or(note(notes, mask, thread, self.clocks, act));
            // This acts as an acquire although the read is plain.
            released |= act == Act::Read && notes.release.is_apart(thread / 32, self.clocks);
        }
        if released {
            self.take_over(thread / 32);
        }
        hit
    }

    /// Makes the clock of `warp` available to other warps of the block.
    pub(in crate::exec) fn hand_on(&mut self, warp: u32) {
        self.clocks.release(Object::Global, warp);
        self.clocks.publish(Object::Global);
    }

    /// Orders `warp` after everything that other warps have published.
    pub(in crate::exec) fn take_over(&mut self, warp: u32) {
        self.clocks.acquire(Object::Global, warp);
    }

    /// Like [`Self::take_over`], for a strong read of these bytes. If a plain write set them,
    /// nothing was published with them: `warp` then counts as ordered after everything.
    pub(in crate::exec) fn read_strongly(&mut self, room: &Room, place: (u64, u32), warp: u32) {
        self.take_over(warp);
        let set_plainly = words_of(place).any(|(va, _)| {
            self.words.at(va, room).is_some_and(|notes| notes.write.is_apart(warp, self.clocks))
        });
        if set_plainly {
            self.clocks.learn_all(warp);
        }
    }
}

/// Returns the words of an access, each with the mask of its bytes.
fn words_of((va, bytes): (u64, u32)) -> impl Iterator<Item = (u64, u8)> {
    let end = va + u64::from(bytes);
    (va / 4..end.div_ceil(4)).map(move |word| {
        let (from, to) = (va.max(4 * word) - 4 * word, end.min(4 * word + 4) - 4 * word);
        (4 * word, ((1u16 << to) - (1 << from)) as u8)
    })
}

/// Records an access to some bytes of a word, and returns the access that it races with.
fn note(notes: &mut Notes, mask: u8, thread: u32, clocks: &Clocks, act: Act) -> Option<Rival> {
    let warp = thread / 32;
    let races = |event: Event, what| {
        let hit = event.mask() & mask != 0 && event.is_apart(warp, clocks);
        hit.then(|| (event.thread(), what))
    };
    let own = Event::new(clocks.time(warp), thread, act == Act::Atomic, mask);
    match act {
        Act::Read => {
            if notes.read.is_apart(warp, clocks) {
                notes.second = notes.read;
            }
            notes.read = notes.read.followed_by(own);
            races(notes.write, "write")
        }
        Act::Write => {
            let atomic = Some(notes.release).filter(|last| last.is_atomic());
            let hit = races(notes.write, "write")
                .or_else(|| atomic.and_then(|last| races(last, "atomic")))
                .or_else(|| races(notes.read, "read"))
                .or_else(|| races(notes.second, "read"));
            notes.write = notes.write.followed_by(own);
            hit
        }
        Act::Atomic | Act::StrongWrite => {
            notes.release = notes.release.followed_by(own);
            if act == Act::Atomic { races(notes.write, "write") } else { None }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of four warps.
    struct Block {
        room: Room,
        words: Words,
        clocks: Clocks,
    }

    impl Block {
        fn new() -> Self {
            Self { room: Room::default(), words: Words::default(), clocks: Clocks::new(4) }
        }

        fn within(&mut self) -> Within<'_> {
            Within { words: &mut self.words, clocks: &mut self.clocks }
        }

        fn act(&mut self, thread: u32, at: u64, bytes: u32, act: Act) -> Option<Rival> {
            let Self { room, words, clocks } = self;
            let mut within = Within { words, clocks };
            let hit = within.access(room, (at, bytes), thread, act);
            if matches!(act, Act::Atomic | Act::StrongWrite) {
                within.hand_on(thread / 32);
            }
            hit
        }

        fn look(&mut self, warp: u32, at: u64) {
            let Self { room, words, clocks } = self;
            Within { words, clocks }.read_strongly(room, (at, 4), warp);
        }

        fn meet(&mut self) {
            (0..4).for_each(|warp| self.clocks.release(Object::Barrier(0), warp));
            self.clocks.publish(Object::Barrier(0));
            (0..4).for_each(|warp| self.clocks.acquire(Object::Barrier(0), warp));
        }
    }

    #[test]
    fn plain_writes_of_other_warps_race_until_a_barrier() {
        let mut block = Block::new();
        assert_eq!(block.act(3, 0, 4, Act::Write), None);
        // A lane of the same warp, and other bytes.
        assert_eq!(block.act(4, 0, 4, Act::Read), None);
        assert_eq!(block.act(40, 4, 8, Act::Read), None);
        assert_eq!(block.act(41, 2, 4, Act::Read), Some((3, "write")));
        block.meet();
        assert_eq!(block.act(42, 0, 4, Act::Read), None);
        assert_eq!(block.act(70, 0, 1, Act::Read), None);
        assert_eq!(block.act(1, 0, 1, Act::Write), Some((70, "read")));
        assert_eq!(block.act(71, 0, 4, Act::Atomic), Some((1, "write")));
    }

    #[test]
    fn lanes_that_write_bytes_of_one_word_are_all_kept() {
        let mut block = Block::new();
        (0..4).for_each(|lane| assert_eq!(block.act(lane, lane.into(), 1, Act::Write), None));
        assert_eq!(block.act(32, 0, 1, Act::Read), Some((3, "write")));
    }

    #[test]
    fn a_flag_hands_on_what_was_done_before_it() {
        let mut block = Block::new();
        block.act(0, 0, 4, Act::Write);
        block.act(0, 64, 4, Act::StrongWrite);
        block.act(0, 4, 4, Act::Write);
        block.look(1, 64);
        assert_eq!(block.act(32, 0, 4, Act::Read), None);
        // The write came after the flag.
        assert_eq!(block.act(32, 4, 4, Act::Read), Some((0, "write")));
        assert_eq!(block.act(64, 0, 4, Act::Read), Some((0, "write")));
        // A plain read of the flag takes over what it publishes.
        assert_eq!(block.act(96, 64, 4, Act::Read), None);
        assert_eq!(block.act(96, 0, 4, Act::Read), None);
    }

    #[test]
    fn a_flag_that_was_set_plainly_orders_everything() {
        let mut block = Block::new();
        block.act(0, 0, 4, Act::Write);
        block.act(32, 64, 4, Act::Write);
        block.look(2, 64);
        assert_eq!(block.act(64, 0, 4, Act::Read), None);
        block.act(0, 8, 4, Act::Write);
        assert_eq!(block.act(64, 8, 4, Act::Read), Some((0, "write")));
    }

    #[test]
    fn beyond_its_room_nothing_is_watched() {
        let mut block = Block::new();
        block.room.pages.store(MOST_PAGES - 1, Relaxed);
        block.act(0, 0, 4, Act::Write);
        assert!(!block.room.missed());
        block.act(0, 4096, 4, Act::Write);
        assert!(block.room.missed());
        assert_eq!(block.act(32, 4096, 4, Act::Read), None);
        assert_eq!(block.act(32, 0, 4, Act::Read), Some((0, "write")));
        let pages = block.within().words.pages();
        block.room.give_back(pages);
        assert_eq!((pages, block.room.pages.load(Relaxed)), (1, MOST_PAGES - 1));
    }
}
