//! Jobs of this process, in memory: bounded in number and in bytes.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Mutex;
use std::time::{Instant, SystemTime};

use super::ServiceError;
use super::artifacts::{ArtifactKind, KeptKernel, Shelf};
use crate::report::{
    EvaluateResponse, JobState, JobView, ResponseStatus, SweepResponse, SweepView,
};
use crate::tools::Artifact;

/// Finished reports kept, in bytes of their outputs and samples.
const MAX_KEPT_BYTES: usize = 256 << 20;

/// Why a job has no report when the server went down.
const SHUT_DOWN: &str = "the server shut down before the job ended";

/// Every job that is running, and the latest that ended.
pub(super) struct JobTable {
    kept: usize,
    shelf: Shelf,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    jobs: HashMap<String, Record>,
    /// Ended jobs, oldest first, with their size.
    ended: VecDeque<(String, usize)>,
    ended_bytes: usize,
}

struct Record {
    state: JobState,
    created: SystemTime,
    born: Instant,
    finished: Option<SystemTime>,
    trials_done: u32,
    error: Option<String>,
    result: Option<EvaluateResponse>,
    sweep: Option<SweepView>,
}

impl JobTable {
    /// A table that keeps the latest `kept` ended jobs.
    pub(super) fn new(kept: usize, shelf: Shelf) -> Self {
        Self { kept, shelf, inner: Mutex::default() }
    }

    /// What the jobs left beside their reports.
    pub(super) fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    /// Enters a new job and returns the guard that will see it to its end.
    pub(super) fn enter(&self) -> JobGuard<'_> {
        let id = uuid::Uuid::new_v4().to_string();
        let record = Record {
            state: JobState::Submitted,
            created: SystemTime::now(),
            born: Instant::now(),
            finished: None,
            trials_done: 0,
            error: None,
            result: None,
            sweep: None,
        };
        self.lock().jobs.insert(id.clone(), record);
        JobGuard { table: self, id, ended: false }
    }

    /// Takes over a job that was entered elsewhere (see [`JobGuard::hand_over`]).
    pub(super) fn resume(&self, id: String) -> JobGuard<'_> {
        JobGuard { table: self, id, ended: false }
    }

    /// The job, while it is kept.
    pub(super) fn view(&self, id: &str) -> Option<JobView> {
        let inner = self.lock();
        let record = inner.jobs.get(id)?;
        Some(JobView {
            job_id: id.to_owned(),
            kind: crate::report::JobKind::Evaluate,
            attempt: 1,
            label: None,
            code: None,
            comparison: None,
            state: record.state,
            status: match record.state {
                JobState::Completed => {
                    let swept = record.sweep.as_ref().and_then(|sweep| sweep.result.as_ref());
                    let evaluated = record.result.as_ref().map(|result| result.status);
                    evaluated.or(swept.map(|result| result.status))
                }
                JobState::Failed | JobState::Cancelled | JobState::TimedOut => {
                    Some(ResponseStatus::Error)
                }
                _ => None,
            },
            created_at: epoch_seconds(record.created),
            finished_at: record.finished.map(epoch_seconds),
            trials_done: record.trials_done,
            error: record.error.clone(),
            result: record.result.clone(),
            sweep: record.sweep.clone(),
        })
    }

    /// Jobs by state, and their mean age in seconds.
    pub(super) fn summary(&self) -> (BTreeMap<String, u64>, f64) {
        let inner = self.lock();
        let mut by_state = BTreeMap::new();
        let mut age_s = 0.0;
        for record in inner.jobs.values() {
            *by_state.entry(record.state.name().to_owned()).or_insert(0) += 1;
            age_s += record.born.elapsed().as_secs_f64();
        }
        let mean = if inner.jobs.is_empty() { 0.0 } else { age_s / inner.jobs.len() as f64 };
        (by_state, mean)
    }

    fn update(&self, id: &str, change: impl FnOnce(&mut Record)) {
        if let Some(record) = self.lock().jobs.get_mut(id) {
            change(record);
        }
    }

    fn end(
        &self,
        id: &str,
        state: JobState,
        error: Option<String>,
        result: Option<EvaluateResponse>,
    ) {
        let mut inner = self.lock();
        let Some(record) = inner.jobs.get_mut(id) else { return };
        let bytes = error.as_ref().map_or(0, String::len)
            + result.as_ref().map_or(0, weight)
            + record.sweep.as_ref().map_or(0, weight_of_sweep);
        record.state = state;
        record.finished = Some(SystemTime::now());
        record.error = error;
        record.result = result;
        inner.ended.push_back((id.to_owned(), bytes));
        inner.ended_bytes += bytes;
        while inner.ended.len() > self.kept || inner.ended_bytes > MAX_KEPT_BYTES {
            let Some((oldest, bytes)) = inner.ended.pop_front() else { break };
            inner.ended_bytes -= bytes;
            inner.jobs.remove(&oldest);
            self.shelf.forget(&oldest);
        }
    }

    /// The lock is held for look-ups and moves only; a panic inside leaves the table consistent.
    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A job on its way. Dropped before its end (the caller went away), it counts as cancelled.
pub(super) struct JobGuard<'a> {
    table: &'a JobTable,
    id: String,
    ended: bool,
}

