//! A running child: watched, ended as a group, and reaped.
//!
//! A child leads a process group of its own. Its number is its own until it is waited for, and as long
//! as anybody is left in its group. So the group is killed at the very moment the child is reaped, and
//! never later: numbers are handed out in turn, so one that was free for an instant is nobody's yet.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::program::ChildProgram;

/// What the standard streams of a child are.
#[derive(Debug)]
pub struct Streams {
    /// What it reads.
    pub stdin: Stdio,
    /// Where its output goes.
    pub stdout: Stdio,
    /// Where its messages go.
    pub stderr: Stdio,
}

impl Streams {
    /// No input; output and messages through pipes.
    pub fn piped() -> Self {
        Self { stdin: Stdio::null(), stdout: Stdio::piped(), stderr: Stdio::piped() }
    }
}

/// A child that can be started, from whichever thread is to count as its parent.
#[derive(Debug)]
pub struct PreparedChild(Command);

impl PreparedChild {
    /// Of a program, with these streams.
    pub fn new(program: &ChildProgram, streams: Streams) -> Self {
        let mut command = program.to_command();
        command.stdin(streams.stdin).stdout(streams.stdout).stderr(streams.stderr);
        Self(command)
    }

    /// Starts it. Must be called within a runtime.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn now(mut self) -> io::Result<Child> {
        let child = self.0.spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Child { child, group })
    }
}

/// A child with all that stays in its group. Dropping it ends them.
#[derive(Debug)]
pub struct Child {
    child: tokio::process::Child,
    /// Its group, until that was killed.
    group: Option<Pid>,
}

impl Child {
    /// Its standard input, if that is a pipe that nobody took yet.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Its output, if that is a pipe that nobody took yet.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Its messages, if they are a pipe that nobody took yet.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Its number, until it was waited for.
    pub fn id(&self) -> Option<Pid> {
        self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()))
    }

    /// Whether it runs. Of one that does not, nothing does.
    pub fn is_running(&mut self) -> bool {
        let running = matches!(self.child.try_wait(), Ok(None));
        if !running {
            self.kill();
        }
        running
    }

    /// Waits for its end, and ends what it left in its group. Safe to cancel.
    ///
    /// # Errors
    /// The system does not tell.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.kill();
        Ok(status)
    }

    /// Waits for its end, but not for long; `None` if it goes on, or cannot be waited for.
    pub async fn ended_within(&mut self, limit: Duration) -> Option<ExitStatus> {
        timeout(limit, self.wait()).await.ok()?.ok()
    }

    /// Kills it with all its group, once.
    pub fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            // Whoever has ended by itself is not there to be killed, and its status stands.
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
        // The grandchild held the pipe open, so that its end is the end of the stream.
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
