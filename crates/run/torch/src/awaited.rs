//! Waiting for events on a descriptor, in a thread that may block.

use std::os::fd::AsFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Polls a descriptor until the deadline. The result shows whether there is data to read or the
/// other end is closed; it is empty if neither occurred.
pub(crate) fn awaited(descriptor: impl AsFd, until: Instant) -> PollFlags {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let limit = Timespec::try_from(left).unwrap_or_default();
        let mut one = [PollFd::new(&descriptor, PollFlags::IN)];
        // A signal to this process may have interrupted the call.
        let told = poll(&mut one, Some(&limit)).is_ok_and(|count| count > 0);
        if told || left.is_zero() {
            return one[0].revents();
        }
    }
}
