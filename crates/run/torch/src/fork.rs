//! Operations on a fork of the zygote from outside: stopping, continuing and killing it, its
//! memory, and its exit status.
//!
//! These operations need only the fork's descriptors, which the server sends to the judge process.

use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::process::{Signal, pidfd_send_signal};

use super::awaited::awaited;
use super::builds::BuildSocket;
use super::memory::ProcessMemory;
use super::printed::Printed;
use super::queues::Queues;
use super::threads::{NotStopped, Threads};
use warpgauge_sandbox::handed;

/// Kills a fork. A fork has no child processes, and its threads end with it.
#[derive(Debug, Clone)]
pub struct Killer(Arc<OwnedFd>);

impl Killer {
    /// Kills the fork, unless it has ended already.
    pub fn kill(&self) {
        self.send(Signal::KILL);
    }

    /// Waits until the deadline for the fork to end with all of its threads. Returns whether it has
    /// ended. Blocks.
    pub fn gone_by(&self, until: Instant) -> bool {
        !awaited(&self.0, until).is_empty()
    }

    fn send(&self, signal: Signal) {
        // A process that has ended receives no signals, and its handle never refers to another
        // process.
        let _ = pidfd_send_signal(&self.0, signal);
    }
}

/// Number of descriptors that give access to a fork: its session, its process handle, its memory,
/// its output, its exit status, and the directory of its threads.
pub(crate) const DESCRIPTORS: usize = 6;

/// A fork that has not received a question yet. Dropping it does not kill the process: see
/// [`Killer`].
#[derive(Debug)]
pub struct Runner {
    descriptors: [OwnedFd; DESCRIPTORS],
    killer: Killer,
    /// The socket for build orders. It remains with the server, because a judge does not need it.
    builds: Option<UnixStream>,
}

impl Runner {
    /// Returns the descriptors that another process needs to take this runner over.
    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; DESCRIPTORS] {
        self.descriptors.each_ref().map(AsFd::as_fd)
    }

    /// Creates a runner from descriptors that another process sent.
    pub(crate) fn of(descriptors: [OwnedFd; DESCRIPTORS]) -> io::Result<Self> {
        let killer = Killer(Arc::new(descriptors[1].try_clone()?));
        Ok(Self { descriptors, killer, builds: None })
    }

    /// Returns the socket for build orders at the first call, and `None` later. Dropping the socket
    /// rejects all orders. Must be called within a runtime.
    ///
    /// # Errors
    /// Fails if the socket cannot be registered with the runtime.
    pub fn counter(&mut self) -> io::Result<Option<BuildSocket>> {
        self.builds.take().map(BuildSocket::new).transpose()
    }

    /// Returns a handle that can kill the fork from another task.
    pub fn killer(&self) -> Killer {
        self.killer.clone()
    }

    /// Waits until the deadline for the fork to be ready: confined and, if it has a device, with a
    /// context. Returns whether it is ready. The fork then sends its first frame. Its end of the
    /// session closes when it ends. Blocks.
    pub(crate) fn is_ready_by(&self, until: Instant) -> bool {
        awaited(&self.descriptors[0], until) == PollFlags::IN
    }

    /// Starts to read the fork's output and its answers.
    pub(crate) fn opened(self) -> io::Result<Fork> {
        let [session, _, memory, printed, told, threads] = self.descriptors;
        Ok(Fork {
            session: session.into(),
            memory: ProcessMemory::opened(memory.into()),
            killer: self.killer,
            printed: Printed::of(printed.into())?,
            told: told.into(),
            ended: OnceLock::new(),
            threads: Threads::of(threads),
        })
    }
}

/// A running fork of the zygote. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Fork {
    pub(crate) session: UnixStream,
    pub(crate) memory: ProcessMemory,
    killer: Killer,
    printed: Printed,
    /// Pipe on which the zygote reports the exit status.
    told: PipeReader,
    /// The exit status, once the fork has been killed and the zygote has reported it.
    ended: OnceLock<Option<Ended>>,
    threads: Threads,
}

/// The server's ends of a fork's channels.
pub(crate) struct Ends {
    session: UnixStream,
    printed: PipeReader,
    told: PipeReader,
    builds: UnixStream,
}

