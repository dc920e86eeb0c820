//! Runners and a judge for one order. This module also acquires the permit, sets the deadline, and
//! ends the processes when the caller drops the order.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::RwLock;

use super::TorchBackend;
use super::builder::{Customer, Serving, python_host};
use super::evaluate::Kernels;
use super::held::Held;
use super::process::{Answer, Order};
use crate::error::{self, ExecError};
use crate::support::support_source;
use warpgauge_compile::Compiler;
use warpgauge_contract::EvaluateRequest;
use warpgauge_model::{DeviceInfo, DeviceKind};
use warpgauge_report::TorchExtension;
use warpgauge_torch::{
    JudgeAnswer, JudgeError, JudgeResources, Judges, Killer, Queues, Runner, RunnerPermit,
    RunnerUnavailable, Runners, Versions,
};
use warpgauge_turns::Owner;
use warpgauge_worker::queue::LeaseNeeds;

/// Suggested delay before a retry when the queue is full.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Runner and judge processes for the CPU, or for one device.
pub(super) struct Side {
    pub(super) runners: Runners,
    pub(super) judges: Judges,
    /// Lock that is held for reading while processes start or end on the device between orders.
    pub(super) noise: Arc<RwLock<()>>,
}

impl Side {
    /// Creates the set of processes without starting any; the first order starts them. `noise` is
    /// held for reading while processes start or end on the device between orders.
    pub(super) fn new(runners: Runners, judges: Judges, noise: Arc<RwLock<()>>) -> Self {
        Self { runners, judges, noise }
    }

    /// Imports PyTorch before an order needs it. Errors are ignored, since an order that needs
    /// PyTorch waits for the import and reports its error.
    pub(super) async fn begin(&self) {
        let _ = self.runners.warm().await;
    }
}

/// Permission to run submissions until a deadline.
pub(super) struct Entered<'a> {
    pub(super) side: &'a Arc<Side>,
    compiler: &'a Arc<Compiler>,
    owner: Owner,
    pub versions: Versions,
    pub(super) deadline: Instant,
    /// GPU of the submissions; `None` on the CPU.
    pub device: Option<DeviceInfo>,
    /// Time that the order waited for the permit and the device.
    pub queue: Duration,
    /// Time that the order waited for processes to start.
    pub start: Duration,
    /// Image of the judge's kernels, compiled for the device.
    pub image: Option<Kernels>,
    /// Number of hardware queues of the runners' contexts.
    pub queues: Queues,
    /// Reason why the submissions run on the CPU although there is a GPU.
    pub not_on_gpu: Option<String>,
    // Dropped before `_place`, since the next order acquires the permit first, and then the device.
    pub(super) held: Option<Held>,
    _place: RunnerPermit,
}

