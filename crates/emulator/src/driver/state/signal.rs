//! Events shared by processes.
//!
//! All processes that have opened such an event map one file, the board. A record takes the next
//! ticket of the event and enters it on the board. The ticket is marked when its stream has reached
//! the record. The event refers to the last ticket. A wait always concerns a ticket of an earlier
//! call, so there are no cycles.
//!
//! Each process on the board is a member and holds a lock on one byte of the file. A ticket
//! contains the number of its member. If the member ends before its stream has reached the record,
//! the ticket is lost. Work that waits for it then fails and does not wait forever.
//!
//! Other processes may write anything to the board. It contains only numbers: wrong numbers can
//! only shorten a wait, or prolong it until the other processes end.

use std::fs::File;
use std::io::{self, Error};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::pages::Pages;
use super::segment::{Content, Directory, Name, Segment, held, hold};
use crate::driver::c::code::{Code, Res};

/// Maximum number of pending records of an event. Another record waits until one is complete.
const SLOTS: usize = 1024;
/// Time after which a waiter checks that the member it waits for is alive, nanoseconds.
const PATIENCE: i64 = 50_000_000;
/// Highest number of a member. The creator of an event is member 0.
const LAST_MEMBER: u8 = u8::MAX;

/// Flags of a ticket: its stream has reached the record, or its member ended before that.
const REACHED: u64 = 1;
const LOST: u64 = 2;
const FLAGS: u64 = REACHED | LOST;

/// Layout of an event's file, the board.
#[repr(C)]
struct Board {
    /// Counts changes of the board. Waiters sleep until it changes.
    pulse: AtomicU32,
    reserved: AtomicU32,
    /// The last ticket taken (from bit 16), and its member (from bit 8).
    latest: AtomicU64,
    /// Ticket `n` is at `n % SLOTS`, in the format of `latest`, with the flags.
    slots: [AtomicU64; SLOTS],
}

/// Size of an event's file, bytes.
pub const BYTES: u64 = size_of::<Board>() as u64;

/// A member's access to a board.
pub struct Shared {
    pages: Pages,
    hold: Hold,
    member: u8,
}

/// The open file, which keeps the lock of the member. The creator's file is removed on drop.
enum Hold {
    Maker(Segment),
    Other(File),
}

impl Shared {
    /// Creates a board for a new event of this process.
    pub fn create(directory: &Directory) -> io::Result<Arc<Self>> {
        let made = directory.create(Content::Event, BYTES)?;
        made.file.write_all_at(&[0; BYTES as usize], 0)?;
        let pages = Pages::shared(&made.file, BYTES)?;
        Ok(Arc::new(Shared { pages, hold: Hold::Maker(made), member: 0 }))
    }

    /// Opens the board of another process's event.
    pub fn join(directory: &Directory, name: Name) -> io::Result<Arc<Self>> {
        let file = directory.open(name, BYTES)?;
        let pages = Pages::shared(&file, BYTES)?;
        for member in 1..=LAST_MEMBER {
            if hold(&file, member)? {
                let joined = Shared { pages, hold: Hold::Other(file), member };
                joined.bury_predecessor();
                return Ok(Arc::new(joined));
            }
        }
        Err(Error::from(io::ErrorKind::QuotaExceeded))
    }

    /// Returns the name that a handle contains, or `None` in processes that did not create the
    /// event.
    pub fn name(&self) -> Option<Name> {
        match &self.hold {
            Hold::Maker(segment) => Some(segment.name),
            Hold::Other(_) => None,
        }
    }

    fn board(&self) -> &Board {
        // SAFETY: the mapping begins a page, is as long as a board, and lives as long as `self`. All
        // fields of a board are atomics, which other processes may change.
        unsafe { &*self.pages.base().cast::<Board>() }
    }

    fn slot(&self, ticket: u64) -> &AtomicU64 {
        &self.board().slots[(ticket % SLOTS as u64) as usize]
    }

    /// Returns whether a member is alive and can still mark its tickets.
    fn lives(&self, member: u8) -> bool {
        let file = match &self.hold {
            Hold::Maker(segment) => &segment.file,
            Hold::Other(file) => file,
        };
        member == self.member || held(file, member)
    }

