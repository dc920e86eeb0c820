//! Periodic work on the store: heartbeats, stages of jobs, recovery and retention. The main type is
//! [`Upkeep`].

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::Needs;
use super::live::{LiveJob, LiveJobs, Stop};
use super::outcome;
use super::requirements::Placements;
use crate::error::chain;
use crate::readiness::Readiness;
use crate::settings::ProcessRole;
use warpgauge_config::{Config, StorageConfig};
use warpgauge_model::JobState;
use warpgauge_store::{Retention, Store, Visibility, may_follow};
use warpgauge_telemetry::EndState;

/// Interval at which stages are written to the store. Other processes usually do not see shorter
/// stages.
const WRITE: Duration = Duration::from_millis(250);

/// Interval at which leases are renewed, and at which the process learns which jobs it must stop.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// Interval at which the process searches for jobs of dead processes.
const RECOVERY: Duration = Duration::from_secs(5);

/// Interval at which old jobs are removed.
const RETENTION: Duration = Duration::from_secs(60);

/// Writes this process's state to the store. Recovers jobs of dead processes, and removes old jobs.
pub(super) struct Upkeep {
    store: Store,
    live: Arc<LiveJobs>,
    placements: Arc<Placements>,
    readiness: Arc<Readiness>,
    role: ProcessRole,
    storage: StorageConfig,
}

/// Runs the upkeep until the service is dropped.
pub(super) async fn keep(upkeep: Weak<Upkeep>) {
    let now = Instant::now();
    let (mut beat, mut recovered, mut tidied) = (now, now, now);
    if let Some(upkeep) = upkeep.upgrade().filter(|upkeep| upkeep.role == ProcessRole::Server) {
        upkeep.placements.offer_capabilities().await;
    }
    let mut ticks = tokio::time::interval(WRITE);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(upkeep) = upkeep.upgrade() else { return };
        for job in upkeep.live.all() {
            upkeep.write_stage(&job);
        }
        if beat.elapsed() >= HEARTBEAT {
            beat = Instant::now();
            upkeep.renew_leases().await;
        }
        if upkeep.role == ProcessRole::Server && recovered.elapsed() >= RECOVERY {
            recovered = Instant::now();
            upkeep.placements.offer_capabilities().await;
            upkeep.recover().await;
        }
        if upkeep.role == ProcessRole::Server && tidied.elapsed() >= RETENTION {
            tidied = Instant::now();
            upkeep.tidy().await;
        }
    }
}

impl Upkeep {
    /// Creates the upkeep for the store and for the jobs in this table.
    pub(super) fn new(
        needs: &Needs,
        config: &Config,
        live: Arc<LiveJobs>,
        placements: Arc<Placements>,
    ) -> Arc<Self> {
        let Needs { store, readiness, role, .. } = needs.clone();
        let storage = config.storage.clone();
        Arc::new(Self { store, live, placements, readiness, role, storage })
    }

    /// Requeues jobs whose process died.
    pub(super) async fn recover(&self) {
        match self.store.membership().requeue_expired().await {
            Ok(found) => {
                for job in &found.queued {
                    tracing::warn!(job, "the job's process died; the job is queued again");
                }
                for job in &found.exhausted {
                    tracing::error!(job, "the job failed: it has used all attempts without ending");
                    self.count_end(job, EndState::Failed).await;
                }
                for job in &found.cancelled {
                    self.count_end(job, EndState::Cancelled).await;
                }
            }
            Err(error) => tracing::error!(error = chain(&error), "cannot look for lost jobs"),
        }
    }

    /// Counts the end of a job for which this process ran no task.
    async fn count_end(&self, job: &str, state: EndState) {
        let age = match self.store.jobs().find(job, Visibility::All).await {
            Ok(row) => row.and_then(|row| row.created_at.elapsed().ok()),
            Err(error) => {
                tracing::warn!(job, error = chain(&error), "cannot read the age of a job");
                None
            }
        };
        outcome::ended_without_task(job, state, age.unwrap_or_default());
    }

    /// Removes the ended jobs that exceed the retention limits.
    async fn tidy(&self) {
        let storage = &self.storage;
        let age = Duration::try_from_secs_f64(storage.keep_days * 86_400.0).ok();
        let policy = Retention {
            max_age: age.filter(|age| !age.is_zero()),
            max_jobs: storage.keep_jobs,
            max_bytes: storage.keep_bytes,
            max_points: Some(storage.keep_points).filter(|points| *points > 0),
        };
        match self.store.cleaner().clean_up(&policy).await {
            Ok(cleaned) if cleaned.jobs > 0 => {
                tracing::info!(jobs = cleaned.jobs, bytes = cleaned.bytes, "old jobs were removed");
            }
            Ok(_) => {}
            Err(error) => tracing::error!(error = chain(&error), "cannot remove old jobs"),
        }
    }

    async fn renew_leases(&self) {
        self.readiness.beats();
        let outcome = self.store.membership().heartbeat().await;
        self.readiness.beaten(&outcome);
        match outcome {
            Ok(told) => {
                let stop = |ids: Vec<String>, why| {
                    for job in ids.iter().filter_map(|id| self.live.get(id)) {
                        job.stop(why);
                    }
                };
                stop(told.cancel, Stop::Cancelled);
                stop(told.lost, Stop::Lost);
            }
            Err(error) => tracing::error!(error = chain(&error), "cannot renew leases"),
        }
    }

    /// Writes a job's stage to the store if it has changed. An intermediate stage that was too
    /// short may never have been written.
    fn write_stage(&self, job: &LiveJob) {
        let state = job.now().state;
        let lease = job.lease();
        let Some(lease) = lease.as_ref().filter(|lease| lease.state() != state) else { return };
        let steps: &[JobState] = match may_follow(lease.state(), state) {
            true => &[state],
            false => &[JobState::Queued, state],
        };
        let mut reached = lease.state();
        let is_way = steps.iter().all(|to| {
            let may = may_follow(reached, *to);
            reached = *to;
            may
        });
        if state.is_end() || !is_way {
            return;
        }
        for step in steps {
            if let Err(error) = self.store.queue().advance_behind(lease, *step) {
                tracing::warn!(job = job.id(), error = chain(&error), "cannot write a stage");
                return;
            }
        }
    }
}
