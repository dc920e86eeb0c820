//! The server's side of the zygote, the process that has imported PyTorch and forks.

use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use serde::Deserialize;

use super::child::{COMMAND, Setup};
use super::fork::{Ends, Runner};
use super::printed::Printed;
use super::queues::Queues;
use super::wire::{Versions, receive};
use warpgauge_sandbox::child::{Child, PreparedChild, Streams};
use warpgauge_sandbox::program::{ChildProgram, Environment};

/// Maximum time for importing PyTorch, which takes some 6 s on two cores, and longer from a cold
/// disk.
const START_TIMEOUT: Duration = Duration::from_secs(180);

/// Maximum time for creating one fork.
const FORK_TIMEOUT: Duration = Duration::from_secs(30);

/// First frame of an interpreter, sent after it has imported PyTorch.
#[derive(Deserialize)]
struct Ready {
    ready: Versions,
}

/// Frame of an interpreter that has created a runner.
#[derive(Deserialize)]
pub(crate) struct Forked {
    /// Process number of the runner.
    pub forked: i32,
}

/// Waits until an interpreter has imported PyTorch.
pub(crate) fn ready(control: &UnixStream, deadline: Instant) -> io::Result<Versions> {
    let frame = receive(control, deadline)?;
    Ok(serde_json::from_slice::<Ready>(&frame)?.ready)
}

/// A running zygote. Dropping it kills the zygote and its forks.
#[derive(Debug)]
pub(crate) struct Zygote {
    child: Child,
    control: UnixStream,
    pub(crate) versions: Versions,
}

impl Zygote {
    /// Starts a zygote and waits until it is ready. Blocks; must be called within a runtime.
    ///
    /// # Errors
    /// Fails with the reason if the zygote does not start.
    pub(crate) fn start(program: &Path, setup: &Setup) -> Result<Self, String> {
        let failed = |error: io::Error| format!("it cannot be started: {error}");
        let (control, theirs) = UnixStream::pair().map_err(failed)?;
        let (printed, messages) = Printed::pipe().map_err(failed)?;
        let setup = serde_json::to_string(setup).map_err(|error| failed(error.into()))?;
        let program = ChildProgram::new(program, Environment::Empty).arg(COMMAND).arg(setup);
        let streams = Streams {
            stdin: Stdio::from(OwnedFd::from(theirs)),
            stdout: Stdio::null(),
            stderr: Stdio::from(messages),
        };
        let child = PreparedChild::new(&program, streams).now().map_err(failed)?;
        let deadline = Instant::now() + START_TIMEOUT;
        match ready(&control, deadline) {
            Ok(versions) => Ok(Self { child, control, versions }),
            Err(error) => {
                drop(child);
                let said = printed.whole();
                let last = said.lines().rfind(|line| !line.trim().is_empty());
                Err(format!("it cannot import PyTorch ({error}): {}", last.unwrap_or("no output")))
            }
        }
    }

    /// Returns whether the zygote is still running.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.is_running()
    }

    /// Creates a fork. Blocks.
    ///
    /// # Errors
    /// Fails if the zygote has ended, or the system cannot create another process.
    pub(crate) fn fork(&mut self, queues: Queues) -> io::Result<Runner> {
        let ends = Ends::handed_to(&self.control, queues)?;
        let (number, handle) = self.forked()?;
        ends.joined(number, handle)
    }

    /// Receives the fork's number and handle. The handle accompanies the first byte of the frame.
    fn forked(&mut self) -> io::Result<(i32, OwnedFd)> {
        self.control.set_read_timeout(Some(FORK_TIMEOUT))?;
        let mut prefix = [0; 4];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut prefix)];
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL;
        let got = recvmsg(&self.control, &mut parts, &mut ancillary, flags)?;
        let handle = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut handles) => handles.next(),
            _ => None,
        });
        let (4, Some(handle)) = (got.bytes, handle) else {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the zygote has ended"));
        };
        let mut body = vec![0; u32::from_le_bytes(prefix).min(4096) as usize];
        self.control.read_exact(&mut body)?;
        Ok((serde_json::from_slice::<Forked>(&body)?.forked, handle))
    }
}
