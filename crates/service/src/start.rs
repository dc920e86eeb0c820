//! Bringing the service up and down.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::task::JoinHandle;

use super::SweepEvents;
use super::artifacts::{ArtifactContent, ArtifactKind, ArtifactList};
use super::error::ServiceError;
use super::jobs::{self, Dispatcher, kinds};
use super::matrix_uploads::Uploads;
use super::named_matrices;
use super::readiness::{self, Readiness};
use super::run_dir::RunDir;
use super::service::{DeviceView, EvaluationService, ServiceStatus};
use super::shared::{self, Shared};
use super::submission::{
    Answer, Caller, CleanupPolicy, JobEvents, JobQuery, JobRequest, Submission, SubmittedJob,
};
use super::tensors::{self, Copies};
use warpgauge_config::Config;
use warpgauge_contract::{CompareRequest, CompileRequest, EvaluateRequest, Limits, SweepRequest};
use warpgauge_executor::Executor;
use warpgauge_jobs::{CancelReport, CleanupReport, JobList, JobView, ServiceStatistics, Unready};
use warpgauge_model::DeviceState;
use warpgauge_report::{
    CompareResponse, CompileResponse, EvaluateResponse, ProfilePlan, SweepResponse, Tooling,
};
use warpgauge_store::{Durability, Quotas, Store, StoreConfig};
use warpgauge_telemetry::telemetry;
use warpgauge_tensors::{HolderSettings, TensorHolders};
use warpgauge_turns::Owner;
use warpgauge_webhook::{Courier, Policy};

/// What a process is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It serves others: takes on jobs that wait in the store, also those of processes that are gone.
    Server,
    /// It does what one command asks for, and nothing else.
    Command,
}

/// The service on this machine: its store, and an executor.
pub struct LocalService {
    pub(super) shared: Arc<Shared>,
    dispatcher: Option<Dispatcher>,
    upkeep: JoinHandle<()>,
    /// Delivers webhooks for as long as it is there.
    _courier: Option<Courier>,
}

/// Longest time for jobs to be written to their end, once nothing runs any more.
const LAST_WRITES: Duration = Duration::from_secs(10);

/// What a service has on the disk: its store, and a directory of this process alone.
pub struct Storage {
    pub(super) store: Store,
    pub(super) run_dir: RunDir,
}

impl Storage {
    /// Opens the store and makes the directory.
    ///
    /// # Errors
    /// What is wrong with the store or the data directory, and what to do about it.
    pub async fn open(config: &Config) -> Result<Self, ServiceError> {
        let store = Store::open(&store_config(config)).await.map_err(jobs::refused)?;
        Ok(Self { store, run_dir: private_run_dir(config.data_dir())? })
    }

    /// The directory of this process, which goes with the service.
    pub fn run_dir(&self) -> &Path {
        self.run_dir.path()
    }
}

/// Prepares the processes that hold shared tensors, or says what the machine lacks.
pub type PrepareHolders = fn(HolderSettings) -> Result<Arc<dyn TensorHolders>, String>;

impl LocalService {
    /// Recovers the jobs of the store, and makes ready for others.
    ///
    /// # Errors
    /// What is missing on this machine, and what to do about it.
    pub async fn start(
        config: &Config,
        role: Role,
        storage: Storage,
        executor: Arc<dyn Executor>,
        prepare_holders: PrepareHolders,
    ) -> Result<Arc<Self>, ServiceError> {
        let Storage { store, run_dir } = storage;
        let devices = executor.offer().devices;
        let capacity = config.devices.queue_capacity + devices.len();
        let (settings, shared_dir) =
            tensors::holder_settings(config, role, executor.as_ref(), &run_dir)?;
        let tensors = prepare_holders(settings).map_err(ServiceError::Unavailable)?;
        let shared = Arc::new(Shared {
            tensors,
            _shared_dir: shared_dir,
            config: config.clone(),
            limits: limits(config),
            executor,
            store,
            jobs: Arc::default(),
            role,
            admission: shared::admission(capacity, config.server.has_several_keys()),
            matrix_turns: shared::turns(named_matrices::AT_ONCE, config),
            uploads: Uploads::default(),
            tensor_turns: shared::turns(tensors::AT_ONCE, config),
            device_copies: tensors::copy_room(&devices),
            started: Instant::now(),
            closing: AtomicBool::new(false),
            readiness: Readiness::default(),
            taking: Arc::default(),
            run_dir,
        });
        shared.recover().await;
        let upkeep = tokio::spawn(jobs::keep_up(Arc::downgrade(&shared)));
        let dispatcher = (role == Role::Server).then(|| Dispatcher::start(&shared));
        let courier = (role == Role::Server).then(|| {
            Courier::start(
                shared.store.clone(),
                Policy::new(&config.server.webhook_hosts, &config.server.webhook_secret),
            )
        });
        Ok(Arc::new(Self { shared, dispatcher, upkeep, _courier: courier }))
    }
}

impl LocalService {
    /// Reads what needs the database, unless that is known not to work, and for as long as it is not.
    fn with_database<'a, T: Send + 'a>(
        &'a self,
        work: impl Future<Output = Result<T, ServiceError>> + Send + 'a,
    ) -> Answer<'a, T> {
        async move {
            readiness::database_works(&self.shared).await?;
            tokio::select! {
                biased;
                done = work => done,
                failure = readiness::database_fails(&self.shared) => Err(failure),
            }
        }
        .boxed()
    }
}

impl Drop for LocalService {
    fn drop(&mut self) {
        self.upkeep.abort();
    }
}

