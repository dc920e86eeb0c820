//! A fork of the zygote, from outside: stopping, continuing and ending it, its memory, and how it ended.
//!
//! Whoever has its descriptors can do that: they are handed to the process that judges.

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
use super::threads::{NotStopped, Threads};
use warpgauge_sandbox::handed;

/// Ends a fork: it has no processes but itself, and its threads end with it.
#[derive(Debug, Clone)]
pub struct Killer(Arc<OwnedFd>);

impl Killer {
    /// Ends it; one that has ended is left alone.
    pub fn kill(&self) {
        self.send(Signal::KILL);
    }

    /// Whether it has ended by then, with all that it had. Blocks.
    pub fn gone_by(&self, until: Instant) -> bool {
        !awaited(&self.0, until).is_empty()
    }

    fn send(&self, signal: Signal) {
        // Whoever has ended takes no signals, and nobody else can have its handle.
        let _ = pidfd_send_signal(&self.0, signal);
    }
}

/// Descriptors that lead to a fork: its session, a handle of it, its memory, what it prints, how it ended,
/// and the directory of its threads.
pub(crate) const DESCRIPTORS: usize = 6;

/// A fork that nobody has asked anything yet. Dropping it does not end it: see [`Killer`].
#[derive(Debug)]
pub struct Runner {
    descriptors: [OwnedFd; DESCRIPTORS],
    killer: Killer,
    /// Where it asks for what it cannot compile itself. That stays with the server: a judge has nothing to
    /// do with it.
    builds: Option<UnixStream>,
}

impl Runner {
    /// What another process needs to have it in place of this one.
    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; DESCRIPTORS] {
        self.descriptors.each_ref().map(AsFd::as_fd)
    }

    /// One that another process had.
    pub(crate) fn of(descriptors: [OwnedFd; DESCRIPTORS]) -> io::Result<Self> {
        let killer = Killer(Arc::new(descriptors[1].try_clone()?));
        Ok(Self { descriptors, killer, builds: None })
    }

    /// Where it asks for what it cannot compile itself, once. Whoever drops that refuses all of it. Must be
    /// called within a runtime.
    ///
    /// # Errors
    /// The system does not let us.
    pub fn counter(&mut self) -> io::Result<Option<BuildSocket>> {
        self.builds.take().map(BuildSocket::new).transpose()
    }

    /// Ends it from elsewhere.
    pub fn killer(&self) -> Killer {
        self.killer.clone()
    }

    /// Whether it has confined itself, made its context if it has a device, and waits, by then: its first word
    /// says so, and its end of the session is closed when it ends. Blocks.
    pub(crate) fn is_ready_by(&self, until: Instant) -> bool {
        awaited(&self.descriptors[0], until) == PollFlags::IN
    }

    /// Begins to read what it prints, and to hear what it says.
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

/// A running fork. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Fork {
    pub(crate) session: UnixStream,
    pub(crate) memory: ProcessMemory,
    killer: Killer,
    printed: Printed,
    /// Where the zygote tells its end.
    told: PipeReader,
    /// How it ended, once it has been ended and the zygote told.
    ended: OnceLock<Option<Ended>>,
    threads: Threads,
}

/// What a fork gets, and what stays here.
pub(crate) struct Ends {
    session: UnixStream,
    printed: PipeReader,
    told: PipeReader,
    builds: UnixStream,
}

impl Ends {
    /// Makes both; the fork's are its session, its output, where its end is told, and where it asks for what
    /// it cannot compile itself.
    pub(crate) fn pair() -> io::Result<(Self, [OwnedFd; 4])> {
        let (session, theirs) = UnixStream::pair()?;
        let (printed, output) = io::pipe()?;
        let (told, tell) = io::pipe()?;
        let (builds, asks) = UnixStream::pair()?;
        let given = [theirs.into(), output.into(), tell.into(), asks.into()];
        Ok((Self { session, printed, told, builds }, given))
    }

    /// Makes both, and hands the fork's to who is to make it.
    pub(crate) fn handed_to(control: &UnixStream) -> io::Result<Self> {
        let (ends, theirs) = Self::pair()?;
        handed::send(control, b'f', &theirs.each_ref().map(AsFd::as_fd))?;
        Ok(ends)
    }

    /// The fork that got the other ends, by its number and its handle.
    pub(crate) fn joined(self, number: i32, handle: OwnedFd) -> io::Result<Runner> {
        let killer = Killer(Arc::new(handle.try_clone()?));
        let opened = ProcessMemory::of(number)
            .and_then(|memory| Ok((memory, Threads::directory_of(number)?)));
        // As long as the handle's process is there, the number is its own.
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
    /// Has all of its threads stop, and does not wait until they have.
    pub(crate) fn stop(&self) {
        self.killer.send(Signal::STOP);
    }

    /// Waits until all of its threads are stopped. Gives the time from the signal to the last observation of
    /// a thread that ran. Blocks.
    pub(crate) fn stopped(
        &mut self,
        signalled: Instant,
        deadline: Instant,
    ) -> Result<Duration, NotStopped> {
        self.threads.stopped(&self.killer.0, signalled, deadline)
    }

    /// Whether none of its threads has run since all were stopped.
    pub(crate) fn still_stopped(&mut self) -> Result<(), NotStopped> {
        self.threads.still_stopped()
    }

    /// Whether it has ended by then. Blocks.
    pub(crate) fn gone_by(&self, until: Instant) -> bool {
        self.killer.gone_by(until)
    }

    /// Has them go on.
    pub(crate) fn go_on(&self) {
        self.killer.send(Signal::CONT);
    }

    /// Ends it, and does not wait until it has.
    pub(crate) fn kill(&self) {
        self.killer.kill();
    }

    /// The beginning of what it printed by now and nobody was told.
    pub(crate) fn printed_so_far(&self) -> String {
        self.printed.so_far()
    }

    /// The beginning of what it printed, once, of a fork that has ended.
    pub(crate) fn printed(&self) -> String {
        self.printed.whole()
    }

    /// Ends it, if it has not ended, and waits until it has; `None`: nobody can tell how it ended.
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

/// How a process ended, as `wait(2)` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended(i32);

impl Ended {
    /// The signal that ended it.
    pub(crate) fn signal(self) -> Option<i32> {
        Some(self.0 & 0x7f).filter(|signal| *signal != 0)
    }

    /// In words.
    pub(crate) fn text(self) -> String {
        match self.signal() {
            Some(11) => "a segmentation fault (signal 11)".to_owned(),
            Some(6) => "an abort (signal 6)".to_owned(),
            Some(9) => "signal 9, as it is sent where memory runs out".to_owned(),
            Some(signal) => format!("signal {signal}"),
            None => format!("exit code {}", (self.0 >> 8) & 0xff),
        }
    }
}
