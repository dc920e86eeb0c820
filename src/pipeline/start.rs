//! Bringing the service up and down.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::task::JoinHandle;

use super::artifacts::{ArtifactContent, ArtifactKind, ArtifactList};
use super::error::{self, ServiceError};
use super::jobs::{self, Dispatcher};
use super::linted::LintedContracts;
use super::readiness::{self, Readiness, Unready};
use super::room::Room;
use super::run::Shared;
use super::run_dir::RunDir;
use super::service::{CompileRequest, DeviceView, EvaluationService, ServiceStatus};
use super::submission::{
    Answer, Caller, CleanupPolicy, JobEvents, JobQuery, JobRequest, Submission, SubmittedJob,
};
use super::{SweepEvents, assemble, compile_only};
use crate::compile::toolchain::{self, Toolchain, ToolchainSearch};
use crate::compile::{Compiler, CompilerConfig};
use crate::config::{Config, DeviceSelection};
use crate::contract::{CompareRequest, EvaluateRequest, Limits, SweepRequest};
use crate::report::{
    CancelReport, CleanupReport, CompareResponse, CompileResponse, EvaluateResponse, JobList,
    JobView, ProfilePlan, ServiceStatistics, SweepResponse, Tooling,
};
use crate::store::{Durability, Quotas, Store, StoreConfig};
use crate::telemetry::telemetry;
use crate::tools::{ToolSearch, Tools};
use crate::webhook::{Courier, Policy};
use crate::worker::{DeviceChoice, DeviceState, Fleet, FleetConfig};

/// What a process is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It serves others: takes on jobs that wait in the store, also those of processes that are gone.
    Server,
    /// It does what one command asks for, and nothing else.
    Command,
}

/// The service: compilers, devices, and the jobs between them.
pub struct Pipeline {
    pub(super) shared: Arc<Shared>,
    dispatcher: Option<Dispatcher>,
    upkeep: JoinHandle<()>,
    /// Delivers webhooks for as long as it is there.
    _courier: Option<Courier>,
}

/// Longest time for jobs to be written to their end, once nothing runs any more.
const LAST_WRITES: Duration = Duration::from_secs(10);

impl Pipeline {
    /// Opens the store, finds the toolchain, starts a worker per device, and makes ready for jobs.
    ///
    /// # Errors
    /// What is missing on this machine, and what to do about it.
    pub async fn start(config: &Config, role: Role) -> Result<Arc<Self>, ServiceError> {
        let data_dir = config.data_dir();
        let store = Store::open(&store_config(config)).await.map_err(jobs::refused)?;
        let run_dir = private_run_dir(data_dir)?;
        let program = program()?;
        let compiler = start_compiler(config, data_dir, run_dir.path(), &program)?;
        let fleet = start_fleet(config, run_dir.path(), &program, &compiler).await?;
        let capacity = config.devices.queue_capacity + fleet.devices().len();
        let limits = Limits {
            max_tensor_bytes: config.limits.max_tensor_bytes,
            max_total_bytes: config.limits.max_total_bytes,
            max_output_bytes: config.limits.max_output_bytes,
            max_decoded_bytes: config.limits.max_decoded_bytes,
            max_sweep_points: config.limits.max_sweep_points,
            ..Limits::default()
        };
        let tools = start_tools(config, run_dir.path())?;
        let shared = Arc::new(Shared {
            config: config.clone(),
            tools,
            limits,
            compiler,
            fleet,
            store,
            jobs: Arc::default(),
            role,
            linted: LintedContracts::default(),
            admission: Arc::new(tokio::sync::Semaphore::new(capacity)),
            admitted_at_most: capacity,
            run_dir,
            started: Instant::now(),
            closing: AtomicBool::new(false),
            readiness: Readiness::default(),
            room: Room::new(config.limits.max_decoded_bytes),
        });
        shared.recover().await;
        let upkeep = tokio::spawn(jobs::keep_up(Arc::downgrade(&shared)));
        let dispatcher = (role == Role::Server).then(|| Dispatcher::start(&shared));
        let courier = (role == Role::Server)
            .then(|| Courier::start(shared.store.clone(), Policy::new(&config.server)));
        Ok(Arc::new(Self { shared, dispatcher, upkeep, _courier: courier }))
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.upkeep.abort();
    }
}

