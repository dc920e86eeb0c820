//! One evaluation from contract to report: the order of the stages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::artifacts::KeptKernel;
use super::assemble;
use super::error::{self, ServiceError};
use super::jobs::{LiveJob, LiveJobs};
use super::linted::{self, LintedContracts, Look};
use super::prepare::{self, CompileOutcome, Compiled, Layout, Prepared};
use super::readiness::Readiness;
use super::recorded;
use super::room::Room;
use super::run_dir::RunDir;
use super::start::Role;
use super::watched::Watched;
use crate::compile::Compiler;
use crate::config::Config;
use crate::contract::{
    self, EvaluateRequest, InputChoice, Isolation, Limits, ReturnOutputs, Sanitize,
};
use crate::measure::{Preset, StopRule};
use crate::queue::Need;
use crate::report::{EvaluateResponse, JobStage, Timings};
use crate::store::Store;
use crate::tools::Tools;
use crate::worker::protocol::{DeviceInfo, DeviceKind, Job, RunOutcome, TrialPlan};
use crate::worker::{DeviceState, DeviceStatus, Fleet, Lease};

/// Timed launches whose outputs are verified, about.
const AUDITS: u32 = 8;

/// What is written to see whether there is room: not even that, and the disk is full.
const PROBE_BYTES: usize = 16 << 10;

/// What an evaluation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Verdict and times.
    Evaluate,
    /// Verdict and times, and on the emulated device the counts that stand for times where kernels
    /// are ranked.
    Rank,
    /// One untimed run for its outputs.
    Execute,
}

/// A place among the evaluations in flight; dropping it frees the place.
pub(super) type Admitted = OwnedSemaphorePermit;

/// A kernel that ran, or tried to, and what came of it.
pub(super) struct Ran {
    pub request: EvaluateRequest,
    pub prepared: Prepared,
    pub outcome: RunOutcome,
    pub watched: Watched,
    pub device: DeviceInfo,
}

/// The parts every evaluation shares.
pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) limits: Limits,
    pub(super) tools: Tools,
    pub(super) compiler: Arc<Compiler>,
    pub(super) fleet: Arc<Fleet>,
    pub(super) store: Store,
    pub(super) jobs: Arc<LiveJobs>,
    pub(super) role: Role,
    pub(super) linted: LintedContracts,
    /// Evaluations admitted at once: those that may wait, and one per device.
    pub(super) admission: Arc<Semaphore>,
    pub(super) admitted_at_most: usize,
    pub(super) run_dir: RunDir,
    pub(super) started: Instant,
    pub(super) closing: AtomicBool,
    pub(super) readiness: Readiness,
    pub(super) room: Room,
}

/// A job that was laid out, and the request that it is for.
pub(super) struct Laid {
    pub(super) request: EvaluateRequest,
    pub(super) prepared: Prepared,
    /// To be settled with the run's outcome.
    pub(super) look: Look,
}

/// A kernel and what was compiled of it, for those who ask for its code later.
pub(super) fn kept(
    name: &str,
    request: &EvaluateRequest,
    device: &DeviceInfo,
    compiled: &CompileOutcome,
) -> KeptKernel {
    let (code, target, lineinfo) = (&request.kernel, device.target, prepare::wants_lines(request));
    match compiled {
        CompileOutcome::Compiled(compiled) => {
            KeptKernel::built(name, code, target, lineinfo, &compiled.candidate)
        }
        CompileOutcome::Failed(failure) => {
            KeptKernel::rejected(name, code, target, lineinfo, failure)
        }
    }
}

