//! Running children: their observation, their end as a group, and their reaping. The main type is
//! [`Child`].
//!
//! A child leads its own process group. Its process id remains reserved until the child is reaped
//! and its group has no members. Therefore the group is killed immediately after reaping, never
//! later: the system assigns ids in sequence, so an id that has just become free is not yet used
//! again.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::program::ChildProgram;

/// The standard streams of a child.
#[derive(Debug)]
pub struct Streams {
    /// The standard input of the child.
    pub stdin: Stdio,
    /// The standard output of the child.
    pub stdout: Stdio,
    /// The standard error of the child.
    pub stderr: Stdio,
}

impl Streams {
    /// Returns streams with an empty input, and with pipes for output and errors.
    pub fn piped() -> Self {
        Self { stdin: Stdio::null(), stdout: Stdio::piped(), stderr: Stdio::piped() }
    }
}

/// A child that is ready to start. The thread that starts it becomes its parent.
#[derive(Debug)]
pub struct PreparedChild(Command);

impl PreparedChild {
    /// Prepares a program that will have these streams.
    pub fn new(program: &ChildProgram, streams: Streams) -> Self {
        let mut command = program.to_command();
        command.stdin(streams.stdin).stdout(streams.stdout).stderr(streams.stderr);
        Self(command)
    }

    /// Starts the child. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The child cannot be started.
    pub fn now(mut self) -> io::Result<Child> {
        let child = self.0.spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Child { child, group })
    }
}

/// A child and all processes in its group. Dropping it ends them.
#[derive(Debug)]
pub struct Child {
    child: tokio::process::Child,
    /// The process group, until the group is killed.
    group: Option<Pid>,
}

impl Child {
    /// Returns the child's standard input if it is a pipe and has not been taken yet.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Returns the child's standard output if it is a pipe and has not been taken yet.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Returns the child's standard error if it is a pipe and has not been taken yet.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Returns the process id, or `None` after the child has been reaped.
    pub fn id(&self) -> Option<Pid> {
        self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()))
    }

    /// Returns whether the child is running. If it has ended, its group is killed too.
    pub fn is_running(&mut self) -> bool {
        let running = matches!(self.child.try_wait(), Ok(None));
        if !running {
            self.kill();
        }
        running
    }

    /// Waits until the child ends, and then kills its group. The wait may be cancelled.
    ///
    /// # Errors
    /// The system does not report the status.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.kill();
        Ok(status)
    }

    /// Waits until the child ends or the time limit expires. Returns `None` if the child is still
    /// running or if waiting fails.
    pub async fn ended_within(&mut self, limit: Duration) -> Option<ExitStatus> {
        timeout(limit, self.wait()).await.ok()?.ok()
    }

    /// Kills the child and its group. Later calls have no effect.
    pub fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            // If the process has already ended, there is nothing to kill, and its status remains
            // valid.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, BufReader};

    use super::*;
    use crate::program::Environment;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Child {
        let program = ChildProgram::new("/bin/sh", Environment::Empty).arg("-c").arg(script);
        PreparedChild::new(&program, Streams::piped()).now().unwrap()
    }

    #[tokio::test]
    async fn a_child_that_ends_is_reaped_and_its_group_forgotten() {
        let mut child = shell("exit 3");
        assert_eq!(child.ended_within(LONG).await.unwrap().code(), Some(3));
        assert!(!child.is_running() && child.group.is_none());
    }

    #[tokio::test]
    async fn what_a_child_leaves_in_its_group_ends_when_it_is_reaped() {
        let mut child = shell("tail -f /dev/null & echo $!");
        let mut said = BufReader::new(child.take_stdout().unwrap()).lines();
        said.next_line().await.unwrap().unwrap();
        assert!(child.wait().await.unwrap().success());
        assert_eq!(timeout(LONG, said.next_line()).await.unwrap().unwrap(), None);
    }

    #[tokio::test]
    async fn the_whole_group_ends_with_it() {
        let mut child = shell("tail -f /dev/null & echo $!; wait");
        assert!(child.is_running());
        let mut said = BufReader::new(child.take_stdout().unwrap()).lines();
        said.next_line().await.unwrap().unwrap();
        assert!(child.ended_within(Duration::from_millis(10)).await.is_none());
        child.kill();
        assert!(child.ended_within(LONG).await.unwrap().code().is_none());
        // The grandchild held the pipe open, so the end of the stream shows its end.
        assert_eq!(timeout(LONG, said.next_line()).await.unwrap().unwrap(), None);
    }

    #[tokio::test]
    async fn nobody_survives_a_dropped_child() {
        let mut child = shell("tail -f /dev/null & echo $!; wait");
        let mut said = BufReader::new(child.take_stdout().unwrap()).lines();
        said.next_line().await.unwrap().unwrap();
        drop(child);
        assert_eq!(timeout(LONG, said.next_line()).await.unwrap().unwrap(), None);
    }
}
