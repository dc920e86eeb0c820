//! Backend for device code, which workers load and launch. This file contains the sequence of
//! stages of one evaluation, from contract to report. `comparison` evaluates several kernels during
//! one lease. The main type is [`DeviceBackend`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::torch::{TorchBackend, expected};
use crate::backend::{Contest, Evaluator, KernelBackend, Opened, Purpose};
use crate::clock::ms;
use crate::error::{self, ExecError};
use crate::found;
use crate::host::{Host, need_of};
use crate::kept::{self, KeptKernel};
use crate::prepare::{self, CompileOutcome, Compiled, Layout, Prepared};
use crate::profiling::tool_runs;
use crate::progress::ActiveOrder;
use crate::reporting::{AUDITS, Additions, Ran, assemble, finished, kept_outputs};
use comparison::DeviceSession;
use linted::{LintedContracts, Look};
use settled::SettledTolerances;
use tuning::Winners;
use warpgauge_contract::{Checked, EvaluateRequest, InputChoice, Isolation, KernelType, Sanitize};
use warpgauge_model::{DeviceInfo, DeviceKind, JobStage};
use warpgauge_report::{EvaluateResponse, Timings, ToolReport};
use warpgauge_statistics::{Preset, StopRule};
use warpgauge_worker::Lease;
use warpgauge_worker::protocol::{
    EvaluatePlan, EvaluatedRun, JudgedTask, RunOutcome, TaskPlan, TrialPlan, WorkerJob,
};

mod comparison;
pub(crate) mod linted;
mod settled;
mod tuning;

/// Maximum number of contracts whose weaknesses or tolerances are remembered.
const MOST_CONTRACTS: usize = 1024;

/// Number of timed launches that a separate process times and verifies. Their times must agree with
/// those of the other launches.
const SEALED: u32 = 3;

/// Minimum number of consecutive launches without restored module state, for kernels that keep
/// state between launches. If the request asks for more trials, that number applies.
const LASTING: u32 = 200;

/// A run that is ready to be executed, with its request.
pub(crate) struct Laid {
    pub(crate) request: EvaluateRequest,
    pub(crate) prepared: Prepared,
    /// Whether the run must examine the contract for weaknesses. The run's outcome settles this.
    pub(crate) look: Look,
    /// Hash of the contract, without the kernel.
    pub(crate) contract: Option<blake3::Hash>,
}

/// Returns the record of a kernel and its compilation, so that its code can be shown later.
pub(crate) fn kept(
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

/// Keeps the record of a kernel once more, if its instructions were counted in the run.
fn keep_counted(
    job: &ActiveOrder<'_>,
    name: &str,
    (request, device): (&EvaluateRequest, &DeviceInfo),
    prepared: &Prepared,
    outcome: &RunOutcome<EvaluatedRun>,
) {
    let lineinfo = prepare::wants_lines(request);
    let kernel = kept::built(name, &request.kernel, device.target, lineinfo, &prepared.artifact);
    if let Some(kernel) = kept::counted(kernel, outcome.told.counts.as_ref()) {
        job.keep(kernel);
    }
}

/// Evaluates device code by running it in workers.
pub(crate) struct DeviceBackend {
    host: Arc<Host>,
    /// Computes expected outputs that are defined in Python.
    torch: Arc<TorchBackend>,
    linted: LintedContracts,
    settled: SettledTolerances,
    /// Configurations that were chosen for kernels.
    winners: Winners,
}

impl KernelBackend for DeviceBackend {
    fn tools(&self, host: &Host) -> Vec<ToolReport> {
        let triton = host.compiler.toolchain().triton();
        let triton = triton.map(|found| (found.site_packages.as_path(), found.version.as_str()));
        let triton = triton.map_err(|why| (why.reason, why.remedy));
        vec![found::package(KernelType::Triton, triton)]
    }

    fn evaluate<'a>(
        &'a self,
        _evaluator: &'a dyn Evaluator,
        job: &'a ActiveOrder<'_>,
        request: Checked<EvaluateRequest>,
        purpose: Purpose,
    ) -> BoxFuture<'a, Result<EvaluateResponse, ExecError>> {
        self.evaluate_on_device(job, request.into_inner(), purpose).boxed()
    }

    fn compare<'a>(&'a self, job: &'a ActiveOrder<'a>, contest: Contest) -> Opened<'a> {
        DeviceSession::open(self, job, contest).boxed()
    }
}

