//! Jobs: their requests, their owners and their outcomes.
//!
//! The store contains every job, from its acceptance to its report. A job that this process runs is
//! also in the table of `live`, with its progress and its watchers. `accept` accepts requests, and
//! runs those whose callers wait. `dispatch` claims the jobs that wait in the store. `carry_out`
//! runs both kinds of jobs to their end. `views` answers queries, from the live table if its state
//! is newer than the store's. `watcher` follows a job for callers that want its events.
//!
//! - A job ends in the store before its caller receives the outcome. Only the holder of its lease
//!   can write that end. So the caller's outcome is the stored one, and no job ends twice.
//! - A separate task (`upkeep`) writes intermediate stages a little later, so that other processes
//!   see them. It skips short stages.

mod accept;
mod accepted;
mod carry_out;
mod dispatch;
mod live;
mod outcome;
mod requirements;
mod service;
mod stored;
mod upkeep;
mod views;
mod watcher;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

pub(super) use accept::Intake;
use carry_out::Runner;
use dispatch::Dispatcher;
pub(super) use live::LiveJobs;
use requirements::Placements;
pub use service::{EvaluationService, JobService};
pub use stored::stored_jobs;
use upkeep::Upkeep;
pub(super) use views::JobRecords;

use super::admission::Admission;
use super::inputs::NamedInputs;
use super::readiness::Readiness;
use super::run_dir::RunDir;
use super::settings::ProcessRole;
use super::suites::Suites;
use super::tensors::SharedTensors;
use warpgauge_config::Config;
use warpgauge_executor::Executor;
use warpgauge_store::Store;

/// Maximum time to wait until the ends of all jobs are written, after all work has stopped.
const LAST_WRITES: Duration = Duration::from_secs(10);

/// Other parts of the service that the jobs use.
#[derive(Clone)]
pub(super) struct Needs {
    pub(super) store: Store,
    pub(super) executor: Arc<dyn Executor>,
    pub(super) admission: Arc<Admission>,
    pub(super) readiness: Arc<Readiness>,
    pub(super) inputs: Arc<NamedInputs>,
    pub(super) suites: Arc<Suites>,
    pub(super) tensors: Arc<SharedTensors>,
    pub(super) role: ProcessRole,
    pub(super) run_dir: Arc<RunDir>,
}

/// Jobs of this process, from their acceptance to their end.
pub(super) struct Jobs {
    pub(super) intake: Arc<Intake>,
    /// Answers queries about jobs.
    pub(super) records: Arc<JobRecords>,
    live: Arc<LiveJobs>,
    dispatcher: Option<Dispatcher>,
    _upkeep: Arc<Upkeep>,
    upkeep_task: JoinHandle<()>,
}

impl Jobs {
    /// Recovers the jobs of the store, and starts accepting new ones.
    pub(super) async fn start(needs: &Needs, config: &Config, live: Arc<LiveJobs>) -> Self {
        let placements = Placements::new(needs.store.clone(), Arc::clone(&needs.executor));
        let (table, readiness) = (Arc::clone(&live), Arc::clone(&needs.readiness));
        let records = JobRecords::new(needs.store.clone(), table, readiness);
        let runner = Runner::new(needs, Arc::clone(&live), Arc::clone(&placements));
        let upkeep = Upkeep::new(needs, config, Arc::clone(&live), Arc::clone(&placements));
        upkeep.recover().await;
        let upkeep_task = tokio::spawn(upkeep::keep(Arc::downgrade(&upkeep)));
        let dispatcher = (needs.role == ProcessRole::Server)
            .then(|| Dispatcher::start(needs, &runner, config.server.has_several_keys()));
        let intake = Intake::new(needs, config, runner, Arc::clone(&records), placements);
        Self { intake, records, live, dispatcher, _upkeep: upkeep, upkeep_task }
    }

    /// Stops claiming jobs that wait in the store.
    pub(super) fn drain(&self) {
        if let Some(dispatcher) = &self.dispatcher {
            dispatcher.stop();
        }
    }

    /// Stops claiming jobs, and waits until no claim is in progress.
    pub(super) async fn drained(&self) {
        if let Some(dispatcher) = &self.dispatcher {
            dispatcher.stopped().await;
        }
    }

    /// Waits until the ends of all jobs are written, so that other processes need not recover them.
    /// Then ends the upkeep.
    pub(super) async fn ended(&self) {
        if tokio::time::timeout(LAST_WRITES, self.live.drained()).await.is_err() {
            tracing::warn!("some jobs have not ended; they are run again after the next start");
        }
        self.upkeep_task.abort();
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.upkeep_task.abort();
    }
}
