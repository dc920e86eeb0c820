//! Waiting for a descriptor to have something to say, where a thread may block.

use std::os::fd::AsFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What a descriptor has to say by then: that there is something to read, that its other end is closed, or
/// nothing.
pub(crate) fn awaited(descriptor: impl AsFd, until: Instant) -> PollFlags {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let limit = Timespec::try_from(left).unwrap_or_default();
        let mut one = [PollFd::new(&descriptor, PollFlags::IN)];
        // A signal of ours may have come between.
        let told = poll(&mut one, Some(&limit)).is_ok_and(|count| count > 0);
        if told || left.is_zero() {
            return one[0].revents();
        }
    }
}
