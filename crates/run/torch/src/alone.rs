//! A runner that a tool is round: an interpreter of its own, which nobody else is forked from.
//!
//! The tool starts it, and so it has to import PyTorch first. It was confined before it was an interpreter:
//! `child`.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::child::{COMMAND, Setup};
use super::fork::{Ends, Runner};
use super::wire::receive;
use super::zygote::{Forked, ready};
use warpgauge_sandbox::contained;
use warpgauge_sandbox::program::ChildProgram;

/// The way to one that has yet to be started.
#[derive(Debug)]
pub struct Alone {
    control: UnixStream,
}

impl Alone {
    /// What is started, what it reads, and the way to it.
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

    /// The runner, once it has imported PyTorch. Blocks.
    ///
    /// # Errors
    /// It is not ready by then, or has ended.
    pub fn runner(self, until: Instant) -> io::Result<Runner> {
        ready(&self.control, until)?;
        let ends = Ends::handed_to(&self.control)?;
        let frame = receive(&self.control, until)?;
        // No stranger's code has run in it by now.
        let number = serde_json::from_slice::<Forked>(&frame)?.forked;
        let process = Pid::from_raw(number).ok_or(io::ErrorKind::InvalidData)?;
        let handle = pidfd_open(process, PidfdFlags::empty())?;
        ends.joined(number, handle)
    }
}
