//! Bringing the service up and down.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::artifacts::{ArtifactContent, ArtifactKind, ArtifactList, Shelf};
use super::error::{self, ServiceError};
use super::jobs::JobTable;
use super::linted::LintedContracts;
use super::run::{Purpose, Shared};
use super::service::{CompileRequest, DeviceView, EvaluationService, ServiceStatus};
use super::submission::{
    Answer, Caller, CleanupPolicy, JobEvents, JobQuery, JobRequest, Submission, SubmittedJob,
};
use super::{SweepEvents, assemble, compare, compile_only, statistics, sweep};
use crate::compile::toolchain::{self, Toolchain, ToolchainSearch};
use crate::compile::{Compiler, CompilerConfig};
use crate::config::{Config, DeviceSelection};
use crate::contract::{CompareRequest, EvaluateRequest, Limits, SweepRequest};
use crate::report::{
    CancelReport, CleanupReport, CompareResponse, CompileResponse, EvaluateResponse, JobCounts,
    JobList, JobState, JobView, ProfilePlan, ServiceStatistics, SweepResponse, Tooling,
};
use crate::tools::{ToolSearch, Tools};
use crate::worker::{DeviceChoice, DeviceState, Fleet, FleetConfig};

/// The service: compilers, devices, and the jobs between them.
#[derive(Clone)]
pub struct Pipeline {
    shared: Arc<Shared>,
}

impl Pipeline {
    /// Finds the toolchain, starts a worker per device, and makes ready for evaluations.
    ///
    /// # Errors
    /// What is missing on this machine, and what to do about it.
    pub async fn start(config: &Config) -> Result<Arc<Self>, ServiceError> {
        let data_dir = config.data_dir();
        let run_dir = private_run_dir(data_dir)?;
        let program = program()?;
        let compiler = start_compiler(config, data_dir, run_dir.path(), &program)?;
        let fleet = start_fleet(config, run_dir.path(), &program, &compiler).await?;
        let capacity = config.devices.queue_capacity + fleet.devices().len();
        let limits = Limits {
            max_tensor_bytes: config.limits.max_tensor_bytes,
            max_total_bytes: config.limits.max_total_bytes,
            max_output_bytes: config.limits.max_output_bytes,
            max_sweep_points: config.limits.max_sweep_points,
            ..Limits::default()
        };
        let shelf = Shelf::new(config.storage.artifacts_max_bytes, run_dir.path());
        let tools = start_tools(config, run_dir.path())?;
        let shared = Shared {
            config: config.clone(),
            tools,
            limits,
            compiler,
            fleet,
            jobs: JobTable::new(config.server.jobs_kept, shelf),
            linted: LintedContracts::default(),
            admission: Arc::new(tokio::sync::Semaphore::new(capacity)),
            admitted_at_most: capacity,
            run_dir,
            started: Instant::now(),
            closing: AtomicBool::new(false),
        };
        Ok(Arc::new(Self { shared: Arc::new(shared) }))
    }

    fn finite(&self, request: EvaluateRequest, purpose: Purpose) -> Answer<'_, EvaluateResponse> {
        async move {
            let admitted = self.shared.admit()?;
            let job = self.shared.jobs.enter();
            let outcome = self.shared.run(&job, request, purpose, admitted).await;
            job.end(&outcome.as_ref().map(without_content).map_err(Clone::clone));
            outcome
        }
        .boxed()
    }
}

/// The report as it is kept: whoever waited for it has the outputs' content already.
fn without_content(report: &EvaluateResponse) -> EvaluateResponse {
    let mut kept = report.clone();
    for output in kept.outputs.values_mut() {
        output.data_b64 = None;
    }
    kept
}

