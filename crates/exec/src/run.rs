//! One evaluation from contract to report: the order of the stages.

use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::error::{self, ExecError};
use super::kept::{self, KeptKernel};
use super::linted::{self, Look};
use super::local::LocalExecutor;
use super::prepare::{self, CompileOutcome, Compiled, Layout, Prepared};
use super::progress::ActiveOrder;
use super::tool_runs::ToolRuns;
use super::{assemble, kept_outputs, recorded};
use warpgauge_contract::{EvaluateRequest, InputChoice, Isolation, KernelFamily, Sanitize};
use warpgauge_executor::Executor;
use warpgauge_measure::{Preset, StopRule};
use warpgauge_model::{DeviceInfo, DeviceKind, JobStage, Requirements};
use warpgauge_report::{EvaluateResponse, Timings};
use warpgauge_worker::Lease;
use warpgauge_worker::protocol::{
    EvaluatePlan, Evaluated, Job, Judged, Plan, RunOutcome, TrialPlan,
};
use warpgauge_worker::queue::Need;

/// Timed launches whose outputs are verified, or all if there are fewer: a kernel that leaves out a tenth
/// of its launches' work passes less than once in 1000 times, 0.9⁶⁶ < 0.001.
pub(super) const AUDITS: u32 = 66;

/// Timed launches that a process apart judges, whose times must agree with those of the others.
const SEALED: u32 = 3;

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

/// A kernel that ran, or tried to, and what came of it.
pub(super) struct Ran {
    pub request: EvaluateRequest,
    pub prepared: Prepared,
    pub outcome: RunOutcome<Evaluated>,
    pub tool_runs: ToolRuns,
    pub device: DeviceInfo,
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
            kept::built(name, code, target, lineinfo, &compiled.candidate)
        }
        CompileOutcome::Failed(failure) => kept::rejected(name, code, target, lineinfo, failure),
    }
}