    /// Marks as lost the pending tickets of an earlier member with this number, which has ended.
    fn bury_predecessor(&self) {
        let board = self.board();
        let latest = board.latest.load(Ordering::Acquire);
        if member_of(latest) == self.member && ticket_of(latest) != 0 {
            // The earlier member may have ended before it entered its ticket.
            self.slot(ticket_of(latest)).fetch_max(latest, Ordering::AcqRel);
        }
        for slot in &board.slots {
            let word = slot.load(Ordering::Acquire);
            if ticket_of(word) != 0 && member_of(word) == self.member {
                self.settle(ticket_of(word), LOST);
            }
        }
    }

    /// Stores the result of a ticket of this member, and wakes all waiters.
    fn settle(&self, ticket: u64, flag: u64) {
        let pending = word(ticket, self.member);
        let _ = self.slot(ticket).compare_exchange(
            pending,
            pending | flag,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        let pulse = &self.board().pulse;
        pulse.fetch_add(1, Ordering::AcqRel);
        // SAFETY: the address is of a mapped, aligned word.
        unsafe { libc::syscall(libc::SYS_futex, pulse.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
    }

    /// Sleeps until the pulse differs from `seen`, or for a limited time.
    fn sleep(&self, seen: u32) {
        let while_ = libc::timespec { tv_sec: 0, tv_nsec: PATIENCE };
        let pulse = self.board().pulse.as_ptr();
        // SAFETY: the address is of a mapped, aligned word, and the time is ours.
        unsafe { libc::syscall(libc::SYS_futex, pulse, libc::FUTEX_WAIT, seen, &raw const while_) };
    }

    /// Returns the event's last record, or `None` if it was never recorded.
    pub fn latest(self: &Arc<Self>) -> Option<Mark> {
        let latest = self.board().latest.load(Ordering::Acquire);
        let (ticket, member) = (ticket_of(latest), member_of(latest));
        (ticket != 0).then(|| Mark { shared: self.clone(), ticket, member })
    }

    /// Takes the next ticket, for a record that is about to be queued. Waits while too many records
    /// are pending, unless `stop` returns an error.
    pub fn issue(self: &Arc<Self>, stop: &dyn Fn() -> Option<Code>) -> Res<Signal> {
        let board = self.board();
        loop {
            let latest = board.latest.load(Ordering::Acquire);
            let ticket = ticket_of(word(ticket_of(latest).wrapping_add(1), 0)).max(1);
            let before = self.slot(ticket).load(Ordering::Acquire);
            if before & FLAGS == 0 && (1..ticket).contains(&ticket_of(before)) {
                let (ticket, member) = (ticket_of(before), member_of(before));
                let mark = Mark { shared: self.clone(), ticket, member };
                // A lost ticket frees its slot, too.
                if mark.wait(stop).is_err()
                    && let Some(reason) = stop()
                {
                    return Err(reason);
                }
            }
            let own = word(ticket, self.member);
            let taken =
                board.latest.compare_exchange(latest, own, Ordering::AcqRel, Ordering::Acquire);
            if taken.is_ok() {
                self.slot(ticket).fetch_max(own, Ordering::AcqRel);
                return Ok(Signal { shared: self.clone(), ticket });
            }
        }
    }
}

fn word(ticket: u64, member: u8) -> u64 {
    ticket << 16 | u64::from(member) << 8
}

fn ticket_of(word: u64) -> u64 {
    word >> 16
}

fn member_of(word: u64) -> u8 {
    (word >> 8) as u8
}

/// The obligation to mark a ticket as reached. Dropping the value marks the ticket.
pub struct Signal {
    shared: Arc<Shared>,
    pub ticket: u64,
}

impl Drop for Signal {
    fn drop(&mut self) {
        self.shared.settle(self.ticket, REACHED);
    }
}

/// A record of a shared event, identified by its ticket.
#[derive(Clone)]
pub struct Mark {
    shared: Arc<Shared>,
    pub ticket: u64,
    member: u8,
}

impl Mark {
    /// Returns whether the stream has reached the record, or `EXTERNAL_DEVICE` if it never will.
    pub fn reached(&self) -> Res<bool> {
        if let Some(answer) = self.said() {
            return answer.map(|()| true);
        }
        if self.shared.lives(self.member) {
            return Ok(false);
        }
        // The member may have marked the ticket just before it ended.
        self.said().unwrap_or(Err(Code::EXTERNAL_DEVICE)).map(|()| true)
    }

    /// Returns the result of the ticket on the board, or `None` if the board has no result yet.
    fn said(&self) -> Option<Res> {
        let word = self.shared.slot(self.ticket).load(Ordering::Acquire);
        match ticket_of(word) {
            // The record that took over this slot has waited for this one.
            later if later > self.ticket => Some(Ok(())),
            earlier if earlier < self.ticket => None,
            _ if word & LOST != 0 => Some(Err(Code::EXTERNAL_DEVICE)),
            _ => (word & REACHED != 0).then_some(Ok(())),
        }
    }

    /// Blocks until the stream reaches the record or `stop` returns an error.
    pub fn wait(&self, stop: &dyn Fn() -> Option<Code>) -> Res {
        loop {
            let seen = self.shared.board().pulse.load(Ordering::Acquire);
            if self.reached()? {
                return Ok(());
            }
            if let Some(reason) = stop() {
                return Err(reason);
            }
            self.shared.sleep(seen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an event, and another member of its board in the same process.
    fn pair(home: &std::path::Path) -> (Arc<Shared>, Arc<Shared>) {
        let directory = Directory::at(home);
        let one = Shared::create(&directory).unwrap();
        let other = Shared::join(&directory, one.name().unwrap()).unwrap();
        (one, other)
    }

    fn never() -> Option<Code> {
        None
    }

    fn at_once() -> Option<Code> {
        Some(Code::NOT_READY)
    }

    #[test]
    fn a_ticket_is_reached_when_its_signal_is_given() {
        let home = tempfile::tempdir().unwrap();
        let (one, other) = pair(home.path());
        assert!(other.latest().is_none());
        let early = one.issue(&never).unwrap();
        let first = other.latest().unwrap();
        let late = other.issue(&never).unwrap();
        let second = one.latest().unwrap();
        assert_eq!((first.reached(), second.reached()), (Ok(false), Ok(false)));
        assert_eq!(second.wait(&at_once), Err(Code::NOT_READY));
        drop(late);
        assert_eq!((first.reached(), second.reached()), (Ok(false), Ok(true)));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| first.wait(&never));
            drop(early);
            assert_eq!(waiter.join().unwrap(), Ok(()));
        });
    }

    #[test]
    fn no_more_tickets_are_under_way_than_there_are_places() {
        let home = tempfile::tempdir().unwrap();
        let (one, other) = pair(home.path());
        let mut signals: Vec<Signal> = (0..SLOTS).map(|_| one.issue(&never).unwrap()).collect();
        let last = other.latest().unwrap();
        assert_eq!(other.issue(&at_once).err(), Some(Code::NOT_READY));
        signals.remove(0);
        let next = other.issue(&at_once).unwrap();
        assert_eq!(next.ticket, SLOTS as u64 + 1);
        assert_eq!(last.reached(), Ok(false));
        // Members that end without a report free their slots, too.
        signals.drain(..).for_each(std::mem::forget);
        drop(one);
        assert_eq!(last.reached(), Ok(false), "what was forgotten keeps its member");
        drop(next);
        assert!(other.latest().unwrap().reached().unwrap());
    }

    #[test]
    fn a_board_of_nonsense_does_no_harm() {
        let home = tempfile::tempdir().unwrap();
        let (one, other) = pair(home.path());
        let mut noise = 0x9E37_79B9_7F4A_7C15u64;
        for round in 0..200 {
            let board = other.board();
            for word in board.slots.iter().chain([&board.latest]) {
                noise ^= noise << 13;
                noise ^= noise >> 7;
                noise ^= noise << 17;
                word.store([noise, u64::MAX, 0, noise >> 40][round % 4], Ordering::Relaxed);
            }
            if let Some(mark) = one.latest() {
                let _ = mark.reached();
                let _ = mark.wait(&at_once);
            }
            let _ = one.issue(&at_once);
            other.bury_predecessor();
        }
        assert!(Shared::join(&Directory::at(home.path()), one.name().unwrap()).is_ok());
    }
}
