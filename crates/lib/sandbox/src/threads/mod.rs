//! Limits the number of threads of a confined process. The main type is [`ThreadNotifier`].
//!
//! `RLIMIT_NPROC` counts all processes of a user together, and does not apply to root. A control
//! group (cgroup) must first be delegated. Therefore a seccomp filter makes each `clone` wait for a
//! supervisor. The supervisor counts the threads of the process, and lets the call continue or fail
//! with `EAGAIN`, as on a system that has no free threads. This works for every user and in
//! containers.
//!
//! The filter is [`asking`](crate::calls::asking). A process installs it before it reads untrusted
//! input, and passes the descriptor to a supervisor. An interpreter does so with a byte on its
//! socket ([`received`]), and a warpgauge program with [`ask`].

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

/// The byte that accompanies the notification descriptor of a process.
pub const ASKS: u8 = b't';

/// Returns the maximum number of threads of one process: four per core, but at least 256, which is
/// enough for parallel libraries.
pub fn most() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (4 * cores).max(256)
}

/// The descriptor on which the kernel asks before a process starts a thread.
#[derive(Debug)]
pub struct ThreadNotifier(OwnedFd);

/// Waits for a process to pass its notification descriptor. Returns `None` if the kernel does not
/// support notifications. In that case, only the available memory limits the number of threads.
///
/// # Errors
/// The connection broke, the time limit expired, or another message arrived.
pub fn received(stream: &UnixStream, within: Duration) -> io::Result<Option<ThreadNotifier>> {
    stream.set_read_timeout(Some(within.max(Duration::from_millis(1))))?;
    let asking = handed::receive_some(stream, ASKS);
    stream.set_read_timeout(None)?;
    Ok(asking?.map(ThreadNotifier))
}

impl ThreadNotifier {
    /// Wraps a descriptor that arrived in a different kind of message.
    pub fn of(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// Starts a thread that answers for a process until that process has ended.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn supervise(self, most: usize) -> io::Result<()> {
        let answer = move || self.answer(most, None);
        std::thread::Builder::new().name("thread-count".into()).spawn(answer)?;
        Ok(())
    }

    /// Answers until the process has ended, or until the process with the handle `until` has ended.
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
                // No remaining process could start a thread.
                return;
            }
            let Ok(question) = Question::next(self.0.as_fd()) else { continue };
            let running = threads_of(question.thread()).unwrap_or(granted);
            let reply = if running < most { Reply::GoOn } else { Reply::Fail };
            granted += usize::from(reply == Reply::GoOn);
            // A thread that was killed in the meantime needs no answer.
            let _ = question.answer(self.0.as_fd(), reply);
        }
    }
}

/// Returns the number of threads in the process to which `thread` belongs. This is the number of
/// directories in its `task` directory.
fn threads_of(thread: u32) -> Option<usize> {
    let links = std::fs::metadata(format!("/proc/{thread}/task")).ok()?.st_nlink();
    usize::try_from(links.saturating_sub(2)).ok()
}
