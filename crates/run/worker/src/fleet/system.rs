//! A worker's operating-system process: starts it with a socket, watches it, kills it.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::process::ChildStderr;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::process::StartPlan;
use warpgauge_sandbox::child::{Child, PreparedChild, Streams};

/// Maximum number of bytes kept of a worker's standard error.
const STDERR_BYTES: usize = 16 << 10;

/// Maximum wait for a process to exit when a message needs its exit status.
const REAP_TIMEOUT: Duration = Duration::from_secs(1);

/// A worker's process. Dropping it kills the process with its process group.
pub(super) struct Process {
    child: Child,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    /// Task that reads standard error until all writers have closed it.
    reader: Option<JoinHandle<()>>,
    /// The signal that ended the process, once known.
    pub signal: Option<i32>,
}

impl Process {
    pub(super) async fn spawn(plan: &StartPlan) -> Result<(Self, UnixStream), String> {
        let fail = |what: &str, error: std::io::Error| format!("cannot {what}: {error}");
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()
            .map_err(|error| fail("create a socket", error))?;
        ours.set_nonblocking(true).map_err(|error| fail("set up a socket", error))?;
        let stream = UnixStream::from_std(ours).map_err(|error| fail("set up a socket", error))?;
        let program = plan.program.worker(plan.device, &plan.kind);
        let streams = Streams {
            stdin: Stdio::from(OwnedFd::from(theirs)),
            stdout: Stdio::null(),
            stderr: Stdio::piped(),
        };
        let mut child = plan
            .spawner
            .spawn(PreparedChild::new(&program, streams))
            .await
            .map_err(|error| fail(&format!("start {}", program.name()), error))?;
        let stderr = Arc::default();
        let pipe = child.take_stderr();
        let reader = pipe.map(|pipe| tokio::spawn(keep_tail(pipe, Arc::clone(&stderr))));
        Ok((Self { child, stderr, reader, signal: None }, stream))
    }

    pub(super) fn is_alive(&mut self) -> bool {
        self.child.is_running()
    }

    /// Kills the process and its process group.
    pub(super) fn kill(&mut self) {
        self.child.kill();
    }

    /// Waits until a killed process has ended and no longer uses the device.
    pub(super) async fn gone(&mut self) {
        // A process that takes longer is reaped later.
        let _ = self.child.ended_within(REAP_TIMEOUT).await;
    }

    /// Describes the end of the process: `reason`, the exit status, and the last part of its
    /// standard error.
    pub(super) async fn post_mortem(&mut self, reason: String) -> String {
        // If the process ended without a signal from us, its status is more informative.
        let mut text = reason;
        if let Some(status) = self.child.ended_within(REAP_TIMEOUT).await {
            self.signal = status.signal();
            text = format!("{text} ({status})");
        }
        self.kill();
        // The last output may still be in the pipe.
        if let Some(reader) = self.reader.take() {
            let _ = timeout(REAP_TIMEOUT, reader).await;
        }
        let said = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let said: Vec<u8> = said.iter().copied().collect();
        let said = String::from_utf8_lossy(&said);
        if !said.trim().is_empty() {
            text = format!("{text}; its output: {}", said.trim());
        }
        text
    }
}

/// Reads a worker's standard error to the end and keeps its tail.
async fn keep_tail(mut pipe: ChildStderr, tail: Arc<Mutex<VecDeque<u8>>>) {
    let mut buffer = [0; 4096];
    while let Ok(got @ 1..) = pipe.read(&mut buffer).await {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(&buffer[..got]);
        let surplus = tail.len().saturating_sub(STDERR_BYTES);
        tail.drain(..surplus);
    }
}