impl TorchBackend {
    /// Waits until it is the owner's turn to get a CPU permit, and until a process has imported
    /// PyTorch. The timeout begins afterwards.
    pub(super) async fn enter(&self, timeout: f64, owner: Owner) -> Result<Entered<'_>, ExecError> {
        let side = &self.sides()?.cpu;
        let InSide { place, versions, queue, start } = side.entered(owner).await?;
        side.judges.prepare();
        Ok(Entered {
            side,
            compiler: &self.host.compiler,
            owner,
            versions,
            deadline: deadline(timeout),
            device: None,
            queue,
            start,
            image: None,
            queues: Queues::default(),
            not_on_gpu: None,
            held: None,
            _place: place,
        })
    }

    /// Like [`Self::enter`], but on a GPU if the request may use one and PyTorch supports it.
    pub(super) async fn enter_for(
        &self,
        request: &EvaluateRequest,
        owner: Owner,
    ) -> Result<Entered<'_>, ExecError> {
        let torch = self.sides()?;
        let devices = self.host.fleet.devices();
        let fits = |info: &DeviceInfo| {
            info.kind == DeviceKind::Cuda && request.requires.is_met_by(&info.offer())
        };
        let infos = devices.iter().map(|device| &device.info);
        let chosen = infos.clone().find(|info| fits(info));
        let Some((info, side)) =
            chosen.and_then(|info| Some((info, torch.gpus.get(&info.ordinal)?)))
        else {
            let mut entered = self.enter(request.timeout, owner).await?;
            if infos.clone().any(|info| info.kind == DeviceKind::Cuda) {
                let why = "no GPU here meets the requirements of the request";
                entered.not_on_gpu = Some(why.to_owned());
            }
            return Ok(entered);
        };
        let InSide { place, versions, mut queue, mut start } = side.entered(owner).await?;
        if versions.cuda.is_none() {
            drop(place);
            let mut entered = self.enter(request.timeout, owner).await?;
            entered.queue += queue;
            entered.start += start;
            let why = "this PyTorch is built for the CPU only; install one that is built for CUDA";
            entered.not_on_gpu = Some(why.to_owned());
            return Ok(entered);
        }
        let need = LeaseNeeds { device: Some(info.ordinal), owner, ..LeaseNeeds::default() };
        let began = Instant::now();
        let lease = self.host.fleet.lease(&need).await.map_err(error::from_lease)?;
        queue += began.elapsed();
        let began = Instant::now();
        let held = Held::new(lease, side, &self.host.fleet).judged();
        // The judge creates its context while the order waits, rather than while the order occupies
        // the device.
        side.judges.prepare();
        let image = support_source(&self.host.compiler)(info.target).await;
        let image = image.map_err(|why| {
            ExecError::Unavailable(format!("the judge's kernels cannot be compiled: {why}"))
        })?;
        start += began.elapsed();
        Ok(Entered {
            side,
            compiler: &self.host.compiler,
            owner,
            versions,
            deadline: deadline(request.timeout),
            device: Some(info.clone()),
            queue,
            start,
            image: Some(Kernels::of(&image)),
            queues: Queues::default(),
            not_on_gpu: None,
            held: Some(held),
            _place: place,
        })
    }
}

/// A permit, and the time spent waiting for it and for PyTorch.
struct InSide {
    place: RunnerPermit,
    versions: Versions,
    queue: Duration,
    start: Duration,
}

impl Side {
    async fn entered(&self, owner: Owner) -> Result<InSide, ExecError> {
        let began = Instant::now();
        let place = self.runners.place(owner).await.map_err(of_unusable)?;
        let queue = began.elapsed();
        let versions = self.runners.warm().await.map_err(of_unusable)?;
        Ok(InSide { place, versions, queue, start: began.elapsed() - queue })
    }
}

fn deadline(timeout: f64) -> Instant {
    Instant::now() + Duration::try_from_secs_f64(timeout).unwrap_or_default()
}

pub(super) fn of_unusable(why: RunnerUnavailable) -> ExecError {
    match why {
        RunnerUnavailable::QueueFull { waiting } => {
            ExecError::QueueFull { waiting, retry_after: RETRY_AFTER }
        }
        RunnerUnavailable::Failed { .. } => ExecError::Unavailable(why.to_string()),
    }
}

/// Returns the error for a judge that returned no verdict, although no deadline passed.
pub(super) fn no_verdict(lost: JudgeError) -> ExecError {
    match lost {
        JudgeError::TooLarge(_) => error::internal("judging a torch kernel", &lost),
        lost => ExecError::Unavailable(format!(
            "there is no verdict on the torch kernel: {lost}; it may have run out of memory: try again, \
             with smaller tensors if it happens again"
        )),
    }
}

/// Maximum number of retries of an order with other runners.
const MOST_RETRIES: u32 = 2;

/// Returns the reason to retry an order with other runners, or `None`. A retry is useful if the
/// order's runners were lost or an overloaded machine may have caused the failure.
fn why_retry(answer: &Result<Answer, JudgeError>) -> Option<&str> {
    match answer {
        Ok(Answer::Failed(ExecError::RunnersLost(why))) => Some(why),
        Ok(Answer::Evaluated(judgement)) if judgement.unsure => {
            let failure = judgement.report.failure.as_ref();
            Some(failure.map_or("it was not stopped", |failure| &failure.message))
        }
        _ => None,
    }
}