impl DeviceBackend {
    pub(crate) fn new(host: &Arc<Host>, torch: &Arc<TorchBackend>) -> Self {
        Self {
            host: Arc::clone(host),
            torch: Arc::clone(torch),
            linted: LintedContracts::default(),
            settled: SettledTolerances::default(),
            winners: Winners::default(),
        }
    }

    async fn evaluate_on_device(
        &self,
        job: &ActiveOrder<'_>,
        mut request: EvaluateRequest,
        purpose: Purpose,
    ) -> Result<EvaluateResponse, ExecError> {
        let arrived = Instant::now();
        if purpose == Purpose::Execute {
            kept_outputs::return_something(&mut request);
        }
        let watched = request.kernel.family().has_metrics();
        if purpose != Purpose::Execute && self.host.config.devices.device_metrics && watched {
            request.profile.get_or_insert_default();
        }
        let device = self.host.device_of(&request)?;
        let mut compiling = Instant::now();
        let tuning = self.tuned(job, &mut request, &device).await?;
        if tuning.is_some() {
            // The tuning report contains the time that the choice took.
            compiling = Instant::now();
        }

        job.stage(JobStage::Compiling);
        let compiled =
            prepare::compile(&self.host.compiler, &request, &device.target, job.owner()).await?;
        let mut timings = Timings { compile: ms(compiling), ..Timings::default() };
        job.keep(kept("kernel", &request, &device, &compiled));
        let compiled = match compiled {
            CompileOutcome::Compiled(compiled) => compiled,
            CompileOutcome::Failed(failure) => {
                let id = job.id();
                let report = assemble::not_compiled(id, &request, &device, &failure, timings);
                return Ok(finished(
                    report,
                    request.allow_weak,
                    ms(arrived),
                    Additions::tuned(tuning),
                ));
            }
        };

        job.stage(JobStage::Preparing);
        let laid = self.lay_out(job, request, *compiled, job.id().to_owned(), purpose).await?;
        let Laid { request, prepared, look, contract } = laid;

        job.stage(JobStage::WaitingForDevice);
        let queued = Instant::now();
        let mut lease = self.host.quiet_lease(&need_of(job, &device, &request)).await?;
        timings.queue = ms(queued);
        let run = prepared.job.clone();
        let mut outcome = self.execute(job, (&request, contract), run, &mut lease).await;
        self.linted.settle(look, &mut outcome);
        keep_counted(job, "kernel", (&request, &device), &prepared, &outcome);
        if request.profile.is_some() || request.sanitize != Sanitize::Off {
            job.stage(JobStage::Profiling);
        }
        let tool_runs = tool_runs::run(&self.host, &mut lease, &request, &prepared, &outcome).await;
        timings.profile = tool_runs.profile_ms;
        job.keep_files(&tool_runs.artifacts);
        let device = lease.device().clone();
        drop(lease);
        let allow_weak = request.allow_weak;
        let ran = Ran { request, prepared, outcome, tool_runs, device };
        timings.set_worker(&ran.outcome.timings);
        let report = reported(job, ran, timings).await?;
        Ok(finished(report, allow_weak, ms(arrived), Additions::tuned(tuning)))
    }

    /// Compiles the kernels of an evaluation into the cache. Failures are ignored.
    pub(crate) async fn compile_ahead(
        &self,
        job: &ActiveOrder<'_>,
        request: &EvaluateRequest,
        device: &DeviceInfo,
    ) {
        // The evaluation reports the failures.
        let _ = prepare::compile(&self.host.compiler, request, &device.target, job.owner()).await;
    }

