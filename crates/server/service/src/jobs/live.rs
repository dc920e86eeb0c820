//! Jobs that run in this process: their state, their watchers, and how they are stopped. The main
//! types are [`LiveJob`] and [`LiveJobs`].

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::artifacts::{ArtifactKind, CollectedArtifacts, RunningJobs, Snapshot};
use crate::submission::SweepEvents;
use crate::tensors::{KeepsOutputs, KeptTensor};
use warpgauge_executor::{KeptKernel, Progress, ProgressEvent};
use warpgauge_job_views::JobEvent;
use warpgauge_model::{JobKind, JobStage, JobState};
use warpgauge_store::JobLease;

/// Reason why a job stops before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A caller with permission cancelled the job.
    Cancelled,
    /// The caller that waited for the job disconnected.
    CallerGone,
    /// Another process took over the job, or the job was removed.
    Lost,
}

/// A job that runs in this process.
pub(crate) struct LiveJob {
    id: String,
    pub(super) kind: JobKind,
    owner: String,
    born: Instant,
    news: watch::Sender<JobEvent>,
    stop: watch::Sender<Option<Stop>>,
    /// Lease of the job. `None` before the store accepts the job, and after its end.
    lease: Mutex<Option<JobLease>>,
    collected: Mutex<CollectedArtifacts>,
    /// Tensors that were created from the job's outputs, until a report that mentions them is
    /// written.
    kept: Mutex<Vec<KeptTensor>>,
    /// Receives the events, if the job is a sweep.
    sweep: Option<SweepEvents>,
}

