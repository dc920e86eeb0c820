//! Spare runners, which have created their context on a device before an evaluation needs them.
//!
//! Creating a context takes 75 to 200 ms on an H200 (see `queues.rs`), and disturbs measurements on
//! the device. The caller must ensure that no measurement is running.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::fork::Runner;

/// Maximum wait for all contexts that are created together.
const LIMIT: Duration = Duration::from_secs(10);

/// Idle spare runners. Dropping them kills the processes.
#[derive(Debug, Default)]
pub(crate) struct Spares {
    waiting: Mutex<Vec<Runner>>,
    /// Held while spare runners are created.
    making: Mutex<()>,
}

impl Spares {
    /// Takes an idle spare runner, if there is one.
    pub(crate) fn take(&self) -> Option<Runner> {
        self.those_waiting().pop()
    }

    /// Creates runners until `wanted` are idle. Returns when they are ready. Blocks.
    pub(crate) fn fill(&self, wanted: usize, fork: impl FnMut() -> Option<Runner>) {
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = wanted.saturating_sub(self.those_waiting().len());
        let until = Instant::now() + LIMIT;
        // All runners start before this waits for the first one, so that their contexts are created
        // in parallel.
        let fresh: Vec<Runner> =
            std::iter::repeat_with(fork).take(missing).map_while(|f| f).collect();
        for runner in fresh {
            if runner.is_ready_by(until) {
                self.those_waiting().push(runner);
            } else {
                // The next caller that needs a runner creates one and reports the error.
                runner.killer().kill();
            }
        }
    }

    fn those_waiting(&self) -> MutexGuard<'_, Vec<Runner>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // The system may have killed a runner for lack of memory.
        waiting.retain(|runner| runner.is_ready_by(Instant::now()));
        waiting
    }
}

impl Drop for Spares {
    fn drop(&mut self) {
        let waiting = self.waiting.get_mut().unwrap_or_else(PoisonError::into_inner);
        waiting.iter().for_each(|runner| runner.killer().kill());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::process::{Child, Command};

    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::super::fork::Ends;
    use super::*;

    /// Starts a process in place of a fork; returns it with its end of the session.
    fn fork() -> (Runner, Child, UnixStream) {
        let (ends, theirs) = Ends::pair().unwrap();
        let child = Command::new("tail").args(["-f", "/dev/null"]).spawn().unwrap();
        let number = i32::try_from(child.id()).unwrap();
        let handle: OwnedFd =
            pidfd_open(Pid::from_raw(number).unwrap(), PidfdFlags::empty()).unwrap();
        let [session, ..] = theirs;
        (ends.joined(number, handle).unwrap(), child, session.into())
    }

    #[test]
    fn those_that_are_ready_wait_and_no_others() {
        let (mut children, mut sessions) = (Vec::new(), Vec::new());
        let spares = Spares::default();
        assert!(spares.take().is_none());
        let mut made = 0;
        let mut fill = |wanted| {
            spares.fill(wanted, || {
                let (runner, child, mut session) = fork();
                made += 1;
                session.write_all(b"\x04\0\0\0true").unwrap();
                children.push(child);
                sessions.push(session);
                Some(runner)
            });
            made
        };
        assert_eq!(fill(2), 2);
        assert_eq!(fill(2), 2, "two wait already");
        assert!(spares.take().is_some());
        assert_eq!(fill(2), 3);
        // The first one ends, so no caller gets it.
        sessions.remove(0);
        assert!(spares.take().is_some());
        assert!(spares.take().is_none());
        // This one ends before it is ready.
        spares.fill(1, || {
            let (runner, child, session) = fork();
            drop(session);
            children.push(child);
            Some(runner)
        });
        assert!(spares.take().is_none());
        assert_eq!(children.last_mut().unwrap().wait().unwrap().code(), None, "it was ended");
        children.iter_mut().for_each(|child| child.kill().unwrap());
        children.iter_mut().for_each(|child| drop(child.wait()));
    }

    #[test]
    fn they_end_with_whoever_holds_them() {
        let spares = Spares::default();
        let (runner, mut child, mut session) = fork();
        session.write_all(b"\x04\0\0\0true").unwrap();
        let killer = runner.killer();
        let mut runner = Some(runner);
        spares.fill(1, || runner.take());
        assert!(!killer.gone_by(Instant::now()));
        drop(spares);
        assert!(killer.gone_by(Instant::now() + Duration::from_secs(60)));
        assert_eq!(child.wait().unwrap().code(), None);
    }
}