impl EvaluationService for LocalService {
    fn evaluate(
        &self,
        request: EvaluateRequest,
        submission: Submission,
    ) -> Answer<'_, EvaluateResponse> {
        self.shared.respond::<kinds::Evaluate>(request, submission, None).boxed()
    }

    fn compare(
        &self,
        request: CompareRequest,
        submission: Submission,
    ) -> Answer<'_, CompareResponse> {
        self.shared.respond::<kinds::Compare>(request, submission, None).boxed()
    }

    fn execute(
        &self,
        request: EvaluateRequest,
        submission: Submission,
    ) -> Answer<'_, EvaluateResponse> {
        self.shared.respond::<kinds::Execute>(request, submission, None).boxed()
    }

    fn profile_plan<'a>(
        &'a self,
        request: EvaluateRequest,
        caller: &'a Caller,
    ) -> Answer<'a, ProfilePlan> {
        async move {
            let mut left = self.shared.limits.max_decoded_bytes;
            let request = self
                .shared
                .evaluation_with(request, &caller.owner, &mut left, Copies::ThroughHost)
                .await?;
            Ok(self.shared.executor.profile_plan(request).await?)
        }
        .boxed()
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
        self.shared.respond::<kinds::Sweep>(request, submission, Some(events)).boxed()
    }

    fn compile<'a>(
        &'a self,
        request: CompileRequest,
        caller: &'a Caller,
    ) -> Answer<'a, CompileResponse> {
        async move {
            let _admitted = self.shared.admit(&caller.owner)?;
            let request = self.shared.compilation_with(request, &caller.owner).await?;
            Ok(self.shared.executor.compile(request, Owner::named(&caller.owner)).await?)
        }
        .boxed()
    }

    fn job<'a>(&'a self, job_id: &'a str, caller: &'a Caller) -> Answer<'a, JobView> {
        self.with_database(self.shared.view(job_id, caller))
    }

    fn jobs<'a>(&'a self, query: JobQuery, caller: &'a Caller) -> Answer<'a, JobList> {
        self.with_database(self.shared.list(query, caller))
    }

    fn cancel<'a>(&'a self, job_id: &'a str, caller: &'a Caller) -> Answer<'a, CancelReport> {
        async move {
            readiness::database_works(&self.shared).await?;
            self.shared.cancel_job(job_id, caller).await
        }
        .boxed()
    }

    fn watch<'a>(&'a self, job_id: &'a str, caller: &'a Caller) -> Answer<'a, JobEvents> {
        self.with_database(self.shared.watch_job(job_id, caller))
    }

    fn statistics<'a>(&'a self, caller: &'a Caller) -> Answer<'a, ServiceStatistics> {
        self.with_database(self.shared.statistics_for(caller))
    }

    fn cleanup<'a>(
        &'a self,
        policy: CleanupPolicy,
        caller: &'a Caller,
    ) -> Answer<'a, CleanupReport> {
        self.shared.clean_up(policy, caller).boxed()
    }

    fn artifacts<'a>(&'a self, job_id: &'a str, caller: &'a Caller) -> Answer<'a, ArtifactList> {
        self.with_database(self.shared.artifacts(job_id, caller))
    }

    fn artifact<'a>(
        &'a self,
        job_id: &'a str,
        kind: ArtifactKind,
        kernel: Option<&'a str>,
        caller: &'a Caller,
    ) -> Answer<'a, ArtifactContent> {
        self.with_database(self.shared.artifact(job_id, kind, kernel, caller))
    }

    fn status(&self) -> ServiceStatus {
        let shared = &self.shared;
        let (mut jobs_by_state, average_job_age_s) = shared.jobs.summary();
        for (state, count) in telemetry().endings() {
            *jobs_by_state.entry(state.to_owned()).or_insert(0) += count;
        }
        let offer = shared.executor.offer();
        let devices = offer.devices.into_iter().map(|device| DeviceView {
            device: (&device.info).into(),
            state: match device.state {
                DeviceState::Ready if device.busy => "busy".to_owned(),
                state => state.to_string(),
            },
            jobs_done: device.jobs_done,
            restarts: device.restarts,
            worker_sandbox: device.worker_sandbox,
        });
        ServiceStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: shared.started.elapsed().as_secs_f64(),
            devices: devices.collect(),
            queue_depth: offer.waiting,
            queue_capacity: shared.config.devices.queue_capacity,
            jobs_by_state,
            average_job_age_s,
            compilers: offer.compilers,
            compile_sandbox: offer.compile_sandbox,
        }
    }

    fn data_dir(&self) -> Option<PathBuf> {
        let data_dir = self.shared.config.data_dir();
        Some(std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.to_owned()))
    }

    fn readiness(&self) -> BoxFuture<'_, Vec<Unready>> {
        readiness::look(&self.shared).boxed()
    }

    fn tooling(&self, refresh: bool) -> BoxFuture<'_, Tooling> {
        self.shared.executor.tooling(refresh)
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
            shared.executor.shutdown(grace).await;
            shared.tensors.end().await;
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

/// What contracts may ask for, by the configuration.
pub fn limits(config: &Config) -> Limits {
    Limits {
        max_tensor_bytes: config.limits.max_tensor_bytes,
        max_total_bytes: config.limits.max_total_bytes,
        max_output_bytes: config.limits.max_output_bytes,
        max_decoded_bytes: config.limits.max_decoded_bytes,
        max_matrix_bytes: match config.limits.max_matrix_bytes_per_key {
            0 => config.limits.max_decoded_bytes,
            // A name is as short as compressed data: it becomes no more than they may.
            bytes => bytes.min(config.limits.max_decoded_bytes),
        },
        max_sweep_points: config.limits.max_sweep_points,
        ..Limits::default()
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
