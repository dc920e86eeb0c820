//! The server's side of a worker process.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::process::Signal;
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout, timeout_at};

use super::answer::Answer;
use super::kind::{WorkerKind, WorkerProgram};
use super::spawner::Spawner;
use super::system::Process;
use super::{RunEvent, SupportSource};
use crate::frame::{self, FrameError};
use crate::handed;
use crate::protocol::{
    Blame, FromWorker, GpuReading, PROTOCOL_VERSION, RunFailure, ToWorker, WorkerJob,
};
use warpgauge_model::{DeviceInfo, FailureCode};
use warpgauge_sandbox::device_worker::Confinement;

/// Time limit for a worker to remove a job's data from the device.
const SCRUB_TIMEOUT: Duration = Duration::from_secs(20);

/// Time limit for a worker that serves a judge. The judge ends long before it.
const SERVED: Duration = Duration::from_secs(7 * 24 * 3600);

/// Time limit for releasing the counters, which takes some 10 ms.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// Settings for starting workers of one device.
#[derive(Clone)]
pub(super) struct StartPlan {
    pub program: WorkerProgram,
    pub kind: WorkerKind,
    pub device: u32,
    pub start_timeout: Duration,
    pub support: SupportSource,
    pub spawner: Spawner,
}

/// Current activity of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    Idle,
    Running,
    /// The worker has answered and is scrubbing the device.
    Scrubbing,
    /// The worker must not be used again.
    Finished,
}

/// A running worker. Dropping it kills the process with all its children.
pub(super) struct Worker {
    process: Process,
    stream: UnixStream,
    device: DeviceInfo,
    confinement: Confinement,
    reading: Result<GpuReading, String>,
    start_timeout: Duration,
    activity: Activity,
    jobs: u64,
}

impl Worker {
    /// Starts a worker and waits until it can take jobs.
    pub(super) async fn start(plan: &StartPlan) -> Result<Self, String> {
        let deadline = Instant::now() + plan.start_timeout;
        let (mut process, mut stream) = Process::spawn(plan).await?;
        match timeout_at(deadline, greet(&mut stream, plan)).await {
            Ok(Ok(Greeting { device, confinement, reading })) => Ok(Self {
                process,
                stream,
                device,
                confinement,
                reading,
                start_timeout: plan.start_timeout,
                activity: Activity::Idle,
                jobs: 0,
            }),
            Ok(Err(reason)) => Err(process.post_mortem(reason).await),
            Err(_) => {
                let reason = format!("it did not become ready within {:?}", plan.start_timeout);
                Err(process.post_mortem(reason).await)
            }
        }
    }

    pub(super) fn device(&self) -> &DeviceInfo {
        &self.device
    }

    /// Returns the worker's confinement: what it may access.
    pub(super) fn confinement(&self) -> &Confinement {
        &self.confinement
    }

    /// Returns the state of the GPU when the worker started, or why it could not be read.
    pub(super) fn reading(&self) -> &Result<GpuReading, String> {
        &self.reading
    }

    /// Returns the number of jobs that the worker has been given.
    pub(super) fn jobs(&self) -> u64 {
        self.jobs
    }

    /// Returns whether the worker is alive and waits for a job.
    pub(super) fn is_idle(&mut self) -> bool {
        self.activity == Activity::Idle && self.process.is_alive()
    }

    /// Returns whether the worker can take a job now, or after it has scrubbed its device.
    pub(super) fn is_usable(&mut self) -> bool {
        self.is_scrubbing() || self.is_idle()
    }

    /// Returns whether the worker has answered and is still scrubbing.
    pub(super) fn is_scrubbing(&self) -> bool {
        self.activity == Activity::Scrubbing
    }