/// Result of an order to a judge process.
pub(super) struct Judged {
    pub answer: Result<Answer, JudgeError>,
    /// Extensions that were compiled for the first runner.
    pub extensions: Vec<TorchExtension>,
    /// Time until a judge process accepted the order. After a retry it includes the earlier
    /// attempts.
    pub waited: Duration,
}

impl Entered<'_> {
    /// Keeps the permit and the device for another order, and starts a new timeout.
    pub(super) fn anew(self, timeout: f64) -> Self {
        Self { deadline: deadline(timeout), queue: Duration::ZERO, start: Duration::ZERO, ..self }
    }

    /// Returns `count` newly started runners.
    pub(super) async fn runners(&self, count: usize) -> Result<Vec<Runner>, ExecError> {
        let mut runners = Vec::with_capacity(count);
        for _ in 0..count {
            runners.push(self.side.runners.runner(self.queues).await.map_err(of_unusable)?);
        }
        Ok(runners)
    }

    /// Judges an order with `sides` runners. Retries with other runners if the first were lost or
    /// the machine may have caused the failure. `files` returns the files for each attempt. A retry
    /// restarts the timeout, because the submission did not cause the failure of the earlier
    /// attempt.
    pub(super) async fn judged_surely(
        &mut self,
        order: &Arc<Order>,
        (sides, mut runners): (usize, Vec<Runner>),
        timeout: f64,
        most: u64,
        files: impl Fn() -> Result<Vec<File>, ExecError>,
    ) -> Result<Judged, ExecError> {
        let mut retries = 0..MOST_RETRIES;
        let first = Instant::now();
        loop {
            let before = first.elapsed();
            let mut judged = self.judged(order, runners, files()?, most).await;
            judged.waited += before;
            let Some(why) = why_retry(&judged.answer).filter(|_| retries.next().is_some()) else {
                return Ok(judged);
            };
            tracing::warn!(why, "a torch kernel is retried with other processes");
            runners = self.runners(sides).await?;
            self.deadline = deadline(timeout);
        }
    }

    /// Sends an order to a judge process, and compiles the extensions that the runners request. All
    /// processes end when the caller drops the future.
    pub(super) async fn judged(
        &self,
        order: &Arc<Order>,
        mut runners: Vec<Runner>,
        files: Vec<File>,
        most: u64,
    ) -> Judged {
        let killers: Vec<Killer> = runners.iter().map(Runner::killer).collect();
        let ending = self.held.as_ref().map(|held| held.ends(killers.iter().cloned()));
        let _leash = Leash(killers);
        let python = python_host(&self.versions, self.device.as_ref());
        let customer = Customer { compiler: self.compiler, owner: self.owner };
        let serving = Serving::begin(&customer, python, &mut runners, self.deadline);
        // The next order's runners start while this order's submissions are loaded and its first
        // call is verified.
        let noise = self.held.as_ref().and_then(|held| held.makes_next(ending?));
        let (judges, bench) = (&self.side.judges, JudgeResources { runners, files, noise });
        let answer = judges.ask(Arc::clone(order), self.owner, bench, (self.deadline, most)).await;
        if self.device.is_none() {
            // Prepares a judge for the next order while nothing is timed. On a device, `Held` does
            // that.
            judges.prepare();
        }
        let (answer, waited) = match answer {
            Ok(JudgeAnswer { answer, waited }) => (Ok(answer), waited),
            Err(lost) => (Err(lost), Duration::ZERO),
        };
        Judged { answer, extensions: serving.end(), waited }
    }

    /// Returns the number of threads that a submission uses.
    pub(super) fn threads(&self) -> u32 {
        u32::try_from(self.side.runners.threads()).unwrap_or(u32::MAX)
    }
}

/// Runner processes, which are killed when this value is dropped.
pub(super) struct Leash(pub(super) Vec<Killer>);

impl Drop for Leash {
    fn drop(&mut self) {
        self.0.iter().for_each(Killer::kill);
    }
}