impl EvaluationService for Pipeline {
    fn evaluate(&self, request: EvaluateRequest, _: Submission) -> Answer<'_, EvaluateResponse> {
        self.finite(request, Purpose::Evaluate)
    }

    fn compare(&self, request: CompareRequest, _: Submission) -> Answer<'_, CompareResponse> {
        async move {
            let admitted = self.shared.admit()?;
            let job = self.shared.jobs.enter();
            let outcome = self.shared.compare(&job, request, admitted).await;
            job.end(&outcome.as_ref().map(compare::kept).map_err(Clone::clone));
            outcome
        }
        .boxed()
    }

    fn execute(&self, request: EvaluateRequest, _: Submission) -> Answer<'_, EvaluateResponse> {
        self.finite(request, Purpose::Execute)
    }

    fn profile_plan(&self, request: EvaluateRequest) -> Answer<'_, ProfilePlan> {
        async move { self.shared.profile_plan(&request).await }.boxed()
    }

    fn submit(&self, request: JobRequest, _: Submission) -> Answer<'_, SubmittedJob> {
        async move {
            let JobRequest::Evaluate(request) = request else {
                return Err(not_yet("a detached job of this kind"));
            };
            self.shared.check(&request)?;
            let admitted = self.shared.admit()?;
            let id = self.shared.jobs.enter().hand_over();
            let shared = Arc::clone(&self.shared);
            let job_id = id.clone();
            tokio::spawn(async move {
                let job = shared.jobs.resume(job_id);
                let outcome = shared.run(&job, *request, Purpose::Evaluate, admitted).await;
                job.end(&outcome);
            });
            Ok(SubmittedJob { job_id: id, state: JobState::Submitted, existing: false })
        }
        .boxed()
    }

    fn submit_all(&self, _: Vec<(JobRequest, Submission)>) -> Answer<'_, Vec<SubmittedJob>> {
        async { Err(not_yet("a batch")) }.boxed()
    }

    fn sweep(
        &self,
        request: SweepRequest,
        _: Submission,
        events: SweepEvents,
    ) -> Answer<'_, SweepResponse> {
        sweep::run(&self.shared, request, events).boxed()
    }

    fn compile(&self, request: CompileRequest) -> Answer<'_, CompileResponse> {
        compile_only::run(&self.shared, request).boxed()
    }

    fn job<'a>(&'a self, job_id: &'a str, _: &'a Caller) -> Answer<'a, JobView> {
        let found = self.shared.jobs.view(job_id);
        async move { found.ok_or_else(|| ServiceError::NoSuchJob(job_id.to_owned())) }.boxed()
    }

    fn jobs<'a>(&'a self, _: JobQuery, _: &'a Caller) -> Answer<'a, JobList> {
        async { Err(not_yet("a list of jobs")) }.boxed()
    }

    fn cancel<'a>(&'a self, _: &'a str, _: &'a Caller) -> Answer<'a, CancelReport> {
        async { Err(not_yet("cancelling")) }.boxed()
    }

    fn watch<'a>(&'a self, _: &'a str, _: &'a Caller) -> Answer<'a, JobEvents> {
        async { Err(not_yet("watching")) }.boxed()
    }

    fn statistics<'a>(&'a self, _: &'a Caller) -> Answer<'a, ServiceStatistics> {
        async {
            let shared = &self.shared;
            let by_state = shared.jobs.summary().0;
            let jobs = JobCounts { total: by_state.values().sum(), by_state };
            let devices = shared.fleet.devices().into_iter().map(|status| status.info.ordinal);
            Ok(statistics::so_far(jobs, devices, shared.started.elapsed().as_secs_f64()))
        }
        .boxed()
    }

    fn cleanup<'a>(&'a self, _: CleanupPolicy, _: &'a Caller) -> Answer<'a, CleanupReport> {
        async { Err(not_yet("a clean-up")) }.boxed()
    }

    fn artifacts<'a>(&'a self, job_id: &'a str, _: &'a Caller) -> Answer<'a, ArtifactList> {
        async move { self.shared.artifacts(job_id) }.boxed()
    }

    fn artifact<'a>(
        &'a self,
        job_id: &'a str,
        kind: ArtifactKind,
        kernel: Option<&'a str>,
        _: &'a Caller,
    ) -> Answer<'a, ArtifactContent> {
        self.shared.artifact(job_id, kind, kernel).boxed()
    }

    fn status(&self) -> ServiceStatus {
        let shared = &self.shared;
        let (jobs_by_state, average_job_age_s) = shared.jobs.summary();
        let devices = shared.fleet.devices().into_iter().map(|status| DeviceView {
            device: assemble::device_report(&status.info),
            state: match status.state {
                DeviceState::Starting => "starting".to_owned(),
                DeviceState::Ready if status.busy => "busy".to_owned(),
                DeviceState::Ready => "ready".to_owned(),
                DeviceState::Failed { reason } => format!("failed: {reason}"),
            },
            jobs_done: status.jobs_done,
            restarts: status.restarts,
        });
        ServiceStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: shared.started.elapsed().as_secs_f64(),
            devices: devices.collect(),
            queue_depth: shared.fleet.waiting(),
            queue_capacity: shared.config.devices.queue_capacity,
            jobs_by_state,
            average_job_age_s,
            compilers: compilers(shared.compiler.toolchain()),
            compile_sandbox: shared.compiler.sandbox().to_string(),
        }
    }

    fn tooling(&self, refresh: bool) -> BoxFuture<'_, Tooling> {
        self.shared.tooling(refresh).boxed()
    }

    fn shutdown(&self, grace: Duration) -> BoxFuture<'_, ()> {
        async move {
            self.shared.closing.store(true, Ordering::Release);
            self.shared.fleet.shutdown(grace).await;
        }
        .boxed()
    }
}