    /// Returns the plan for timing the kernel, from the request and its preset.
    fn trial_plan(&self, request: &EvaluateRequest) -> TrialPlan {
        let measure = &request.measure;
        let preset = Preset::builtin(measure.preset);
        let mut stop = match request.num_trials {
            Some(trials) => StopRule::fixed(trials),
            None => preset.measurement.stop_rule(),
        };
        stop.max_time_s = measure.max_time.or(stop.max_time_s);
        let least = self.host.config.measure.min_warmup_s;
        let warmup_s = measure.min_warmup_time;
        TrialPlan {
            stop,
            min_warmup_s: warmup_s.unwrap_or(least.max(preset.measurement.min_warmup_ms * 1e-3)),
            cache: measure.cache,
            regime: measure.regime,
            fresh_inputs: measure.inputs == InputChoice::Fresh,
            audits: AUDITS,
            sealed: SEALED,
            lasting: LASTING.max(request.num_trials.unwrap_or_default()),
            time_limit_s: request.timeout,
        }
    }

    /// Binds arguments and writes the contract's data, on a thread that may block. `job_id`
    /// identifies the run in the worker's log.
    pub(crate) async fn lay_out(
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
        let (directory, limits) = (self.host.scratch.directory()?, self.host.limits.clone());
        let computed = expected::expectations(&self.torch, job, &request, directory.path()).await?;
        let room = self.host.room.share(request.decoded_bytes()).await?;
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
        Ok(Laid { request, prepared, look, contract })
    }

    /// Runs an evaluation on a leased device, and reports the progress as that of the job.
    pub(crate) async fn execute(
        &self,
        job: &ActiveOrder<'_>,
        (request, contract): (&EvaluateRequest, Option<blake3::Hash>),
        mut run: WorkerJob<EvaluatePlan>,
        lease: &mut Lease,
    ) -> RunOutcome<EvaluatedRun> {
        let checks = &mut run.task.checks;
        let unknown = self.settled.apply(contract, lease.device(), checks);
        let checks = unknown.is_some().then(|| checks.clone());
        let outcome = self.run_evaluation(job, request, run, lease).await;
        if let Some(checks) = checks {
            self.settled.remember(unknown, &checks, &outcome.told);
        }
        outcome
    }

    async fn run_evaluation(
        &self,
        job: &ActiveOrder<'_>,
        request: &EvaluateRequest,
        mut run: WorkerJob<EvaluatePlan>,
        lease: &mut Lease,
    ) -> RunOutcome<EvaluatedRun> {
        // On a GPU, memory checks have separate runs, and this run uses only guard bands.
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

    /// Runs a task on a leased device, within the timeout of the request.
    pub(crate) async fn run_task<P: TaskPlan + Into<JudgedTask>>(
        &self,
        job: &ActiveOrder<'_>,
        request: &EvaluateRequest,
        run: WorkerJob<P>,
        lease: &mut Lease,
    ) -> RunOutcome<P::Output> {
        job.stage(JobStage::Running);
        let timeout = Duration::from_secs_f64(request.timeout);
        let on_event = |event| job.on_run(event);
        match request.isolation {
            Isolation::Warm => lease.run(run, timeout, false, &on_event).await,
            Isolation::Fresh => lease.run(run, timeout, true, &on_event).await,
            Isolation::Sealed => lease.run_sealed(run, timeout, &on_event).await,
        }
    }
}

/// Builds the report of a run, and passes on the outputs to keep.
async fn reported(
    job: &ActiveOrder<'_>,
    ran: Ran,
    timings: Timings,
) -> Result<EvaluateResponse, ExecError> {
    let carries_content = ran.outcome.told.outputs.iter().any(|output| output.file.is_some());
    let job_id = job.id().to_owned();
    let build = move || (assemble::ran(&job_id, &ran, timings), ran);
    // Encoding outputs can take long. Reports without output content do not justify a switch of
    // threads.
    let built =
        if carries_content { tokio::task::spawn_blocking(build).await } else { Ok(build()) };
    let (built, ran) = built.map_err(|error| error::internal("building the report", &error))?;
    let report = built.map_err(|error| error::internal("encoding the outputs", &error))?;
    kept_outputs::hand_over(job, &ran);
    Ok(report)
}