impl Shared {
    /// Takes one evaluation to its report, in a place that the caller holds.
    pub(super) async fn run(
        &self,
        job: &LiveJob,
        mut request: EvaluateRequest,
        purpose: Purpose,
    ) -> Result<EvaluateResponse, ServiceError> {
        let arrived = Instant::now();
        self.check(&request)?;
        if purpose == Purpose::Execute && request.return_outputs == ReturnOutputs::None {
            request.return_outputs = ReturnOutputs::All;
        }
        if purpose != Purpose::Execute && self.config.devices.device_metrics {
            request.profile.get_or_insert_default();
        }
        let device = self.default_device()?;

        job.stage(JobStage::Compiling);
        let compiling = Instant::now();
        let compiled = prepare::compile(&self.compiler, &request, &device.target).await?;
        let mut timings = Timings { compile: ms(compiling), ..Timings::default() };
        job.keep(kept("kernel", &request, &device, &compiled));
        let compiled = match compiled {
            CompileOutcome::Compiled(compiled) => compiled,
            CompileOutcome::Failed(failure) => {
                timings.total = ms(arrived);
                let id = job.id();
                let report = assemble::not_compiled(id, &request, &device, &failure, timings);
                recorded::evaluation(&report);
                return Ok(report);
            }
        };

        job.stage(JobStage::Preparing);
        let laid = self.lay_out(request, *compiled, job.id().to_owned(), purpose).await?;
        let Laid { request, prepared, look } = laid;

        job.stage(JobStage::WaitingForDevice);
        let queued = Instant::now();
        let mut lease = self
            .fleet
            .lease(&Need { target: Some(device.target), ..Need::default() })
            .await
            .map_err(error::from_lease)?;
        timings.queue = ms(queued);
        let run = prepared.job.clone();
        let mut outcome = self.execute(job, &request, run, &mut lease).await;
        self.linted.settle(look, &mut outcome);
        if request.profile.is_some() || request.sanitize != Sanitize::Off {
            job.stage(JobStage::Profiling);
        }
        let watched = self.watch(&mut lease, &request, &prepared, &outcome).await;
        timings.profile = watched.profile_ms;
        job.keep_files(&watched.artifacts);
        let device = lease.device().clone();
        drop(lease);
        let ran = Ran { request, prepared, outcome, watched, device };
        self.finish(job, ran, timings, arrived).await
    }

    pub(super) fn check(&self, request: &EvaluateRequest) -> Result<(), ServiceError> {
        contract::validate(request, &self.limits).map_err(error::invalid)
    }

    /// A place among the evaluations in flight, or the news that there is none.
    pub(super) fn admit(&self) -> Result<Admitted, ServiceError> {
        if self.closing.load(Ordering::Acquire) {
            return Err(ServiceError::ShuttingDown);
        }
        Arc::clone(&self.admission).try_acquire_owned().map_err(|_| ServiceError::QueueFull {
            waiting: self.admitted_at_most,
            retry_after: Duration::from_secs(1),
        })
    }

    /// The device that evaluations run on when the contract does not choose.
    pub(super) fn default_device(&self) -> Result<DeviceInfo, ServiceError> {
        let usable = |status: &DeviceStatus| !matches!(status.state, DeviceState::Failed { .. });
        let devices = self.fleet.devices();
        let free = devices.iter().find(|status| usable(status) && !status.busy);
        let chosen = free.or_else(|| devices.iter().find(|status| usable(status)));
        chosen.map(|status| status.info.clone()).ok_or_else(|| {
            ServiceError::Unavailable(
                "no device works here at the moment; GET /devices says why".to_owned(),
            )
        })
    }

    fn job_directory(&self) -> Result<tempfile::TempDir, ServiceError> {
        let made = tempfile::Builder::new().prefix("job-").tempdir_in(self.run_dir.path());
        made.map_err(|error| self.no_place("create a job directory", &error))
    }

    /// Writes as a job would, and leaves nothing. Blocking.
    pub(super) fn write_probe(&self) -> std::io::Result<()> {
        let directory = tempfile::Builder::new().prefix("job-").tempdir_in(self.run_dir.path())?;
        std::fs::write(directory.path().join("probe"), [1; PROBE_BYTES])
    }

    /// Whether jobs can have files now. That a disk is full shows only as something is written.
    pub(super) async fn has_place(&self) -> Result<(), ServiceError> {
        let directory = self.job_directory()?;
        let write = move || std::fs::write(directory.path().join("probe"), [1; PROBE_BYTES]);
        let written = tokio::task::spawn_blocking(write).await;
        let written = written.map_err(|error| error::internal("looking for room", &error))?;
        written.map_err(|error| self.no_place("write", &error))
    }