fn not_yet(what: &str) -> ServiceError {
    ServiceError::Unavailable(format!("{what} is not to be had from this service"))
}

/// This program: children are started from it.
pub fn program() -> Result<PathBuf, ServiceError> {
    std::env::current_exe().map_err(|error| {
        ServiceError::Unavailable(format!("cannot find the path of this program: {error}"))
    })
}

/// Where compilers are looked for.
pub fn toolchain_search(config: &Config) -> ToolchainSearch {
    let explicit = Some(config.compile.toolchain.as_str()).filter(|path| !path.is_empty());
    ToolchainSearch {
        explicit: explicit.map(PathBuf::from),
        cache_dir: config.data_dir().to_owned(),
    }
}

/// The compilers found, a line each.
fn compilers(toolchain: &Toolchain) -> Vec<String> {
    let nvrtc = toolchain.nvrtc.iter().map(|found| {
        format!("nvrtc {} ({}, {})", found.version_text(), found.source, found.path.display())
    });
    let nvcc = toolchain.nvcc.iter().map(|found| {
        format!("nvcc {} ({}, {})", found.version, found.source, found.path.display())
    });
    nvrtc.chain(nvcc).collect()
}

/// What finds and runs NVIDIA's tools.
fn start_tools(config: &Config, run_dir: &Path) -> Result<Tools, ServiceError> {
    let directory = run_dir.join("tools");
    std::fs::create_dir(&directory).map_err(|error| {
        ServiceError::Unavailable(format!("cannot create {}: {error}", directory.display()))
    })?;
    Ok(Tools::new(ToolSearch::new(&config.tools.path, directory)))
}

/// A directory that only this process uses and that goes with it.
fn private_run_dir(data_dir: &Path) -> Result<tempfile::TempDir, ServiceError> {
    let parent = data_dir.join("run");
    std::fs::create_dir_all(&parent)
        .and_then(|()| tempfile::Builder::new().prefix("wg-").tempdir_in(&parent))
        .map_err(|error| {
            ServiceError::Unavailable(format!(
                "cannot create a run directory in {}: {error}; set storage.data_dir \
                 (WARPGAUGE_DATA_DIR) to a directory that can be written",
                parent.display()
            ))
        })
}

fn start_compiler(
    config: &Config,
    data_dir: &Path,
    run_dir: &Path,
    program: &Path,
) -> Result<Arc<Compiler>, ServiceError> {
    let toolchain = toolchain::discover(&toolchain_search(config));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let parallelism = match config.compile.parallelism {
        0 => cores,
        given => given,
    };
    Compiler::new(CompilerConfig {
        program: program.to_owned(),
        cache_dir: data_dir.join("cubins"),
        cache_max_bytes: config.compile.cache_max_bytes,
        run_dir: run_dir.to_owned(),
        parallelism,
        timeout: Duration::from_secs_f64(config.compile.timeout_s),
        toolchain,
    })
    .map(Arc::new)
    .map_err(|error| ServiceError::Unavailable(error::chain(&error)))
}

async fn start_fleet(
    config: &Config,
    run_dir: &Path,
    program: &Path,
    compiler: &Arc<Compiler>,
) -> Result<Arc<Fleet>, ServiceError> {
    let devices = match config.device_selection() {
        DeviceSelection::Auto => DeviceChoice::Auto,
        DeviceSelection::Emulator => DeviceChoice::Emulator,
        DeviceSelection::Ordinals(ordinals) => DeviceChoice::Ordinals(ordinals),
    };
    let emulator = Some(&config.devices.emulator).filter(|path| !path.is_empty());
    let fleet = FleetConfig {
        program: program.to_owned(),
        devices,
        emulator: emulator.map(PathBuf::from),
        cupti: compiler.toolchain().cupti.clone(),
        run_dir: run_dir.to_owned(),
        hot_spare: config.devices.hot_spare,
        queue_capacity: config.devices.queue_capacity,
        start_timeout: Duration::from_secs(60),
    };
    Fleet::start(fleet, compile_only::support_source(compiler))
        .await
        .map_err(|error| ServiceError::Unavailable(error::chain(&error)))
}
