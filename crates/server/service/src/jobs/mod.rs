//! Jobs: what is to be done, by whom it was asked for, and what came of it.
//!
//! The store has every job, from its acceptance to its report. What this process carries out is
//! `live` as well: there its progress is, its watchers, and the way to stop it. `accept` enters jobs
//! that somebody waits for, `dispatch` claims those that wait in the store, `carry_out` takes both to
//! their end, `views` answers questions, from the live table where it knows more than the store, and
//! `watcher` follows a job for those who want its news.
//!
//! - A job ends in the store before its caller is answered, by a write that only the holder of its
//!   lease can make. So what was answered is what is kept, and no job ends twice.
//! - Stages on the way are written later, by one task (`upkeep`), and only those that last: they are
//!   for other processes to see.

mod accept;
mod accepted;
mod carry_out;
mod dispatch;
mod live;
mod outcome;
mod requirements;
mod service;
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

/// Longest time for jobs to be written to their end, once nothing runs any more.
const LAST_WRITES: Duration = Duration::from_secs(10);

/// What jobs need of the rest of the service.
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
    /// Takes jobs in.
    pub(super) intake: Arc<Intake>,
    /// Answers about jobs.
    pub(super) records: Arc<JobRecords>,
    live: Arc<LiveJobs>,
    dispatcher: Option<Dispatcher>,
    _upkeep: Arc<Upkeep>,
    upkeep_task: JoinHandle<()>,
}

impl Jobs {
    /// Recovers the jobs of the store, and makes ready for others.
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

    /// Begins no more of the jobs that wait in the store.
    pub(super) fn drain(&self) {
        if let Some(dispatcher) = &self.dispatcher {
            dispatcher.stop();
        }
    }

    /// Begins no more jobs, and waits until none is being claimed.
    pub(super) async fn drained(&self) {
        if let Some(dispatcher) = &self.dispatcher {
            dispatcher.stopped().await;
        }
    }

    /// Waits until the ends of all jobs are written, which others need not find out then, and ends the upkeep.
    pub(super) async fn ended(&self) {
        if tokio::time::timeout(LAST_WRITES, self.live.drained()).await.is_err() {
            tracing::warn!("jobs are left unended; they are run again after the next start");
        }
        self.upkeep_task.abort();
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.upkeep_task.abort();
    }
}
