//! Runs one job in a process that a tool starts and watches.
//!
//! The tool runs between the server and the worker, and controls the worker's standard streams. The
//! worker therefore connects to a socket in the run's private directory. From then on it behaves
//! like any other worker, including the version check. It ends after its job. The tool then writes
//! its report, and the server waits for that.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::answer::Answer;
use super::process::{StartPlan, greet};
use crate::frame::{self, FrameError};
use crate::protocol::{Blame, FromWorker, RunFailure, RunOutcome, ToWorker, WorkerJob};
use crate::rendezvous;
use warpgauge_model::FailureCode;
use warpgauge_sandbox::contained::{ContainedProcess, ProcessEnd, ProcessLaunch};

/// Name of the socket in the run's directory.
const SOCKET: &str = "worker.socket";

/// Maximum number of bytes kept of a tool's output. The tool's results are in files.
const OUTPUT_BYTES: usize = 1 << 20;

/// Configuration of a run under a tool.
#[derive(Debug, Clone)]
pub struct OneShot {
    /// The tool and its arguments, which precede the worker's command. Empty if there is no tool.
    pub wrapper: Vec<OsString>,
    /// Additional environment variables of the tool.
    pub variables: Vec<(OsString, OsString)>,
    /// Existing private directory: the tool's working directory, home, and directory for temporary
    /// files.
    pub directory: PathBuf,
    /// Time limit from the start to the end of the tool.
    pub time_limit: Duration,
}

/// Result of a run under a tool.
#[derive(Debug, Clone)]
pub struct OneShotEnd<T> {
    /// The worker's outcome; a failure if the worker reported nothing.
    pub outcome: RunOutcome<T>,
    pub tool: ProcessEnd,
}

/// Runs a job under a tool. The answer reports every failure.
pub(super) async fn run(
    plan: &StartPlan,
    shot: &OneShot,
    job: WorkerJob,
    mut stop: watch::Receiver<bool>,
) -> (Answer, ProcessEnd) {
    let deadline = Instant::now() + shot.time_limit;
    let path = shot.directory.join(SOCKET);
    let listener = rendezvous::bind(&path).and_then(|listener| {
        listener.set_nonblocking(true)?;
        UnixListener::from_std(listener)
    });
    let listener = match listener {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(path = %path.display(), %error, "a socket cannot be created");
            return unstarted(format!("cannot create the worker's socket: {error}"));
        }
    };
    let mut program = plan.program.one_job(plan.device, &shot.wrapper, &shot.directory, &path);
    program.variables.extend(shot.variables.iter().cloned());
    let launch = ProcessLaunch { stdout_bytes: OUTPUT_BYTES, ..ProcessLaunch::new(program) };
    let mut tool = match ContainedProcess::start(&launch) {
        Ok(tool) => tool,
        Err(error) => {
            return unstarted(format!("cannot start {}: {error}", launch.program.name()));
        }
    };
    let mut stream = None;
    let conversation = async {
        let stream = stream.insert(accept(&listener, &mut tool).await?);
        greet(stream, plan).await.map_err(ended)?;
        converse(stream, job).await
    };
    let answer = tokio::select! {
        answer = timeout_at(deadline, conversation) => answer.unwrap_or_else(|_| {
            let seconds = shot.time_limit.as_secs_f64();
            let text = format!("the run under the tool took longer than {seconds} s");
            Err(failure(FailureCode::Timeout, text))
        }),
        // The error case cannot occur: it would mean that the fleet is gone, but the fleet owns
        // this lease.
        _ = stop.wait_for(|&stop| stop) => Err(failure(FailureCode::ShuttingDown, STOPPED.to_owned())),
    };
    // A worker whose socket closes assumes that the server is gone, so `stream` stays open until
    // the worker ends.
    match answer {
        Ok(outcome) => {
            let tool = tool.finish(deadline).await;
            drop(stream);
            (Ok(outcome), tool)
        }
        Err(failure) => (Err(failure), tool.stop().await),
    }
}

const STOPPED: &str = "the server is shutting down; the run under the tool was stopped";

/// Waits for the worker to connect. Fails if the tool ends first.
async fn accept(
    listener: &UnixListener,
    tool: &mut ContainedProcess,
) -> Result<UnixStream, RunFailure> {
    tokio::select! {
        accepted = listener.accept() => match accepted {
            Ok((stream, _)) => Ok(stream),
            Err(error) => Err(failure(FailureCode::WorkerUnavailable, format!("cannot accept the worker's connection: {error}"))),
        },
        () = tool.exited() => {
            let text = "the tool ended before it started the worker".to_owned();
            Err(failure(FailureCode::WorkerUnavailable, text))
        }
    }
}

async fn converse(stream: &mut UnixStream, job: WorkerJob) -> Answer {
    let died = |error: FrameError| ended(error.to_string());
    frame::send(stream, &ToWorker::Run(Box::new(job))).await.map_err(died)?;
    loop {
        match frame::receive(stream).await.map_err(died)? {
            FromWorker::Started | FromWorker::Progress { .. } | FromWorker::Executed => {}
            FromWorker::Done(outcome) | FromWorker::Lost(outcome) => return Ok(*outcome),
            other => return Err(ended(format!("it sent {other:?} out of turn"))),
        }
    }
}

fn ended(reason: String) -> RunFailure {
    failure(FailureCode::WorkerDied, format!("the worker under the tool ended: {reason}"))
}

fn failure(code: FailureCode, message: String) -> RunFailure {
    RunFailure { code, message, blame: Blame::Environment }
}

fn unstarted(reason: String) -> (Answer, ProcessEnd) {
    (Err(failure(FailureCode::WorkerUnavailable, reason)), ProcessEnd::default())
}