impl Ends {
    /// Creates both ends. The fork's ends are its session, its output, the pipe for its exit
    /// status, and the socket for its build orders.
    pub(crate) fn pair() -> io::Result<(Self, [OwnedFd; 4])> {
        let (session, theirs) = UnixStream::pair()?;
        let (printed, output) = io::pipe()?;
        let (told, tell) = io::pipe()?;
        let (builds, asks) = UnixStream::pair()?;
        let given = [theirs.into(), output.into(), tell.into(), asks.into()];
        Ok((Self { session, printed, told, builds }, given))
    }

    /// Creates both ends, and sends the fork's ends over `control` to the process that creates the
    /// fork.
    pub(crate) fn handed_to(control: &UnixStream, queues: Queues) -> io::Result<Self> {
        let (ends, theirs) = Self::pair()?;
        handed::send(control, queues.byte(), &theirs.each_ref().map(AsFd::as_fd))?;
        Ok(ends)
    }

    /// Returns the fork that received the other ends, given its process number and handle.
    pub(crate) fn joined(self, number: i32, handle: OwnedFd) -> io::Result<Runner> {
        let killer = Killer(Arc::new(handle.try_clone()?));
        let opened = ProcessMemory::of(number)
            .and_then(|memory| Ok((memory, Threads::directory_of(number)?)));
        // While the process of the handle exists, no other process can have its number.
        let there = pidfd_send_signal(&killer.0, Signal::CONT);
        let opened = opened.and_then(|opened| there.map(|()| opened).map_err(io::Error::from));
        let (memory, threads) = opened.inspect_err(|_| killer.kill())?;
        let Self { session, printed, told, builds } = self;
        let descriptors =
            [session.into(), handle, memory.into(), printed.into(), told.into(), threads];
        Ok(Runner { descriptors, killer, builds: Some(builds) })
    }
}

impl Fork {
    /// Sends SIGSTOP without waiting until the threads have stopped.
    pub(crate) fn stop(&self) {
        self.killer.send(Signal::STOP);
    }

    /// Waits until all threads are stopped. Returns the time from the signal to the last
    /// observation of a running thread. Blocks.
    pub(crate) fn stopped(
        &mut self,
        signalled: Instant,
        deadline: Instant,
    ) -> Result<Duration, NotStopped> {
        self.threads.stopped(&self.killer.0, signalled, deadline)
    }

    /// Checks that none of the fork's threads has run since all were stopped.
    pub(crate) fn still_stopped(&mut self) -> Result<(), NotStopped> {
        self.threads.still_stopped()
    }

    /// Waits until the deadline for the fork to end. Returns whether it has ended. Blocks.
    pub(crate) fn gone_by(&self, until: Instant) -> bool {
        self.killer.gone_by(until)
    }

    /// Makes all threads of the fork continue.
    pub(crate) fn go_on(&self) {
        self.killer.send(Signal::CONT);
    }

    /// Kills the fork without waiting for its end.
    pub(crate) fn kill(&self) {
        self.killer.kill();
    }

    /// Returns the output since the last call; output beyond a limit is dropped.
    pub(crate) fn printed_so_far(&self) -> String {
        self.printed.so_far()
    }

    /// Waits for the end of the output, and returns the part that was not returned before.
    pub(crate) fn printed(&self) -> String {
        self.printed.whole()
    }

    /// Kills the fork, unless it has ended, and waits for its exit status. Returns `None` if the
    /// zygote cannot report it.
    pub(crate) fn end(&self) -> Option<Ended> {
        *self.ended.get_or_init(|| {
            self.killer.kill();
            let mut told = File::from(self.told.as_fd().try_clone_to_owned().ok()?);
            let mut status = [0; 4];
            told.read_exact(&mut status).ok()?;
            Some(Ended(i32::from_le_bytes(status)))
        })
    }
}

impl Drop for Fork {
    fn drop(&mut self) {
        self.killer.kill();
    }
}

/// Exit status of a process, as `wait(2)` encodes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended(i32);

impl Ended {
    /// Returns the signal that ended the process.
    pub(crate) fn signal(self) -> Option<i32> {
        Some(self.0 & 0x7f).filter(|signal| *signal != 0)
    }

    /// Returns a description for messages.
    pub(crate) fn text(self) -> String {
        match self.signal() {
            Some(11) => "a segmentation fault (signal 11)".to_owned(),
            Some(6) => "an abort (signal 6)".to_owned(),
            Some(9) => "signal 9, which the system sends if memory runs out".to_owned(),
            Some(signal) => format!("signal {signal}"),
            None => format!("exit code {}", (self.0 >> 8) & 0xff),
        }
    }
}
