//! How many threads a confined process may have at once.
//!
//! `RLIMIT_NPROC` counts all processes of a user together, and does not hold for root; a group of processes
//! (cgroup) has to be delegated first. So the kernel asks: a filter of seccomp has each `clone` wait for a
//! supervisor, which looks how many threads the process has and lets it go on, or fail with `EAGAIN`, as
//! where a system has no more threads. That holds for every user and in containers.
//!
//! The filter is [`asking`](crate::calls::asking). A process installs it before it reads what a
//! stranger wrote, and hands the descriptor to a supervisor: an interpreter does so with a byte on the
//! socket that it has ([`received`]), a program of ours with [`ask`].

#[allow(unsafe_code)]
mod notify;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::handed;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub use notify::ask;
use notify::{Question, Reply};

/// The byte with which a process hands over where it asks.
pub const ASKS: u8 = b't';

/// Threads of one process at once: what parallel libraries start on this machine, and as many again.
pub fn most() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (4 * cores).max(256)
}

/// Where a process asks before it starts a thread.
#[derive(Debug)]
pub struct ThreadNotifier(OwnedFd);

/// Waits for a process to hand over where it asks; `None`: its kernel does not ask, so threads are bounded
/// by its memory alone.
///
/// # Errors
/// The connection broke, the time passed, or something else came.
pub fn received(stream: &UnixStream, within: Duration) -> io::Result<Option<ThreadNotifier>> {
    stream.set_read_timeout(Some(within.max(Duration::from_millis(1))))?;
    let asking = handed::receive_some(stream, ASKS);
    stream.set_read_timeout(None)?;
    Ok(asking?.map(ThreadNotifier))
}

impl ThreadNotifier {
    /// One that came with a message of another form.
    pub fn of(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// Answers for a process from a thread of this one, until that process has ended.
    ///
    /// # Errors
    /// The system has no more threads.
    pub fn supervise(self, most: usize) -> io::Result<()> {
        let answer = move || self.answer(most, None);
        std::thread::Builder::new().name("thread-count".into()).spawn(answer)?;
        Ok(())
    }

    /// Answers until the process has ended, or the other one whose handle is given.
    pub fn answer(&self, most: usize, until: Option<&OwnedFd>) {
        let mut granted = 0;
        loop {
            let mut both = vec![PollFd::new(&self.0, PollFlags::IN)];
            both.extend(until.map(|other| PollFd::new(other, PollFlags::IN)));
            match poll(&mut both, None::<&Timespec>) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return,
            }
            let asked = both[0].revents();
            if both.get(1).is_some_and(|other| !other.revents().is_empty()) {
                return;
            }
            if !asked.contains(PollFlags::IN) {
                // No process is left that could ask.
                return;
            }
            let Ok(question) = Question::next(self.0.as_fd()) else { continue };
            let running = threads_of(question.thread()).unwrap_or(granted);
            let reply = if running < most { Reply::GoOn } else { Reply::Fail };
            granted += usize::from(reply == Reply::GoOn);
            // A thread that was killed meanwhile needs no answer.
            let _ = question.answer(self.0.as_fd(), reply);
        }
    }
}

/// Threads of the process that a thread belongs to: directories below its `task`.
fn threads_of(thread: u32) -> Option<usize> {
    let links = std::fs::metadata(format!("/proc/{thread}/task")).ok()?.st_nlink();
    usize::try_from(links.saturating_sub(2)).ok()
}
