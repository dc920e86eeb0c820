//! The process that counts the threads of a program: this program, started beside the one that becomes the
//! submitted program, since that leaves no process of ours.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use warpgauge_sandbox::calls::{self, ChildKind};
use warpgauge_sandbox::handed;
use warpgauge_sandbox::program::{ChildProgram, Environment};
use warpgauge_sandbox::threads::{ASKS, ask, most, received};

/// First argument of the process that counts.
pub const COMMAND: &str = "__program-threads";

/// Longest wait for the program to begin to ask.
const BEGINS: Duration = Duration::from_secs(60);

/// Has the kernel ask another process before this one, or what it becomes, starts a thread. Must be called
/// while it has one thread and may start programs. Returns whether threads are counted: an older kernel does
/// not ask.
pub(crate) fn begin() -> io::Result<bool> {
    let (ours, theirs) = UnixStream::pair()?;
    let own = std::process::id().to_string();
    // Nothing of the environment: a tool round this process would put itself into that one, too.
    ChildProgram::new(std::env::current_exe()?, Environment::Empty)
        .args([COMMAND, &own])
        .to_blocking()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // An error is the kernel's: it does not ask, or asks another process already.
    let asking = ask(&calls::asking()).ok();
    let descriptors: Vec<_> = asking.iter().map(AsFd::as_fd).collect();
    handed::send(&ours, ASKS, &descriptors)?;
    Ok(asking.is_some())
}

/// Runs the process that counts, until the program has ended.
pub fn main(mut arguments: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let number = arguments.next().and_then(|number| number.to_str()?.parse().ok());
    match number.and_then(Pid::from_raw).map(serve) {
        Some(Ok(())) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn serve(program: Pid) -> io::Result<()> {
    let program = pidfd_open(program, PidfdFlags::empty())?;
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    calls::allow_only(ChildKind::Judge);
    if let Some(asking) = received(&stream, BEGINS)? {
        asking.answer(most(), Some(&program));
    }
    Ok(())
}
