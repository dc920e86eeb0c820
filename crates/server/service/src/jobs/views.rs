//! Answers queries about jobs. The main type is [`JobRecords`].

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;

use super::live::{LiveJobs, Stop};
use super::outcome;
use super::service::JobService;
use super::watcher;
use crate::error::{self, ServiceError, refused};
use crate::readiness::Readiness;
use crate::records::{self, visibility};
use crate::submission::{Caller, CleanupPolicy, JobEvents, JobQuery, ServiceFuture};
use warpgauge_executor::JobOutcome;
use warpgauge_gate::SuiteVerdict;
use warpgauge_job_views::{
    CancelOutcome, CancelReport, CleanupReport, JobList, JobSummary, JobView,
};
use warpgauge_model::{JobKind, JobStage, JobState};
use warpgauge_report::{KernelVerdict, ResponseStatus, SweepView};
use warpgauge_store::{CancelResult, JobFilter, JobRow, Page, Retention, Store};
use warpgauge_telemetry::EndState;

/// Maximum time for which a cancellation waits until the job stops.
const STOPPING: Duration = Duration::from_secs(2);

/// Jobs in the store, and the live state of jobs that run in this process.
pub(crate) struct JobRecords {
    store: Store,
    live: Arc<LiveJobs>,
    readiness: Arc<Readiness>,
}

impl JobService for JobRecords {
    fn job<'a>(&'a self, job_id: &'a str, caller: &'a Caller) -> ServiceFuture<'a, JobView> {
        self.readiness.with_database(self.view(job_id, caller))
    }

    fn jobs<'a>(&'a self, query: JobQuery, caller: &'a Caller) -> ServiceFuture<'a, JobList> {
        self.readiness.with_database(self.list(query, caller))
    }

    fn cancel<'a>(
        &'a self,
        job_id: &'a str,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, CancelReport> {
        async move {
            self.readiness.database_works().await?;
            self.cancel_job(job_id, caller).await
        }
        .boxed()
    }

    fn watch<'a>(&'a self, job_id: &'a str, caller: &'a Caller) -> ServiceFuture<'a, JobEvents> {
        self.readiness.with_database(self.watch_job(job_id, caller))
    }

    fn cleanup<'a>(
        &'a self,
        policy: CleanupPolicy,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, CleanupReport> {
        self.clean_up(policy, caller).boxed()
    }
}

impl JobRecords {
    /// Creates records that read the jobs in this store and in this table.
    pub(super) fn new(store: Store, live: Arc<LiveJobs>, readiness: Arc<Readiness>) -> Arc<Self> {
        Arc::new(Self { store, live, readiness })
    }

    /// Returns the events of a job until its end.
    ///
    /// # Errors
    /// [`ServiceError::NoSuchJob`] if there is no such job.
    pub(super) async fn watch_job(
        &self,
        id: &str,
        caller: &Caller,
    ) -> Result<JobEvents, ServiceError> {
        let row = self.row(id, caller).await?;
        Ok(watcher::events(self.store.clone(), Arc::clone(&self.live), id, caller, row))
    }

    /// Returns the row of a job that the caller may see.
    async fn row(&self, id: &str, caller: &Caller) -> Result<JobRow, ServiceError> {
        records::row(&self.store, id, caller).await
    }

    async fn view(&self, id: &str, caller: &Caller) -> Result<JobView, ServiceError> {
        // The table is read first, because a job leaves it only after its end is in the store.
        let live = self.live.get(id);
        let row = self.row(id, caller).await?;
        let mut view = from_row(&row);
        if row.state.is_end() {
            self.add_report(&mut view, &row).await?;
        } else if let Some(live) = live {
            let now = live.now();
            if !now.state.is_end() {
                view.state = now.state;
            }
            view.trials_done = now.trials_done;
            let points = now.points.filter(|_| view.kind == JobKind::Sweep);
            view.sweep = points.map(|points| SweepView {
                points,
                points_done: now.points_done.unwrap_or(0),
                result: None,
            });
        }
        Ok(view)
    }

