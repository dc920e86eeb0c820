//! The parent's side of a compile child: start, ask, wait, kill.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use super::error::CompileError;
use super::protocol::{Reply, Request, receive_frame, send_frame};

/// Hidden subcommand of the program.
pub(crate) const SUBCOMMAND: &str = "__compile";

/// Most of a child's own output that is kept, in bytes.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;

/// Runs one request in a fresh child. The child and all it started are gone when this returns or is
/// dropped.
pub(crate) async fn run(
    program: &Path,
    request: &Request,
    timeout: Duration,
) -> Result<Reply, CompileError> {
    let mut child = Running::start(program, &request.job_dir)
        .map_err(|e| CompileError::internal(format!("cannot start {}: {e}", program.display())))?;
    match tokio::time::timeout(timeout, child.ask(request)).await {
        Err(_) => Err(CompileError::Timeout { seconds: timeout.as_secs_f64() }),
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(e)) => Err(child.explain(&e).await),
    }
}

/// Like [`run`], for callers outside of an asynchronous runtime.
pub(crate) fn run_blocking(
    program: &Path,
    request: &Request,
    timeout: Duration,
) -> Result<Reply, CompileError> {
    let internal = |e: io::Error| CompileError::internal(format!("cannot start a child: {e}"));
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build();
    // On a thread of its own: the caller's may belong to another runtime.
    std::thread::scope(|scope| {
        let work = || runtime().map_err(internal)?.block_on(run(program, request, timeout));
        let thread = scope.spawn(work);
        thread.join().unwrap_or_else(|_| Err(CompileError::internal("the supervisor panicked")))
    })
}

struct Running {
    child: Child,
    socket: UnixStream,
    group: Option<rustix::process::Pid>,
}

impl Running {
    fn start(program: &Path, job_dir: &Path) -> io::Result<Self> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let child = Command::new(program)
            .arg(SUBCOMMAND)
            .env_clear()
            .env("TMPDIR", job_dir)
            .env("LC_ALL", "C")
            .current_dir(job_dir)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(rustix::process::Pid::from_raw);
        Ok(Self { child, socket: UnixStream::from_std(ours)?, group })
    }

    /// Sends the request and receives the reply, draining the child's output meanwhile.
    async fn ask(&mut self, request: &Request) -> io::Result<Reply> {
        let (mut from, mut to) = self.socket.split();
        let exchange = async {
            send_frame(&mut to, request).await?;
            receive_frame(&mut from).await
        };
        let drain = drain(self.child.stdout.take(), self.child.stderr.take());
        tokio::pin!(exchange, drain);
        let (reply, output) = tokio::select! {
            reply = &mut exchange => (reply, None),
            output = &mut drain => (exchange.await, Some(output)),
        };
        let error = match reply {
            Ok(reply) => return Ok(reply),
            Err(error) => error,
        };
        // The child is ending or broken: what it wrote tells why.
        kill(&mut self.group);
        let output = match output {
            Some(output) => output,
            None => drain.await,
        };
        Err(io::Error::new(error.kind(), output))
    }

    /// Why the child ended without a reply.
    async fn explain(&mut self, error: &io::Error) -> CompileError {
        let log = error.to_string();
        kill(&mut self.group);
        match self.child.wait().await {
            Ok(status) => CompileError::Crashed {
                signal: status.signal(),
                log: match status.code() {
                    Some(code) => format!("{log}\n[exit status {code}]"),
                    None => log,
                },
            },
            Err(e) => CompileError::internal(format!("cannot wait for the compile child: {e}")),
        }
    }
}

/// Kills a child with all it started. The child is not reaped before, so its id is its own.
fn kill(group: &mut Option<rustix::process::Pid>) {
    if let Some(group) = group.take() {
        // It may have ended by itself: then there is nothing to kill, and its status stands.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        kill(&mut self.group);
    }
}

/// Reads both streams to their ends; keeps the first part of each.
async fn drain(
    stdout: Option<impl AsyncRead + Unpin>,
    stderr: Option<impl AsyncRead + Unpin>,
) -> String {
    let (stdout, stderr) = tokio::join!(keep_first(stdout), keep_first(stderr));
    format!("{stdout}{stderr}")
}

async fn keep_first(stream: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut stream) = stream else { return String::new() };
    let mut kept = Vec::new();
    // What cannot be read any more is lost; the reply decides how the work ended.
    let _ = (&mut stream).take(MAX_OUTPUT_BYTES).read_to_end(&mut kept).await;
    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&kept).into_owned()
}
