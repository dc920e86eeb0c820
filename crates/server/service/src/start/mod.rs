//! Starts the service and shuts it down. The main type is [`LocalService`].

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::admission::Admission;
use super::artifacts::Artifacts;
use super::compile::Compiler;
use super::error::{ServiceError, refused};
use super::functions::Functions;
use super::gate::Gate;
use super::imports::Imports;
use super::inputs::NamedInputs;
use super::jobs::{Jobs, LiveJobs, Needs};
use super::machine::Machine;
use super::matrices::Matrices;
use super::readiness::Readiness;
use super::run_dir::RunDir;
use super::services::Services;
use super::settings::{ProcessRole, limits, store_config};
use super::suites::Suites;
use super::tensors::{PrepareHolders, SharedTensors};
use crate::webhook::{WebhookDelivery, WebhookPolicy};
use warpgauge_config::Config;
use warpgauge_executor::Executor;
use warpgauge_store::Store;

/// The service on this machine, with its store and an executor.
pub struct LocalService {
    services: Services,
    jobs: Jobs,
    admission: Arc<Admission>,
    executor: Arc<dyn Executor>,
    tensors: Arc<SharedTensors>,
    store: Store,
    /// Delivers webhooks. Dropping it stops the deliveries.
    _delivery: Option<WebhookDelivery>,
    /// Directory that the executor uses. It is dropped after the executor.
    _run_dir: Arc<RunDir>,
}

/// Storage of a service: its store, and a private directory of this process.
pub struct Storage {
    store: Store,
    run_dir: RunDir,
}

impl Storage {
    /// Opens the store and creates the directory.
    ///
    /// # Errors
    /// A failure of the store or the data directory, with a remedy.
    pub async fn open(config: &Config) -> Result<Self, ServiceError> {
        let store = Store::open(&store_config(config)).await.map_err(refused)?;
        Ok(Self { store, run_dir: private_run_dir(config.data_dir())? })
    }

    /// Returns the private directory of this process, which is deleted with the service.
    pub fn run_dir(&self) -> &Path {
        self.run_dir.path()
    }
}

impl LocalService {
    /// Recovers the jobs in the store, and starts accepting new ones.
    ///
    /// # Errors
    /// Describes a missing resource of this machine, with a remedy.
    pub async fn start(
        config: &Config,
        role: ProcessRole,
        storage: Storage,
        executor: Arc<dyn Executor>,
        prepare_holders: PrepareHolders,
    ) -> Result<Self, ServiceError> {
        let Storage { store, run_dir } = storage;
        let executor_of = || Arc::clone(&executor);
        let capacity = config.devices.queue_capacity + executor.offer().devices.len();
        let admission = Arc::new(Admission::new(capacity, config.server.has_several_keys()));
        let readiness = Readiness::new(store.clone(), executor_of(), Arc::clone(&admission), role);
        let tensors = SharedTensors::new(config, role, executor_of(), &run_dir, prepare_holders)?;
        let (tensors, matrices) =
            (Arc::new(tensors), Arc::new(Matrices::new(store.clone(), config)));
        let inputs = NamedInputs::new(
            Arc::clone(&matrices),
            Arc::clone(&tensors),
            config.limits.max_decoded_bytes,
        );
        let suites = Suites::new(store.clone(), executor_of(), limits(config));
        let live = Arc::<LiveJobs>::default();
        let run_dir = Arc::new(run_dir);
        let needs = Needs {
            store: store.clone(),
            executor: executor_of(),
            admission: Arc::clone(&admission),
            readiness: Arc::clone(&readiness),
            inputs: Arc::clone(&inputs),
            suites: Arc::clone(&suites),
            tensors: Arc::clone(&tensors),
            role,
            run_dir: Arc::clone(&run_dir),
        };
        let jobs = Jobs::start(&needs, config, Arc::clone(&live)).await;
        let running = Arc::clone(&live);
        let services = Services {
            evaluations: jobs.intake.clone(),
            jobs: jobs.records.clone(),
            artifacts: Arc::new(Artifacts::new(
                store.clone(),
                running,
                executor_of(),
                Arc::clone(&readiness),
            )),
            compiler: Arc::new(Compiler::new(
                executor_of(),
                Arc::clone(&admission),
                Arc::clone(&inputs),
            )),
            gate: Arc::new(Gate::new(Arc::clone(&jobs.intake), suites, inputs, store.clone())),
            imports: Arc::new(Imports::new(config, run_dir)),
            matrices,
            tensors: tensors.clone(),
            functions: Arc::new(Functions::new(executor_of(), Arc::clone(&admission))),
            machine: Arc::new(Machine::new(config, store.clone(), executor_of(), live, readiness)),
        };
        let delivery = (role == ProcessRole::Server).then(|| {
            let policy =
                WebhookPolicy::new(&config.server.webhook_hosts, &config.server.webhook_secret);
            let policy = policy.linking_to(&config.server.public_url);
            WebhookDelivery::start(store.clone(), policy)
        });
        let _run_dir = needs.run_dir;
        Ok(Self {
            services,
            jobs,
            admission,
            executor,
            tensors,
            store,
            _delivery: delivery,
            _run_dir,
        })
    }

    /// Returns the parts of the service.
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Stops claiming jobs from the store. Called before a shutdown.
    pub fn drain(&self) {
        self.jobs.drain();
    }

    /// Rejects new work, lets running work continue for `grace`, and then stops it. Jobs for which
    /// no caller waits stay in the store for the next start.
    pub async fn shutdown(&self, grace: Duration) {
        self.admission.close();
        self.jobs.drained().await;
        self.executor.shutdown(grace).await;
        self.tensors.end().await;
        self.jobs.ended().await;
        self.store.close().await;
    }
}

/// Creates a private directory for this process.
fn private_run_dir(data_dir: &Path) -> Result<RunDir, ServiceError> {
    RunDir::enter(&data_dir.join("run")).map_err(|error| {
        ServiceError::unavailable(format!(
            "cannot create a run directory in {}: {error}; set storage.data_dir \
             (WARPGAUGE_DATA_DIR) to a writable directory",
            data_dir.join("run").display()
        ))
    })
}