    /// Sends the worker a socket for its next job.
    pub(super) async fn hand(
        &mut self,
        socket: &std::os::unix::net::UnixStream,
    ) -> Result<(), RunFailure> {
        let handing = async {
            frame::send(&mut self.stream, &ToWorker::Socket).await?;
            handed::send(&self.stream, socket.as_fd()).await.map_err(FrameError::Io)
        };
        match timeout(self.start_timeout, handing).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.died(Phase::Loading, false, error).await),
            Err(_) => Err(self.timed_out(Phase::Loading, false, self.start_timeout)),
        }
    }

    /// Lets the worker make launches for a judge until the judge ends. The judge enforces its own
    /// limits.
    pub(super) async fn serve(&mut self, job: WorkerJob) -> Answer {
        self.run_within(job, SERVED, SERVED, &|_| {}).await
    }

    /// Runs a job. `time_limit` applies to the candidate's running time from its first launch. Each
    /// verification may take as long as `time_limit` or the time limit of a start, whichever is
    /// greater. Work before the first launch has the time limit of a start.
    ///
    /// If the future is dropped, the worker can no longer be used.
    pub(super) async fn run(
        &mut self,
        job: WorkerJob,
        time_limit: Duration,
        on_event: &(dyn Fn(RunEvent) + Send + Sync),
    ) -> Answer {
        let start = self.start_timeout;
        self.run_within(job, start, time_limit, on_event).await
    }

    async fn run_within(
        &mut self,
        job: WorkerJob,
        start: Duration,
        time_limit: Duration,
        on_event: &(dyn Fn(RunEvent) + Send + Sync),
    ) -> Answer {
        let has_references = job.task.has_references();
        self.activity = Activity::Running;
        self.jobs += 1;
        let mut phase = Phase::Loading;
        let mut limit = start;
        let mut deadline = Instant::now() + limit;
        // The candidate's remaining time while the worker does other work.
        let mut left = time_limit;
        let request = ToWorker::Run(Box::new(job));
        match timeout_at(deadline, frame::send(&mut self.stream, &request)).await {
            Ok(Ok(())) => {}
            Ok(Err(FrameError::TooLarge { bytes })) => {
                // The worker received nothing, so it is still idle.
                self.activity = Activity::Idle;
                return Err(too_large(bytes));
            }
            Ok(Err(error)) => return Err(self.died(phase, has_references, error).await),
            Err(_) => return Err(self.timed_out(phase, has_references, limit)),
        }
        loop {
            let answer = timeout_at(deadline, frame::receive(&mut self.stream)).await;
            match answer {
                Err(_) => return Err(self.timed_out(phase, has_references, limit)),
                Ok(Err(error)) => return Err(self.died(phase, has_references, error).await),
                Ok(Ok(FromWorker::Started)) => {
                    (phase, limit) = (Phase::Executing, time_limit);
                    deadline = Instant::now() + limit;
                    on_event(RunEvent::Started);
                }
                Ok(Ok(FromWorker::Verifying)) => {
                    left = deadline.saturating_duration_since(Instant::now());
                    (phase, limit) = (Phase::Verifying, time_limit.max(self.start_timeout));
                    deadline = Instant::now() + limit;
                }
                Ok(Ok(FromWorker::Resumed)) => {
                    (phase, limit) = (Phase::Executing, time_limit);
                    deadline = Instant::now() + left;
                }
                Ok(Ok(FromWorker::Progress { trials, statistics })) => {
                    on_event(RunEvent::Progress { trials, statistics });
                }
                Ok(Ok(FromWorker::Executed)) => {
                    (phase, limit) = (Phase::Verifying, time_limit.max(self.start_timeout));
                    deadline = Instant::now() + limit;
                    on_event(RunEvent::Executed);
                }
                Ok(Ok(FromWorker::Done(outcome))) => {
                    self.activity = Activity::Scrubbing;
                    return Ok(*outcome);
                }
                Ok(Ok(FromWorker::Lost(outcome))) => {
                    self.finish();
                    return Ok(*outcome);
                }
                Ok(Ok(other)) => {
                    self.finish();
                    return Err(out_of_turn(&other));
                }
            }
        }
    }

    /// Waits until the device is scrubbed. The error says why the worker cannot take another job.
    pub(super) async fn settle(&mut self) -> Result<(), String> {
        if self.activity != Activity::Scrubbing {
            return if self.is_idle() { Ok(()) } else { Err("the worker ended".to_owned()) };
        }
        let answer = timeout(SCRUB_TIMEOUT, frame::receive(&mut self.stream)).await;
        let reason = match answer {
            Ok(Ok(FromWorker::Scrubbed { retire: None, .. })) => {
                self.activity = Activity::Idle;
                return Ok(());
            }
            Ok(Ok(FromWorker::Scrubbed { retire: Some(reason), .. })) => reason,
            Ok(Ok(other)) => format!("it sent {other:?} instead of the end of scrubbing"),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("scrubbing took longer than {SCRUB_TIMEOUT:?}"),
        };
        self.finish();
        Err(reason)
    }

    /// Makes the worker release the counters. The error says why the worker cannot take another
    /// job.
    pub(super) async fn release(&mut self) -> Result<(), String> {
        self.settle().await?;
        let conversation = async {
            frame::send(&mut self.stream, &ToWorker::Release).await?;
            frame::receive(&mut self.stream).await
        };
        let reason = match timeout(RELEASE_TIMEOUT, conversation).await {
            Ok(Ok(FromWorker::Idle)) => return Ok(()),
            Ok(Ok(other)) => format!("it sent {other:?} instead of the release of the counters"),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it did not release the counters within {RELEASE_TIMEOUT:?}"),
        };
        self.finish();
        // The worker holds the counters until its process is gone.
        self.process.gone().await;
        Err(reason)
    }

    fn finish(&mut self) {
        self.activity = Activity::Finished;
        self.process.kill();
    }

    fn timed_out(&mut self, phase: Phase, has_references: bool, limit: Duration) -> RunFailure {
        self.finish();
        let seconds = limit.as_secs_f64();
        RunFailure {
            code: FailureCode::Timeout,
            message: format!("{} took longer than {seconds} s and was stopped", phase.subject()),
            blame: phase.blame(has_references),
        }
    }

    async fn died(&mut self, phase: Phase, has_references: bool, error: FrameError) -> RunFailure {
        self.activity = Activity::Finished;
        let message = self.process.post_mortem(error.to_string()).await;
        // SIGKILL comes from outside the process: the system ran out of memory, or a user killed
        // the process.
        let killed = self.process.signal == Some(Signal::KILL.as_raw());
        let blame = if killed { Blame::Environment } else { phase.blame(has_references) };
        RunFailure {
            code: FailureCode::WorkerDied,
            message: format!("{} ended the worker process: {message}", phase.subject()),
            blame,
        }
    }
}