impl JobGuard<'_> {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Where the job stands. A sweep, whose points overtake each other, stays on the device once
    /// one of them is.
    pub(super) fn state(&self, state: JobState) {
        self.table.update(&self.id, |record| {
            if record.sweep.is_none() || record.state != JobState::Profiling {
                record.state = state;
            }
        });
    }

    pub(super) fn trials(&self, done: u32) {
        self.table.update(&self.id, |record| record.trials_done = done);
    }

    /// The job is a sweep, with this many of its points done.
    pub(super) fn points(&self, done: usize, all: usize) {
        self.table.update(&self.id, |record| {
            record.sweep = Some(SweepView { points: all, points_done: done, result: None });
        });
    }

    /// Keeps a kernel of the job for those who ask for its code. Points of a sweep leave none: there
    /// are too many of them.
    pub(super) fn keep(&self, kernel: KeptKernel) {
        if !self.sweeps() {
            self.table.shelf.keep(&self.id, kernel);
        }
    }

    fn sweeps(&self) -> bool {
        self.table.lock().jobs.get(&self.id).is_some_and(|job| job.sweep.is_some())
    }

    /// Keeps the files that tools left. One that cannot be kept costs the job nothing.
    pub(super) fn keep_files(&self, files: &[Artifact]) {
        for file in files.iter().filter(|_| !self.sweeps()) {
            let extension = file.path.extension().and_then(|extension| extension.to_str());
            let Some(kind) = extension.and_then(ArtifactKind::named) else { continue };
            if let Err(error) = self.table.shelf.keep_file(&self.id, kind, &file.path) {
                tracing::warn!(file = file.name, %error, "a tool's file cannot be kept");
            }
        }
    }

    /// Ends a sweep with what came of it. Whoever waited has the points' reports already.
    pub(super) fn end_sweep(mut self, outcome: &Result<SweepResponse, ServiceError>) {
        self.ended = true;
        let (state, error) = match outcome {
            Ok(_) => (JobState::Completed, None),
            Err(ServiceError::ShuttingDown) => (JobState::Cancelled, Some(SHUT_DOWN.to_owned())),
            Err(error) => (JobState::Failed, Some(error.to_string())),
        };
        let mut result = outcome.as_ref().ok().cloned();
        for point in result.iter_mut().flat_map(|result| &mut result.points) {
            point.report = None;
        }
        self.table.update(&self.id, |record| {
            if let Some(sweep) = &mut record.sweep {
                sweep.result = result;
            }
        });
        self.table.end(&self.id, state, error, None);
    }

    /// Ends the job with what came of it.
    pub(super) fn end(mut self, outcome: &Result<EvaluateResponse, ServiceError>) {
        self.ended = true;
        match outcome {
            Ok(report) => {
                let timed_out =
                    report.failure.as_ref().is_some_and(|failure| failure.code == "timeout");
                let state = if timed_out { JobState::TimedOut } else { JobState::Completed };
                self.table.end(&self.id, state, None, Some(report.clone()));
            }
            Err(ServiceError::ShuttingDown) => {
                let why = Some(SHUT_DOWN.to_owned());
                self.table.end(&self.id, JobState::Cancelled, why, None);
            }
            Err(error) => self.table.end(&self.id, JobState::Failed, Some(error.to_string()), None),
        }
    }

    /// Leaves the job to whoever calls [`JobTable::resume`] with the returned id.
    pub(super) fn hand_over(mut self) -> String {
        self.ended = true;
        std::mem::take(&mut self.id)
    }
}

impl Drop for JobGuard<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let why = Some("the caller went away before the job ended".to_owned());
            self.table.end(&self.id, JobState::Cancelled, why, None);
        }
    }
}

/// Bytes a kept sweep weighs: its points and their rows in the table.
fn weight_of_sweep(sweep: &SweepView) -> usize {
    let result = sweep.result.as_ref();
    let points = result.into_iter().flat_map(|result| &result.points).map(|point| {
        let reasons = point.reasons.iter().map(|reason| 2 * reason.message.len());
        let values = point.values.iter().map(|(name, value)| name.len() + value.weight());
        1024 + reasons.sum::<usize>() + 2 * values.sum::<usize>()
    });
    points.sum()
}

/// Bytes a kept report weighs: what in it can be large.
pub(super) fn weight(report: &EvaluateResponse) -> usize {
    let outputs = report.outputs.values().map(|o| o.data_b64.as_ref().map_or(0, String::len));
    let samples = report.measurement.as_ref().map_or(0, |m| m.samples_ms.len() * 4);
    let log = report.compile.as_ref().map_or(0, |c| c.log.len());
    1024 + outputs.sum::<usize>() + samples + log + report.printed.as_ref().map_or(0, String::len)
}

fn epoch_seconds(time: SystemTime) -> f64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(kept: usize) -> JobTable {
        JobTable::new(kept, Shelf::new(0, std::path::Path::new("/")))
    }

    #[test]
    fn a_dropped_job_is_cancelled_and_old_ones_leave() {
        let table = table(2);
        let ids = (0..3).map(|_| table.enter().id().to_owned()).collect::<Vec<_>>();
        assert!(table.view(&ids[0]).is_none(), "the oldest left");
        let view = table.view(&ids[2]).unwrap();
        assert_eq!(view.state, JobState::Cancelled);
        assert!(view.error.unwrap().contains("went away"));
    }

    #[test]
    fn running_jobs_never_leave() {
        let table = table(0);
        let guard = table.enter();
        drop(table.enter());
        guard.state(JobState::Compiling);
        assert_eq!(table.view(guard.id()).unwrap().state, JobState::Compiling);
        assert_eq!(table.summary().0["compiling"], 1);
        let id = guard.id().to_owned();
        guard.end(&Err(ServiceError::ShuttingDown));
        assert!(table.view(&id).is_none());
    }
}
