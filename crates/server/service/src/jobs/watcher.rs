//! Follows a job's events across processes. The main type is [`Watcher`].

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures_util::StreamExt;
use futures_util::stream;

use super::live::LiveJobs;
use crate::records::visibility;
use crate::submission::{Caller, JobEvents};
use warpgauge_job_views::{JobEvent, MAX_AHEAD};
use warpgauge_model::{JobStage, JobState};
use warpgauge_store::{JobRow, Store};

/// Interval at which the store is polled for a job that does not run in this process.
const POLL: Duration = Duration::from_millis(500);

/// Returns the events of a job until its end. `row` is the most recently read row of the job.
pub(super) fn events(
    store: Store,
    jobs: Arc<LiveJobs>,
    id: &str,
    caller: &Caller,
    row: JobRow,
) -> JobEvents {
    let watcher = Watcher {
        store,
        jobs,
        caller: caller.clone(),
        id: id.to_owned(),
        last: None,
        first: Some(row),
        place: None,
    };
    let events = stream::unfold(Some(watcher), |watcher| async move {
        let mut watcher = watcher?;
        let event = watcher.next().await?;
        let over = event.state.is_end();
        Some((event, (!over).then_some(watcher)))
    });
    events.boxed()
}

/// Follows a job across processes.
struct Watcher {
    store: Store,
    jobs: Arc<LiveJobs>,
    caller: Caller,
    id: String,
    /// The last event that was returned.
    last: Option<JobEvent>,
    /// The job's row at the time when watching began.
    first: Option<JobRow>,
    /// When the job's place in the queue was read last, and the place.
    place: Option<(Instant, Option<u32>)>,
}

impl Watcher {
    /// Returns the next event, or `None` if the job can no longer be read.
    async fn next(&mut self) -> Option<JobEvent> {
        loop {
            let mut changes = self.jobs.changes();
            if let Some(job) = self.jobs.get(&self.id) {
                // The live state is newer than the row.
                self.first = None;
                let mut news = job.subscribe();
                let now = job.now();
                drop(job);
                if now.stage != JobStage::Ended {
                    if self.is_news(&now) {
                        return Some(self.told(now));
                    }
                    // An error means that the job has left the table.
                    let _ = news.changed().await;
                    continue;
                }
            }
            // The job is not in the table, or has ended, so the store contains its state.
            let row = match self.first.take() {
                Some(row) => row,
                None => self.store.jobs().find(&self.id, visibility(&self.caller)).await.ok()??,
            };
            let ahead = match row.state {
                JobState::Queued => self.place().await,
                _ => None,
            };
            let event = JobEvent { ahead, ..of_row(&row) };
            if self.is_news(&event) {
                return Some(self.told(event));
            }
            let _ = tokio::time::timeout(POLL, changes.changed()).await;
        }
    }

    /// Returns the job's place in the queue. Every change of any job wakes the watchers of all waiting
    /// jobs, so each of them counts only once in [`POLL`].
    async fn place(&mut self) -> Option<u32> {
        if let Some((_, place)) = self.place.filter(|(at, _)| at.elapsed() < POLL) {
            return place;
        }
        let place = self.store.jobs().ahead(&self.id, MAX_AHEAD).await.ok().flatten();
        self.place = Some((Instant::now(), place));
        place
    }

    fn is_news(&self, event: &JobEvent) -> bool {
        self.last.as_ref().is_none_or(|last| {
            let last = JobEvent { elapsed_s: event.elapsed_s, ..last.clone() };
            last != *event
        })
    }

    fn told(&mut self, event: JobEvent) -> JobEvent {
        self.last = Some(event.clone());
        event
    }
}

fn of_row(row: &JobRow) -> JobEvent {
    let until = row.ended_at.unwrap_or_else(SystemTime::now);
    JobEvent {
        job_id: row.id.clone(),
        state: row.state,
        stage: row.state.stage(),
        attempt: row.attempts.into(),
        trials_done: 0,
        ahead: None,
        elapsed_s: until.duration_since(row.created_at).map_or(0.0, |time| time.as_secs_f64()),
        statistics: None,
        points_done: None,
        points: None,
        error: row.error.clone(),
    }
}
