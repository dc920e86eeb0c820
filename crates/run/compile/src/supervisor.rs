//! The parent's side of a compile child. It starts the child, sends the request, waits for the
//! reply, and kills the child.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde::Serialize;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::UnixStream;

use super::error::CompileError;
use super::protocol::{ChildReply, ChildRequest, receive_frame, send_frame};
use super::usage::{ProcessUsage, kills_for_memory};
use warpgauge_sandbox::child::{Child, PreparedChild, Streams};
use warpgauge_sandbox::program::{ChildProgram, Environment};

/// Hidden subcommand of the program that runs as the compile child.
pub(crate) const SUBCOMMAND: &str = "__compile";

/// Maximum length of a child's output that is kept, in bytes.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;

/// Interval at which a child's resource usage is read.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Maximum time to wait for the end of a killed child.
const REAP_WITHIN: Duration = Duration::from_secs(5);

/// Runs one request in a new child. When the future ends or is dropped, the child and all processes
/// that it started have ended.
pub(crate) async fn run(
    program: &Path,
    request: &ChildRequest,
    timeout: Duration,
) -> Result<ChildReply, CompileError> {
    let child = Running::start(program, &request.job_dir)?;
    child.ask_within(request, timeout).await
}

/// A child that has received its preparation request and waits for its task.
pub(crate) struct Waiting {
    child: Running,
    // Declared after the child, which may use the directory until it ends.
    _job_dir: tempfile::TempDir,
}

impl Waiting {
    /// Starts a child. `request` contains its preparation and the job's private directory.
    pub(crate) async fn start(
        program: &Path,
        request: &ChildRequest,
        job_dir: tempfile::TempDir,
    ) -> Result<Self, CompileError> {
        let mut child = Running::start(program, &request.job_dir)?;
        let sent = send_frame(&mut child.socket, request).await;
        sent.map_err(|e| CompileError::internal(format!("cannot ask a compile child: {e}")))?;
        Ok(Self { child, _job_dir: job_dir })
    }

    /// Returns whether the child is still running.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.child.is_running()
    }

    /// Sends the task. When the future ends or is dropped, the child and all processes that it
    /// started have ended.
    pub(crate) async fn ask(
        self,
        question: &impl Serialize,
        timeout: Duration,
    ) -> Result<ChildReply, CompileError> {
        self.child.ask_within(question, timeout).await
    }
}

/// Records the peak resource usage of a process. Runs until the caller drops the future.
async fn watch(process: i32, used: &mut ProcessUsage) -> std::convert::Infallible {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    loop {
        looks.tick().await;
        used.grow(ProcessUsage::of(process));
    }
}

/// Like [`run`], for callers outside an asynchronous runtime.
pub(crate) fn run_blocking(
    program: &Path,
    request: &ChildRequest,
    timeout: Duration,
) -> Result<ChildReply, CompileError> {
    let internal = |e: io::Error| CompileError::internal(format!("cannot start a child: {e}"));
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build();
    // A separate thread is needed, since the caller's may belong to another runtime.
    std::thread::scope(|scope| {
        let work = || runtime().map_err(internal)?.block_on(run(program, request, timeout));
        let thread = scope.spawn(work);
        thread.join().unwrap_or_else(|_| Err(CompileError::internal("the supervisor panicked")))
    })
}

struct Running {
    child: Child,
    /// Number of out-of-memory kills that the system reported when the child was started.
    kills: u64,
    socket: UnixStream,
}

impl Running {
    fn start(program: &Path, job_dir: &Path) -> Result<Self, CompileError> {
        Self::try_start(program, job_dir)
            .map_err(|e| CompileError::internal(format!("cannot start {}: {e}", program.display())))
    }

    /// Sends a request and waits for the reply until the deadline.
    async fn ask_within(
        mut self,
        question: &impl Serialize,
        timeout: Duration,
    ) -> Result<ChildReply, CompileError> {
        let mut used = ProcessUsage::default();
        match tokio::time::timeout(timeout, self.ask(question, &mut used)).await {
            Err(_) => {
                used.grow(self.used());
                self.end().await;
                Err(CompileError::Timeout { seconds: timeout.as_secs_f64(), used })
            }
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(e)) => Err(self.explain(&e, used).await),
        }
    }

    fn try_start(program: &Path, job_dir: &Path) -> io::Result<Self> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let program =
            ChildProgram::new(program, Environment::Empty).arg(SUBCOMMAND).within(job_dir);
        let stdin = Stdio::from(OwnedFd::from(theirs));
        let child = PreparedChild::new(&program, Streams { stdin, ..Streams::piped() }).now()?;
        Ok(Self { child, kills: kills_for_memory(), socket: UnixStream::from_std(ours)? })
    }

    /// Sends the request and receives the reply. Reads the child's output in the meantime.
    async fn ask(
        &mut self,
        question: &impl Serialize,
        used: &mut ProcessUsage,
    ) -> io::Result<ChildReply> {
        let watch = watch(self.process(), used);
        let (mut from, mut to) = self.socket.split();
        let exchange = async {
            send_frame(&mut to, question).await?;
            receive_frame(&mut from).await
        };
        let drain = drain(self.child.take_stdout(), self.child.take_stderr());
        tokio::pin!(exchange, drain);
        let (reply, output) = tokio::select! {
            reply = &mut exchange => (reply, None),
            output = &mut drain => (exchange.await, Some(output)),
            never = watch => match never {},
        };
        let error = match reply {
            Ok(reply) => return Ok(reply),
            Err(error) => error,
        };
        // The child is ending or broken. Its output contains the reason.
        self.child.kill();
        let output = match output {
            Some(output) => output,
            None => drain.await,
        };
        Err(io::Error::new(error.kind(), output))
    }

    /// Returns the child's process id, or an unused number if the parent has already waited for its
    /// end.
    fn process(&self) -> i32 {
        self.child.id().map_or(-1, rustix::process::Pid::as_raw_pid)
    }

    fn used(&self) -> ProcessUsage {
        ProcessUsage::of(self.process())
    }

    /// Ends the child and all processes that it started. Waits until it is gone and writes no more
    /// files.
    async fn end(&mut self) {
        self.child.kill();
        // A process that ends later is reaped in the background.
        let _ = self.child.ended_within(REAP_WITHIN).await;
    }

    /// Returns the error that explains why the child ended without a reply.
    async fn explain(&mut self, error: &io::Error, mut used: ProcessUsage) -> CompileError {
        let log = error.to_string();
        used.grow(self.used());
        used.starved = kills_for_memory() > self.kills;
        self.child.kill();
        match self.child.wait().await {
            Ok(status) => CompileError::Crashed {
                signal: status.signal(),
                log: match status.code() {
                    Some(code) => format!("{log}\n[exit status {code}]"),
                    None => log,
                },
                used,
            },
            Err(e) => CompileError::internal(format!("cannot wait for the compile child: {e}")),
        }
    }
}

/// Reads both streams to their ends, and keeps the first part of each.
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
    // A read error is ignored: the reply determines the outcome.
    let _ = (&mut stream).take(MAX_OUTPUT_BYTES).read_to_end(&mut kept).await;
    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&kept).into_owned()
}