    async fn add_report(&self, view: &mut JobView, row: &JobRow) -> Result<(), ServiceError> {
        view.status = Some(ResponseStatus::Error);
        let Some(stored) = self.store.jobs().report(&row.id).await.map_err(refused)? else {
            return Ok(());
        };
        let outcome = records::restore(view.kind, &stored)
            .map_err(|error| error::internal("reading a stored report", &error))?;
        view.verdict = outcome.verdict();
        view.result = outcome.evaluation();
        let trials = view.result.as_ref().and_then(|result| {
            result.kernel_exec_result.runtime_stats.as_ref().map(|stats| stats.samples)
        });
        view.trials_done = trials.unwrap_or(0);
        match outcome {
            JobOutcome::Evaluated(report) => view.status = Some(report.status),
            JobOutcome::Compared(report) => {
                view.status = Some(report.status);
                view.comparison = Some(*report);
            }
            JobOutcome::Swept(report) => {
                view.status = Some(report.status);
                view.sweep = Some(records::sweep_view(*report));
            }
            JobOutcome::Gated(report) => {
                view.status = Some(ResponseStatus::Success);
                view.gate = Some(report);
            }
        }
        Ok(())
    }

    /// Returns the outcome of a job that has ended.
    pub(super) async fn outcome_of(
        &self,
        id: &str,
        caller: &Caller,
    ) -> Result<JobOutcome, ServiceError> {
        records::outcome(&self.store, self.row(id, caller).await?).await
    }

    async fn list(&self, query: JobQuery, caller: &Caller) -> Result<JobList, ServiceError> {
        let filter = JobFilter {
            // Different owners may use the same key.
            owner: (!caller.admin || query.idempotency_key.is_some())
                .then_some(caller.owner.as_str()),
            states: query.states,
            kind: query.kind,
            verdict: query.verdict.map(KernelVerdict::name),
            decision: query.decision.map(SuiteVerdict::name),
            label: query.label.as_deref(),
            idempotency_key: query.idempotency_key.as_deref(),
        };
        // Ids sort by age: a job that was accepted before a time has a lower id than any job
        // accepted from that time on.
        let bound = query.created_before.map(first_id_of);
        let after = match (query.cursor, bound) {
            (Some(cursor), Some(bound)) => Some(cursor.min(bound)),
            (cursor, bound) => cursor.or(bound),
        };
        let page = Page { after, limit: query.limit as usize };
        let mut found = self.store.jobs().list(&filter, &page).await.map_err(refused)?;
        if let Some(since) = query.created_after {
            let old = found.jobs.iter().position(|row| epoch_seconds(row.created_at) < since);
            if let Some(old) = old {
                found.jobs.truncate(old);
                found.next = None;
            }
        }
        let summary = |row: JobRow| {
            let live = self.live.get(&row.id).map(|live| live.now().state);
            let live = live.filter(|state| !state.is_end() && !row.state.is_end());
            JobSummary { state: live.unwrap_or(row.state), ..summary(row) }
        };
        let jobs = found.jobs.into_iter().map(summary).collect();
        Ok(JobList { jobs, next_cursor: found.next })
    }

    async fn cancel_job(&self, id: &str, caller: &Caller) -> Result<CancelReport, ServiceError> {
        let (outcome, state) =
            match self.store.queue().cancel(id, visibility(caller)).await.map_err(refused)? {
                CancelResult::Cancelled => {
                    // The job never began, so no task counts its end.
                    let age = self.row(id, caller).await?.created_at.elapsed();
                    let age = age.unwrap_or_default();
                    outcome::ended_without_task(id, EndState::Cancelled, age);
                    (CancelOutcome::Cancelled, JobState::Cancelled)
                }
                CancelResult::Ended(state) => (CancelOutcome::Ended, state),
                CancelResult::NotFound => return Err(ServiceError::NoSuchJob(id.to_owned())),
                CancelResult::Asked => (CancelOutcome::Stopping, self.stop_here(id, caller).await?),
            };
        Ok(CancelReport { job_id: id.to_owned(), outcome, state })
    }