impl LiveJob {
    /// Creates a job in its first state. Files of profilers are stored in `files`.
    pub(super) fn new(
        id: String,
        kind: JobKind,
        owner: &str,
        attempt: u32,
        files: &Path,
        sweep: Option<SweepEvents>,
    ) -> Arc<Self> {
        let first = JobEvent {
            job_id: id.clone(),
            state: JobState::Submitted,
            stage: JobStage::Waiting,
            attempt,
            trials_done: 0,
            ahead: None,
            elapsed_s: 0.0,
            statistics: None,
            points_done: None,
            points: None,
            error: None,
        };
        Arc::new(Self {
            id,
            kind,
            owner: owner.to_owned(),
            born: Instant::now(),
            news: watch::Sender::new(first),
            stop: watch::Sender::new(None),
            lease: Mutex::default(),
            collected: Mutex::new(CollectedArtifacts::new(files)),
            kept: Mutex::default(),
            sweep,
        })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    /// Updates the stage. Points of a sweep may overtake each other, so a sweep stays in the
    /// profiling stage once one point has reached it.
    fn stage(&self, stage: JobStage) {
        // [`Self::ended`] reports the end.
        let Some(state) = stage.state() else { return };
        self.change(|news| {
            let settled = news.points.is_some() && news.state == JobState::Profiling;
            if !settled {
                (news.state, news.stage) = (state, stage);
            }
        });
    }

    /// Keeps a kernel of the job as an artifact. Kernels of sweeps and gates are not kept, because
    /// there are too many.
    fn keep(&self, kernel: KeptKernel) {
        if !matches!(self.kind, JobKind::Sweep | JobKind::Gate) {
            self.collected().keep(kernel);
        }
    }

    /// Keeps a profiler's file in another directory, because the job's directory is deleted when
    /// the job ends.
    fn keep_file(&self, path: &Path) {
        if self.kind == JobKind::Sweep {
            return;
        }
        let extension = path.extension().and_then(|extension| extension.to_str());
        let Some(kind) = extension.and_then(ArtifactKind::named) else { return };
        if let Err(error) = self.collected().keep_file(kind, path) {
            tracing::warn!(file = %path.display(), %error, "a tool's file cannot be stored");
        }
    }

    /// Locks the job's lease.
    pub(super) fn lease(&self) -> MutexGuard<'_, Option<JobLease>> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the artifacts that the job has produced so far.
    pub(super) fn collected(&self) -> MutexGuard<'_, CollectedArtifacts> {
        self.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes and returns the tensors that were created from the job's outputs so far.
    pub(super) fn kept_tensors(&self) -> Vec<KeptTensor> {
        std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the current state of the job.
    pub(super) fn now(&self) -> JobEvent {
        let mut event = self.news.borrow().clone();
        event.elapsed_s = self.born.elapsed().as_secs_f64();
        event
    }

    /// Returns the time since this process began the job.
    pub(super) fn age(&self) -> Duration {
        self.born.elapsed()
    }

    /// Subscribes to future events. A slow reader sees only the latest event.
    pub(super) fn subscribe(&self) -> watch::Receiver<JobEvent> {
        self.news.subscribe()
    }

    /// Reports the end of the job. No further event follows.
    pub(super) fn ended(&self, state: JobState, error: Option<String>) {
        self.change(|news| {
            (news.state, news.stage) = (state, JobStage::Ended);
            news.error = error;
        });
    }

    fn change(&self, change: impl FnOnce(&mut JobEvent)) {
        let elapsed_s = self.born.elapsed().as_secs_f64();
        self.news.send_if_modified(|news| {
            if news.state.is_end() {
                return false;
            }
            change(news);
            news.elapsed_s = elapsed_s;
            true
        });
    }

    /// Requests a stop of the job. If a stop was requested before, the earlier reason remains.
    pub(super) fn stop(&self, why: Stop) {
        self.stop.send_if_modified(|stop| {
            let first = stop.is_none();
            stop.get_or_insert(why);
            first
        });
    }

    /// Waits until a stop of the job is requested.
    pub(super) async fn stopped(&self) -> Stop {
        let mut stop = self.stop.subscribe();
        let why = stop.wait_for(Option::is_some).await.ok().and_then(|why| *why);
        match why {
            Some(why) => why,
            // `self` owns the sender, so the channel never closes.
            None => std::future::pending().await,
        }
    }
}

impl KeepsOutputs for LiveJob {
    fn owner(&self) -> &str {
        &self.owner
    }

    fn take_output(&self, name: &str) -> Option<Result<tempfile::TempPath, String>> {
        self.collected().take_output(name)
    }

    fn keep_tensor(&self, tensor: KeptTensor) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(tensor);
    }
}

impl Progress for LiveJob {
    fn emit(&self, news: ProgressEvent) {
        match news {
            ProgressEvent::Stage(stage) => self.stage(stage),
            ProgressEvent::RunStarted => self.change(|event| {
                (event.trials_done, event.statistics) = (0, None);
            }),
            ProgressEvent::Trials { done, statistics } => self.change(|event| {
                (event.trials_done, event.statistics) = (done, statistics);
            }),
            ProgressEvent::Points { done, all } => {
                self.change(|event| (event.points_done, event.points) = (Some(done), Some(all)));
            }
            ProgressEvent::Sweep(event) => {
                if let Some(events) = &self.sweep {
                    events(event);
                }
            }
            ProgressEvent::Kernel(kernel) => self.keep(*kernel),
            ProgressEvent::File(path) => self.keep_file(&path),
            ProgressEvent::Output { name, file } => self.collected().keep_output(name, &file),
        }
    }
}

/// All jobs that run in this process. The permits of the queue limit their number.
#[derive(Default)]
pub(crate) struct LiveJobs {
    jobs: Mutex<HashMap<String, Arc<LiveJob>>>,
    /// Signals each time a job is added to the table or removed.
    changed: watch::Sender<()>,
}

impl LiveJobs {
    /// Adds a job to the table. Dropping the returned guard removes the job.
    pub(super) fn enter(self: &Arc<Self>, job: &Arc<LiveJob>) -> Entered {
        self.lock().insert(job.id.clone(), Arc::clone(job));
        self.changed.send_replace(());
        Entered { jobs: Arc::clone(self), job: Arc::clone(job) }
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<LiveJob>> {
        self.lock().get(id).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<LiveJob>> {
        self.lock().values().cloned().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Returns a channel that signals each time a job is added to the table or removed.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Waits until the table is empty.
    pub(crate) async fn drained(&self) {
        let mut changes = self.changes();
        while !self.is_empty() {
            // `self` owns the sender, so this is unreachable.
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Returns the number of jobs by state, and their mean age in seconds.
    pub(crate) fn summary(&self) -> (BTreeMap<String, u64>, f64) {
        let jobs = self.lock();
        let mut by_state = BTreeMap::new();
        for job in jobs.values() {
            let state = job.news.borrow().state;
            *by_state.entry(state.name().to_owned()).or_insert(0) += 1;
        }
        let ages = jobs.values().map(|job| job.age().as_secs_f64()).sum::<f64>();
        (by_state, if jobs.is_empty() { 0.0 } else { ages / jobs.len() as f64 })
    }

    /// Locks the table. The lock is held only for look-ups and moves, so a panic leaves the table
    /// consistent.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<LiveJob>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningJobs for LiveJobs {
    fn artifacts(&self, job_id: &str) -> Option<Snapshot> {
        self.get(job_id).map(|job| job.collected().snapshot())
    }
}

/// A job's entry in the table.
pub(super) struct Entered {
    jobs: Arc<LiveJobs>,
    job: Arc<LiveJob>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut jobs = self.jobs.lock();
        // Another attempt may have replaced the job.
        if jobs.get(&self.job.id).is_some_and(|job| Arc::ptr_eq(job, &self.job)) {
            jobs.remove(&self.job.id);
        }
        drop(jobs);
        self.jobs.changed.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: &str, kind: JobKind) -> Arc<LiveJob> {
        LiveJob::new(id.to_owned(), kind, "", 1, Path::new("/"), None)
    }

    #[test]
    fn jobs_come_and_go() {
        let table = Arc::new(LiveJobs::default());
        let (a, b) = (job("a", JobKind::Evaluate), job("b", JobKind::Evaluate));
        let (entered, _other) = (table.enter(&a), table.enter(&b));
        a.stage(JobStage::Compiling);
        assert_eq!(
            table.summary().0,
            [("compiling", 1), ("submitted", 1)].map(|(s, n)| (s.to_owned(), n)).into()
        );
        assert_eq!(table.get("a").unwrap().now().stage, JobStage::Compiling);
        drop(entered);
        assert!(table.get("a").is_none());
        assert_eq!(table.all().len(), 1);
    }

    #[test]
    fn an_attempt_that_leaves_takes_no_later_one_with_it() {
        let table = Arc::new(LiveJobs::default());
        let (first, second) = (job("a", JobKind::Evaluate), job("a", JobKind::Evaluate));
        let entered = table.enter(&first);
        let _later = table.enter(&second);
        drop(entered);
        assert!(Arc::ptr_eq(&table.get("a").unwrap(), &second));
    }

    #[tokio::test]
    async fn a_slow_watcher_sees_the_newest_and_the_end_is_the_last() {
        let job = job("j", JobKind::Evaluate);
        let mut news = job.subscribe();
        job.stage(JobStage::Compiling);
        job.stage(JobStage::Running);
        for trials in 1..=5 {
            job.emit(ProgressEvent::Trials { done: trials, statistics: None });
        }
        news.changed().await.unwrap();
        assert_eq!(news.borrow_and_update().trials_done, 5);
        assert!(!news.has_changed().unwrap(), "what lies between is not kept");
        job.ended(JobState::Completed, None);
        job.stage(JobStage::Compiling);
        assert_eq!(news.borrow_and_update().state, JobState::Completed);
    }

    #[test]
    fn points_of_a_sweep_do_not_bring_it_back() {
        let job = job("s", JobKind::Sweep);
        job.emit(ProgressEvent::Points { done: 0, all: 4 });
        job.stage(JobStage::Running);
        job.stage(JobStage::Compiling);
        assert_eq!(job.now().state, JobState::Profiling);
    }

    #[tokio::test]
    async fn the_first_reason_to_stop_stands() {
        let job = job("j", JobKind::Evaluate);
        job.stop(Stop::Cancelled);
        job.stop(Stop::CallerGone);
        assert_eq!(job.stopped().await, Stop::Cancelled);
    }
}