    pub(super) fn no_place(&self, operation: &str, error: &std::io::Error) -> ServiceError {
        ServiceError::Unavailable(format!(
            "cannot {operation} in {}: {error}; check space and permissions",
            self.run_dir.path().display()
        ))
    }

    /// How to time, by the request and its preset.
    fn trial_plan(&self, request: &EvaluateRequest) -> TrialPlan {
        let measure = &request.measure;
        let preset = Preset::builtin(measure.preset);
        let mut stop = match request.num_trials {
            Some(trials) => StopRule::fixed(trials),
            None => preset.measurement.stop_rule(),
        };
        stop.max_time_s = measure.max_time.or(stop.max_time_s);
        let least = self.config.measure.min_warmup_s;
        let warmup_s = measure.min_warmup_time;
        TrialPlan {
            stop,
            min_warmup_s: warmup_s.unwrap_or(least.max(preset.measurement.min_warmup_ms * 1e-3)),
            cache: measure.cache,
            fresh_inputs: measure.inputs == InputChoice::Fresh,
            audits: AUDITS,
        }
    }

    /// Binds arguments and writes the contract's data, on a thread that may block. `job_id` is what
    /// the worker's log will call the run.
    pub(super) async fn lay_out(
        &self,
        request: EvaluateRequest,
        compiled: Compiled,
        job_id: String,
        purpose: Purpose,
    ) -> Result<Laid, ServiceError> {
        let trials = match purpose {
            Purpose::Evaluate | Purpose::Rank => Some(self.trial_plan(&request)),
            Purpose::Execute => None,
        };
        let room = self.room.share(request.decoded_bytes()).await?;
        let (directory, limits) = (self.job_directory()?, self.limits.clone());
        let layout = Layout { job_id, directory, limits, trials, room };
        let (request, mut prepared, contract) = tokio::task::spawn_blocking(move || {
            let prepared = prepare::lay_out(&request, compiled, layout)?;
            let contract = linted::identity(&request);
            Ok::<_, ServiceError>((request, prepared, contract))
        })
        .await
        .map_err(|error| error::internal("laying out the job", &error))??;
        let look = self.linted.look(contract);
        prepared.job.lint = look.is_wanted();
        prepared.job.profile |= purpose == Purpose::Rank;
        Ok(Laid { request, prepared, look })
    }

    /// Runs a job on a leased device; the job's progress is that of the run.
    pub(super) async fn execute(
        &self,
        job: &LiveJob,
        request: &EvaluateRequest,
        mut run: Job,
        lease: &mut Lease,
    ) -> RunOutcome {
        // A GPU is checked in runs of their own; this one keeps its own guards.
        run.sanitize &= lease.device().kind == DeviceKind::Emulator;
        job.stage(JobStage::Running);
        let timeout = Duration::from_secs_f64(request.timeout);
        let fresh = request.isolation == Isolation::Fresh;
        lease.run(run, timeout, fresh, &|event| job.on_run(event)).await
    }

    async fn finish(
        &self,
        job: &LiveJob,
        ran: Ran,
        mut timings: Timings,
        arrived: Instant,
    ) -> Result<EvaluateResponse, ServiceError> {
        timings.set_worker(&ran.outcome.timings);
        let carries_content = ran.outcome.outputs.iter().any(|output| output.file.is_some());
        let job_id = job.id().to_owned();
        let build = move || assemble::ran(&job_id, &ran, timings);
        // Encoding outputs can take long; answers without content are not worth a thread hop.
        let built =
            if carries_content { tokio::task::spawn_blocking(build).await } else { Ok(build()) };
        let mut report = built
            .map_err(|error| error::internal("building the report", &error))?
            .map_err(|error| error::internal("encoding the outputs", &error))?;
        report.timings.total = ms(arrived);
        recorded::evaluation(&report);
        Ok(report)
    }
}

/// Milliseconds of wall clock since then.
pub(super) fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