impl LocalExecutor {
    /// Takes one evaluation to its report, in a place that the caller holds.
    /// Boxed: one may be part of another, and each is large.
    pub(super) fn evaluate<'a>(
        &'a self,
        job: &'a ActiveOrder<'_>,
        request: EvaluateRequest,
        purpose: Purpose,
    ) -> BoxFuture<'a, Result<EvaluateResponse, ExecError>> {
        match request.kernel.family() {
            KernelFamily::Device | KernelFamily::Library => {
                self.evaluate_on_device(job, request, purpose).boxed()
            }
            KernelFamily::Torch => self.evaluate_torch(job, request, purpose).boxed(),
            KernelFamily::Program => self.evaluate_program(job, request, purpose).boxed(),
        }
    }

    async fn evaluate_on_device(
        &self,
        job: &ActiveOrder<'_>,
        mut request: EvaluateRequest,
        purpose: Purpose,
    ) -> Result<EvaluateResponse, ExecError> {
        let arrived = Instant::now();
        self.check(&request)?;
        if purpose == Purpose::Execute {
            kept_outputs::return_something(&mut request);
        }
        let watched = request.kernel.family().has_metrics();
        if purpose != Purpose::Execute && self.config.devices.device_metrics && watched {
            request.profile.get_or_insert_default();
        }
        let device = self.device_of(&request)?;
        let mut compiling = Instant::now();
        let tuning = self.tuned(job, &mut request, &device).await?;
        if tuning.is_some() {
            // What the choice took is told with it.
            compiling = Instant::now();
        }

        job.stage(JobStage::Compiling);
        let compiled =
            prepare::compile(&self.compiler, &request, &device.target, job.owner()).await?;
        let mut timings = Timings { compile: ms(compiling), ..Timings::default() };
        job.keep(kept("kernel", &request, &device, &compiled));
        let compiled = match compiled {
            CompileOutcome::Compiled(compiled) => compiled,
            CompileOutcome::Failed(failure) => {
                timings.total = ms(arrived);
                let id = job.id();
                let mut report = assemble::not_compiled(id, &request, &device, &failure, timings);
                if let Some(tuning) = tuning {
                    tuning.put_into(&mut report);
                }
                recorded::evaluation(&report);
                return Ok(report);
            }
        };

        job.stage(JobStage::Preparing);
        let laid = self.lay_out(job, request, *compiled, job.id().to_owned(), purpose).await?;
        let Laid { request, prepared, look } = laid;

        job.stage(JobStage::WaitingForDevice);
        let queued = Instant::now();
        let mut lease = self.quiet_lease(&need_of(job, &device, &request)).await?;
        timings.queue = ms(queued);
        let run = prepared.job.clone();
        let mut outcome = self.execute(job, &request, run, &mut lease).await;
        self.linted.settle(look, &mut outcome);
        if request.profile.is_some() || request.sanitize != Sanitize::Off {
            job.stage(JobStage::Profiling);
        }
        let tool_runs = self.run_tools(&mut lease, &request, &prepared, &outcome).await;
        timings.profile = tool_runs.profile_ms;
        job.keep_files(&tool_runs.artifacts);
        let device = lease.device().clone();
        drop(lease);
        let ran = Ran { request, prepared, outcome, tool_runs, device };
        let mut report = self.finish(job, ran, timings, arrived).await?;
        if let Some(tuning) = tuning {
            tuning.put_into(&mut report);
        }
        Ok(report)
    }

    pub(super) fn check(&self, request: &EvaluateRequest) -> Result<(), ExecError> {
        warpgauge_contract::validate(request, &self.limits).map_err(error::invalid)
    }

    /// The device that evaluations run on when the contract does not choose.
    pub(super) fn default_device(&self) -> Result<DeviceInfo, ExecError> {
        self.offer().default_device().cloned()
    }

    /// The device that a request runs on: the one that content of its is on, or any that is what it requires.
    pub(super) fn device_of(&self, request: &EvaluateRequest) -> Result<DeviceInfo, ExecError> {
        let Some(ordinal) = request.device_of_content() else {
            return self.device_for(&request.requires);
        };
        let offer = self.offer();
        let device = offer.devices.iter().find(|device| device.info.ordinal == ordinal);
        device.map(|device| device.info.clone()).ok_or_else(|| {
            ExecError::NotOffered(format!(
                "content of the request is in the memory of device {ordinal}, which is not here"
            ))
        })
    }

    /// A device that is what an order requires.
    pub(super) fn device_for(&self, order: &Requirements) -> Result<DeviceInfo, ExecError> {
        self.offer().device_for(order).cloned()
    }

    pub(super) fn job_directory(&self) -> Result<tempfile::TempDir, ExecError> {
        let made = tempfile::Builder::new().prefix("job-").tempdir_in(self.run_dir.as_path());
        made.map_err(|error| self.no_place("create a job directory", &error))
    }

    /// Writes as a job would, and leaves nothing. Blocking.
    pub(super) fn write_probe(&self) -> std::io::Result<()> {
        let directory =
            tempfile::Builder::new().prefix("job-").tempdir_in(self.run_dir.as_path())?;
        std::fs::write(directory.path().join("probe"), [1; PROBE_BYTES])
    }

    /// Whether jobs can have files now. That a disk is full shows only as something is written.
    pub(super) async fn try_place(&self) -> Result<(), ExecError> {
        let directory = self.job_directory()?;
        let write = move || std::fs::write(directory.path().join("probe"), [1; PROBE_BYTES]);
        let written = tokio::task::spawn_blocking(write).await;
        let written = written.map_err(|error| error::internal("looking for room", &error))?;
        written.map_err(|error| self.no_place("write", &error))
    }

    pub(super) fn no_place(&self, operation: &str, error: &std::io::Error) -> ExecError {
        tracing::error!(directory = %self.run_dir.display(), %error, "jobs can have no files");
        ExecError::Unavailable(format!(
            "cannot {operation} in the server's run directory: {error}; check space and permissions"
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
            regime: measure.regime,
            fresh_inputs: measure.inputs == InputChoice::Fresh,
            audits: AUDITS,
            sealed: SEALED,
        }
    }

    /// Binds arguments and writes the contract's data, on a thread that may block. `job_id` is what
    /// the worker's log will call the run.
    pub(super) async fn lay_out(
        &self,
        job: &ActiveOrder<'_>,
        request: EvaluateRequest,
        compiled: Compiled,
        job_id: String,
        purpose: Purpose,
    ) -> Result<Laid, ExecError> {
        let trials = match purpose {
            Purpose::Evaluate | Purpose::Rank => Some(self.trial_plan(&request)),
            Purpose::Execute => None,
        };
        let (directory, limits) = (self.job_directory()?, self.limits.clone());
        let computed = self.torch_expectations(job, &request, directory.path()).await?;
        let room = self.room.share(request.decoded_bytes()).await?;
        let owner = job.owner();
        let layout = Layout { job_id, directory, limits, trials, room, computed };
        let (request, mut prepared, contract) = tokio::task::spawn_blocking(move || {
            let prepared = prepare::lay_out(&request, compiled, layout)?;
            let contract = linted::identity(&request, owner);
            Ok::<_, ExecError>((request, prepared, contract))
        })
        .await
        .map_err(|error| error::internal("laying out the job", &error))??;
        let look = self.linted.look(contract);
        prepared.job.task.lint = look.is_wanted();
        prepared.job.task.count |= purpose == Purpose::Rank;
        Ok(Laid { request, prepared, look })
    }

    /// Runs an evaluation on a leased device; the job's progress is that of the run.
    pub(super) async fn execute(
        &self,
        job: &ActiveOrder<'_>,
        request: &EvaluateRequest,
        mut run: Job<EvaluatePlan>,
        lease: &mut Lease,
    ) -> RunOutcome<Evaluated> {
        // A GPU is checked in runs of their own; this one keeps its own guards.
        run.task.sanitize &= lease.device().kind == DeviceKind::Emulator;
        let checked = !run.task.checks.tolerances.is_empty() && !run.task.sanitize;
        if request.isolation == Isolation::Sealed || run.task.trials.is_none() || !checked {
            if let Some(trials) = &mut run.task.trials {
                trials.sealed = 0;
            }
            return self.run_task(job, request, run, lease).await;
        }
        job.stage(JobStage::Running);
        let timeout = Duration::from_secs_f64(request.timeout);
        let fresh = request.isolation == Isolation::Fresh;
        lease.run_shared(run, timeout, fresh, &|event| job.on_run(event)).await
    }

    /// Runs a task on a leased device, as long as the request allows.
    pub(super) async fn run_task<P: Plan + Into<Judged>>(
        &self,
        job: &ActiveOrder<'_>,
        request: &EvaluateRequest,
        run: Job<P>,
        lease: &mut Lease,
    ) -> RunOutcome<P::Told> {
        job.stage(JobStage::Running);
        let timeout = Duration::from_secs_f64(request.timeout);
        let on_event = |event| job.on_run(event);
        match request.isolation {
            Isolation::Warm => lease.run(run, timeout, false, &on_event).await,
            Isolation::Fresh => lease.run(run, timeout, true, &on_event).await,
            Isolation::Sealed => lease.run_sealed(run, timeout, &on_event).await,
        }
    }

    async fn finish(
        &self,
        job: &ActiveOrder<'_>,
        ran: Ran,
        mut timings: Timings,
        arrived: Instant,
    ) -> Result<EvaluateResponse, ExecError> {
        timings.set_worker(&ran.outcome.timings);
        let carries_content = ran.outcome.told.outputs.iter().any(|output| output.file.is_some());
        let job_id = job.id().to_owned();
        let build = move || (assemble::ran(&job_id, &ran, timings), ran);
        // Encoding outputs can take long; answers without content are not worth a thread hop.
        let built =
            if carries_content { tokio::task::spawn_blocking(build).await } else { Ok(build()) };
        let (built, ran) = built.map_err(|error| error::internal("building the report", &error))?;
        let mut report = built.map_err(|error| error::internal("encoding the outputs", &error))?;
        kept_outputs::hand_over(job, &ran);
        report.timings.total = ms(arrived);
        recorded::evaluation(&report);
        Ok(report)
    }
}

/// The lease for what was compiled for a device: any other of its kind will do that is what the order
/// requires.
pub(super) fn need(job: &ActiveOrder<'_>, device: &DeviceInfo, order: &Requirements) -> Need {
    let (target, owner) = (Some(device.target), job.owner());
    Need { target, order: order.clone(), owner, ..Need::default() }
}

/// The lease for a request that was compiled for a device: on that one alone where content of it is.
pub(super) fn need_of(
    job: &ActiveOrder<'_>,
    device: &DeviceInfo,
    request: &EvaluateRequest,
) -> Need {
    Need { device: request.device_of_content(), ..need(job, device, &request.requires) }
}

/// Milliseconds of wall clock since then.
pub(super) fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