/// Stage of a job in a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Loading,
    Executing,
    Verifying,
}

impl Phase {
    fn subject(self) -> &'static str {
        match self {
            Phase::Loading => "loading the kernel and filling its buffers",
            Phase::Executing => "executing the kernel",
            Phase::Verifying => "verifying the kernel's output",
        }
    }

    fn blame(self, has_references: bool) -> Blame {
        match self {
            Phase::Loading | Phase::Executing => Blame::Candidate,
            Phase::Verifying if has_references => Blame::Reference,
            Phase::Verifying => Blame::Environment,
        }
    }
}

fn too_large(bytes: usize) -> RunFailure {
    RunFailure {
        code: FailureCode::ImageTooLarge,
        message: format!("the kernel's image and arguments take {bytes} bytes in one message"),
        blame: Blame::Candidate,
    }
}

fn out_of_turn(message: &FromWorker) -> RunFailure {
    RunFailure {
        code: FailureCode::InternalError,
        message: format!("the worker sent {message:?} out of turn; this is a defect of warpgauge"),
        blame: Blame::Environment,
    }
}

/// Facts that a worker reports when it has started.
pub(super) struct Greeting {
    device: DeviceInfo,
    confinement: Confinement,
    reading: Result<GpuReading, String>,
}

/// Exchanges greetings with a worker that was just started. After that it can take jobs.
pub(super) async fn greet(stream: &mut UnixStream, plan: &StartPlan) -> Result<Greeting, String> {
    let text = |error: FrameError| error.to_string();
    let hello = ToWorker::Hello { protocol: PROTOCOL_VERSION };
    frame::send(stream, &hello).await.map_err(text)?;
    let greeting = match frame::receive(stream).await.map_err(text)? {
        FromWorker::Ready { protocol: PROTOCOL_VERSION, device, confinement, reading } => {
            Greeting { device: *device, confinement: *confinement, reading: *reading }
        }
        FromWorker::Ready { protocol, .. } => {
            return Err(format!("it uses protocol {protocol}, not {PROTOCOL_VERSION}"));
        }
        FromWorker::Unable { reason } => return Err(reason),
        other => return Err(format!("it sent {other:?} instead of a greeting")),
    };
    let image = (plan.support)(greeting.device.target)
        .await
        .map_err(|reason| format!("cannot compile the worker's built-in kernels: {reason}"))?;
    frame::send(stream, &ToWorker::Support(image)).await.map_err(text)?;
    match frame::receive(stream).await.map_err(text)? {
        FromWorker::Idle => Ok(greeting),
        FromWorker::Unable { reason } => Err(reason),
        other => Err(format!("it sent {other:?} instead of a message that it is ready")),
    }
}
