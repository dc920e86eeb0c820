//! The process that counts the threads of a submitted program. It is a separate process, since the
//! process that becomes the submitted program no longer runs code of warpgauge.

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

/// First argument of the counting process.
pub const COMMAND: &str = "__program-threads";

/// Maximum time to wait for the program's notification descriptor.
const BEGINS: Duration = Duration::from_secs(60);

/// Makes the Linux kernel query another process before this process, or the program that it
/// becomes, starts a thread. The caller must have one thread and be allowed to start programs.
/// Returns whether threads are counted; older kernels do not support this.
pub(crate) fn begin() -> io::Result<bool> {
    let (ours, theirs) = UnixStream::pair()?;
    let own = std::process::id().to_string();
    // The environment is empty. Otherwise a tool that runs this process would also inject itself
    // into the counting process.
    ChildProgram::new(std::env::current_exe()?, Environment::Empty)
        .args([COMMAND, &own])
        .to_blocking()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // An error means that the kernel does not support notifications or already queries another
    // process.
    let asking = ask(&calls::asking()).ok();
    let descriptors: Vec<_> = asking.iter().map(AsFd::as_fd).collect();
    handed::send(&ours, ASKS, &descriptors)?;
    Ok(asking.is_some())
}

/// Runs the counting process until the program has ended.
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
