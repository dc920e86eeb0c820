//! A runner under a profiling tool: a separate interpreter, which does not fork.
//!
//! The tool starts this interpreter, so the interpreter must import PyTorch first. The process is
//! confined before it becomes an interpreter: see `child`.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::child::{COMMAND, Setup};
use super::fork::{Ends, Runner};
use super::queues::Queues;
use super::wire::receive;
use super::zygote::{Forked, ready};
use warpgauge_sandbox::contained;
use warpgauge_sandbox::program::ChildProgram;

/// The connection to a runner that a tool has not started yet.
#[derive(Debug)]
pub struct Alone {
    control: UnixStream,
}

impl Alone {
    /// Returns the program to start, its standard input, and the connection to the runner.
    pub(crate) fn new(
        server: &Path,
        setup: &Setup,
        directory: &Path,
    ) -> io::Result<(ChildProgram, OwnedFd, Self)> {
        let (control, theirs) = UnixStream::pair()?;
        let setup = Setup { tool: Some(directory.to_owned()), ..setup.clone() };
        let setup = serde_json::to_string(&setup)?;
        let program = contained::tool(server, directory).args([COMMAND, &setup]);
        Ok((program, theirs.into(), Self { control }))
    }

    /// Waits until the runner has imported PyTorch, and returns it. Blocks.
    ///
    /// # Errors
    /// Fails if the runner is not ready by the deadline or has ended.
    pub fn runner(self, until: Instant) -> io::Result<Runner> {
        ready(&self.control, until)?;
        let ends = Ends::handed_to(&self.control, Queues::All)?;
        let frame = receive(&self.control, until)?;
        // No submitted code has run in this process yet, so its own process number can be trusted.
        let number = serde_json::from_slice::<Forked>(&frame)?.forked;
        let process = Pid::from_raw(number).ok_or(io::ErrorKind::InvalidData)?;
        let handle = pidfd_open(process, PidfdFlags::empty())?;
        ends.joined(number, handle)
    }
}