    /// Stops a job if it runs in this process. If it runs in another process, that process stops it
    /// at its next heartbeat.
    async fn stop_here(&self, id: &str, caller: &Caller) -> Result<JobState, ServiceError> {
        if let Some(job) = self.live.get(id) {
            let mut news = job.subscribe();
            job.stop(Stop::Cancelled);
            let ended = news.wait_for(|news| news.stage == JobStage::Ended);
            // A stop usually takes milliseconds. If it takes longer, the returned state is still
            // the running one.
            let _ = tokio::time::timeout(STOPPING, ended).await;
        }
        Ok(self.row(id, caller).await?.state)
    }

    async fn clean_up(
        &self,
        policy: CleanupPolicy,
        caller: &Caller,
    ) -> Result<CleanupReport, ServiceError> {
        if !caller.admin {
            let why = "only an administrator's key (server.admin_keys) may remove jobs";
            return Err(ServiceError::Forbidden(why.to_owned()));
        }
        // In the store, 0 means no limit. For callers, it means that nothing is kept.
        let nothing = policy.keep == Some(0) || policy.max_bytes == Some(0);
        let policy = Retention {
            max_age: if nothing { Some(Duration::ZERO) } else { policy.older_than },
            max_jobs: policy.keep.unwrap_or(0),
            max_bytes: policy.max_bytes.unwrap_or(0),
            ..Retention::default()
        };
        let cleaned = self.store.cleaner().clean_up(&policy).await.map_err(refused)?;
        Ok(CleanupReport { jobs: cleaned.jobs, bytes: cleaned.bytes })
    }
}

fn from_row(row: &JobRow) -> JobView {
    JobView {
        job_id: row.id.clone(),
        kind: row.kind,
        state: row.state,
        status: None,
        verdict: None,
        created_at: epoch_seconds(row.created_at),
        finished_at: row.ended_at.map(epoch_seconds),
        trials_done: 0,
        attempt: row.attempts.into(),
        label: row.label.clone(),
        error: row.error.clone(),
        code: row.error_code.clone(),
        result: None,
        comparison: None,
        sweep: None,
        gate: None,
    }
}

pub(super) fn summary(row: JobRow) -> JobSummary {
    JobSummary {
        job_id: row.id,
        kind: row.kind,
        state: row.state,
        verdict: row.verdict.as_deref().and_then(KernelVerdict::named),
        decision: row.decision.as_deref().and_then(SuiteVerdict::named),
        worst_case: row.worst_case.and_then(|text| serde_json::from_str(&text).ok()),
        kernel: row.kernel,
        median_ms: row.median_ns.map(|ns| ns as f64 / 1e6),
        label: row.label,
        idempotency_key: row.idempotency_key,
        priority: row.priority,
        attempt: row.attempts.into(),
        created_at: epoch_seconds(row.created_at),
        started_at: row.started_at.map(epoch_seconds),
        finished_at: row.ended_at.map(epoch_seconds),
        error: row.error,
        code: row.error_code,
    }
}

/// Returns the lowest possible id of a job that was accepted at this time (seconds since the Unix
/// epoch) or later.
fn first_id_of(time: f64) -> String {
    let milliseconds = (time * 1e3).clamp(0.0, ((1_u64 << 48) - 1) as f64) as u128;
    uuid::Uuid::from_u128(milliseconds << 80 | 7 << 76 | 2 << 62).to_string()
}

fn epoch_seconds(time: SystemTime) -> f64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_store::NewJob;

    #[test]
    fn ids_are_told_apart_by_their_time() {
        let now = epoch_seconds(SystemTime::now());
        let id = NewJob::new("", warpgauge_model::JobKind::Evaluate, Vec::new()).id;
        assert!(first_id_of(now - 1.0) < id && id < first_id_of(now + 60.0));
        assert!(first_id_of(-5.0) <= first_id_of(0.0));
        assert!(uuid::Uuid::parse_str(&first_id_of(f64::MAX)).is_ok());
    }
}