impl EvaluationService for Pipeline {
    fn evaluate(
        &self,
        request: EvaluateRequest,
        submission: Submission,
    ) -> Answer<'_, EvaluateResponse> {
        let request = JobRequest::Evaluate(Box::new(request));
        async move { self.shared.waited(request, submission, None).await?.evaluated() }.boxed()
    }

    fn compare(
        &self,
        request: CompareRequest,
        submission: Submission,
    ) -> Answer<'_, CompareResponse> {
        let request = JobRequest::Compare(Box::new(request));
        async move { self.shared.waited(request, submission, None).await?.compared() }.boxed()
    }

    fn execute(
        &self,
        request: EvaluateRequest,
        submission: Submission,
    ) -> Answer<'_, EvaluateResponse> {
        let request = JobRequest::Execute(Box::new(request));
        async move { self.shared.waited(request, submission, None).await?.evaluated() }.boxed()
    }

    fn profile_plan(&self, request: EvaluateRequest) -> Answer<'_, ProfilePlan> {
        async move { self.shared.profile_plan(&request).await }.boxed()
    }

    fn submit(&self, request: JobRequest, submission: Submission) -> Answer<'_, SubmittedJob> {
        async move {
            let accepted = self.shared.submit_jobs(vec![(request, submission)], false).await?;
            accepted.into_iter().next().ok_or(ServiceError::ShuttingDown)
        }
        .boxed()
    }

    fn submit_all(&self, jobs: Vec<(JobRequest, Submission)>) -> Answer<'_, Vec<SubmittedJob>> {
        self.shared.submit_jobs(jobs, true).boxed()
    }

    fn sweep(
        &self,
        request: SweepRequest,
        submission: Submission,
        events: SweepEvents,
    ) -> Answer<'_, SweepResponse> {
        let request = JobRequest::Sweep(Box::new(request));
        async move { self.shared.waited(request, submission, Some(events)).await?.swept() }.boxed()
    }

    fn compile(&self, request: CompileRequest) -> Answer<'_, CompileResponse> {
        compile_only::run(&self.shared, request).boxed()
    }

    fn job<'a>(&'a self, job_id: &'a str, caller: &'a Caller) -> Answer<'a, JobView> {
        self.shared.view(job_id, caller).boxed()
    }

    fn jobs<'a>(&'a self, query: JobQuery, caller: &'a Caller) -> Answer<'a, JobList> {
        self.shared.list(query, caller).boxed()
    }

    fn cancel<'a>(&'a self, job_id: &'a str, caller: &'a Caller) -> Answer<'a, CancelReport> {
        self.shared.cancel_job(job_id, caller).boxed()
    }

    fn watch<'a>(&'a self, job_id: &'a str, caller: &'a Caller) -> Answer<'a, JobEvents> {
        self.shared.watch_job(job_id, caller).boxed()
    }

    fn statistics<'a>(&'a self, caller: &'a Caller) -> Answer<'a, ServiceStatistics> {
        self.shared.statistics_for(caller).boxed()
    }

    fn cleanup<'a>(
        &'a self,
        policy: CleanupPolicy,
        caller: &'a Caller,
    ) -> Answer<'a, CleanupReport> {
        self.shared.clean_up(policy, caller).boxed()
    }

    fn artifacts<'a>(&'a self, job_id: &'a str, caller: &'a Caller) -> Answer<'a, ArtifactList> {
        self.shared.artifacts(job_id, caller).boxed()
    }

    fn artifact<'a>(
        &'a self,
        job_id: &'a str,
        kind: ArtifactKind,
        kernel: Option<&'a str>,
        caller: &'a Caller,
    ) -> Answer<'a, ArtifactContent> {
        self.shared.artifact(job_id, kind, kernel, caller).boxed()
    }

    fn status(&self) -> ServiceStatus {
        let shared = &self.shared;
        let (mut jobs_by_state, average_job_age_s) = shared.jobs.summary();
        for (state, count) in telemetry().endings() {
            *jobs_by_state.entry(state.to_owned()).or_insert(0) += count;
        }
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

    fn readiness(&self) -> BoxFuture<'_, Vec<Unready>> {
        readiness::look(&self.shared).boxed()
    }

    fn tooling(&self, refresh: bool) -> BoxFuture<'_, Tooling> {
        self.shared.tooling(refresh).boxed()
    }

    fn drain(&self) {
        if let Some(dispatcher) = &self.dispatcher {
            dispatcher.stop();
        }
    }

    fn shutdown(&self, grace: Duration) -> BoxFuture<'_, ()> {
        async move {
            let shared = &self.shared;
            shared.closing.store(true, Ordering::Release);
            if let Some(dispatcher) = &self.dispatcher {
                dispatcher.stopped().await;
            }
            shared.fleet.shutdown(grace).await;
            // What was stopped is written down, so that others need not find out.
            if tokio::time::timeout(LAST_WRITES, shared.jobs.drained()).await.is_err() {
                tracing::warn!("jobs are left unended; they are run again after the next start");
            }
            self.upkeep.abort();
            shared.store.close().await;
        }
        .boxed()
    }
}

/// Where the store is, by the configuration.
pub(super) fn store_config(config: &Config) -> StoreConfig {
    let limits = &config.limits;
    let storage = &config.storage;
    StoreConfig {
        url: storage.database_url.clone(),
        durability: match storage.durability.as_str() {
            "power" => Durability::Power,
            _ => Durability::Process,
        },
        quotas: Quotas {
            max_waiting: limits.max_queued_per_key,
            max_running: limits.max_running_per_key,
        },
        artifacts_max_bytes: storage.artifacts_max_bytes,
        ..StoreConfig::new(config.data_dir())
    }
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
fn private_run_dir(data_dir: &Path) -> Result<RunDir, ServiceError> {
    RunDir::enter(&data_dir.join("run")).map_err(|error| {
        ServiceError::Unavailable(format!(
            "cannot create a run directory in {}: {error}; set storage.data_dir \
             (WARPGAUGE_DATA_DIR) to a directory that can be written",
            data_dir.join("run").display()
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
