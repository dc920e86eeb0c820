//! A lease: the right to use a device for a sequence of jobs of one owner.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::answer::{Answer, outcome_of};
use super::one_shot::{self, OneShot, OneShotEnd};
use super::process::Worker;
use super::sealed::Court;
use super::slot::Work;
use super::{Fleet, Grant, RunEvent};
use crate::protocol::{Blame, RunFailure, RunOutcome, TaskOutcome, TaskPlan, WorkerJob};
use warpgauge_model::{DeviceInfo, FailureCode};
use warpgauge_telemetry::telemetry;
use warpgauge_turns::Owner;

/// Maximum delay of a result while the device waits for another worker.
const REPLACEMENT_LIMIT: Duration = Duration::from_millis(800);

/// A leased device. Dropping the lease returns the device. Dropping it while a job runs kills the
/// worker that runs the job.
pub struct Lease {
    pub(super) fleet: Arc<Fleet>,
    pub(super) slot: usize,
    /// `None` after the worker was lost.
    pub(super) worker: Option<Worker>,
    /// Workers that judged the last job and have not cleaned up yet.
    pub(super) court: Option<Court>,
    device: DeviceInfo,
    owner: Owner,
    queued: Duration,
    since: Instant,
}

impl Lease {
    pub(super) fn new(fleet: Arc<Fleet>, grant: Grant, queued: Duration) -> Self {
        let device = grant.worker.device().clone();
        let Grant { slot, worker, owner } = grant;
        if !fleet.is_beside(slot) {
            telemetry().leased(device.ordinal, queued);
        }
        Self {
            fleet,
            slot,
            worker: Some(worker),
            court: None,
            device,
            owner,
            queued,
            since: Instant::now(),
        }
    }

    pub fn device(&self) -> &DeviceInfo {
        &self.device
    }

    /// Returns how long the request for the lease waited in the queue.
    pub fn queue_wait(&self) -> Duration {
        self.queued
    }

    /// Runs a job. `time_limit` counts from the candidate's first launch. With `fresh`, the job
    /// gets a worker process that runs no other job.
    ///
    /// The outcome reports every failure: a worker that hangs is killed and reported as `timeout`,
    /// and a worker that dies is reported as `worker_died`.
    pub async fn run<P: TaskPlan>(
        &mut self,
        job: WorkerJob<P>,
        time_limit: Duration,
        fresh: bool,
        on_event: &(dyn Fn(RunEvent) + Send + Sync),
    ) -> RunOutcome<P::Output> {
        outcome_of::<P>(self.run_any(job.any(), time_limit, fresh, on_event).await)
    }

    async fn run_any(
        &mut self,
        job: WorkerJob,
        time_limit: Duration,
        fresh: bool,
        on_event: &(dyn Fn(RunEvent) + Send + Sync),
    ) -> Answer {
        self.make_ready(fresh).await?;
        let mut stop = self.fleet.stop.subscribe();
        let worker = self.worker.as_mut().ok_or_else(unavailable)?;
        let outcome = tokio::select! {
            outcome = worker.run(job, time_limit, on_event) => outcome,
            // The error case cannot occur: it would mean that the fleet is gone, but the fleet owns
            // this lease.
            _ = stop.wait_for(|&stop| stop) => Err(RunFailure {
                code: FailureCode::ShuttingDown,
                message: "the server is shutting down; the job was stopped".to_owned(),
                blame: Blame::Environment,
            }),
        };
        if let Ok(RunOutcome { told: TaskOutcome::Evaluated(run), .. }) = &outcome {
            self.fleet.lock().slots[self.slot].evaluated(run);
        }
        if fresh && worker.is_usable() {
            self.lose();
        }
        self.replace_lost().await;
        outcome
    }

    /// If this worker cannot take another job, drops it and waits for another worker.
    pub(super) async fn replace_lost(&mut self) {
        if self.worker.as_mut().is_some_and(|worker| !worker.is_usable()) {
            self.lose();
            self.replacement().await;
        }
    }

    /// Runs a job in a separate process that `shot`'s tool starts and watches. The device's workers
    /// are idle meanwhile.
    pub async fn run_under<P: TaskPlan>(
        &mut self,
        shot: &OneShot,
        job: WorkerJob<P>,
    ) -> OneShotEnd<P::Output> {
        // Scrubbing that is still in progress would appear in the tool's results, or would be
        // delayed.
        self.adjourn().await;
        if let Some(worker) = &mut self.worker
            && worker.settle().await.is_err()
        {
            self.lose();
        }
        let plan = &self.fleet.plans[self.slot];
        let (answer, tool) =
            one_shot::run(plan, shot, job.any(), self.fleet.stop.subscribe()).await;
        OneShotEnd { outcome: outcome_of::<P>(answer), tool }
    }

    /// Waits until the device has a ready worker again; a spare is ready at once. A job that loses
    /// a worker thus waits for the replacement itself. The next job does not wait, even if crashes
    /// follow each other faster than workers start.
    async fn replacement(&self) {
        let mut arrivals = self.fleet.lock().slots[self.slot].arrivals.subscribe();
        let staffed = async {
            loop {
                arrivals.mark_unchanged();
                {
                    let state = self.fleet.lock();
                    let slot = &state.slots[self.slot];
                    if state.closing || slot.has_ready() || slot.failure().is_some() {
                        return;
                    }
                }
                if arrivals.changed().await.is_err() {
                    return;
                }
            }
        };
        // The limit protects callers that wait for a result from a machine that has become slow.
        let _ = tokio::time::timeout(REPLACEMENT_LIMIT, staffed).await;
    }

    /// Obtains a worker that can take the job.
    pub(super) async fn make_ready(&mut self, fresh: bool) -> Result<(), RunFailure> {
        // Clean-up that is still in progress would disturb the timing.
        self.adjourn().await;
        if let Some(worker) = &mut self.worker
            && let Err(reason) = worker.settle().await
        {
            tracing::info!(device = self.device.ordinal, %reason, "a worker is replaced");
            self.lose();
        }
        let used = self.worker.as_ref().is_some_and(|worker| worker.jobs() > 0);
        if self.worker.is_some() && !(fresh && used) {
            return Ok(());
        }
        let mut changed = {
            let state = self.fleet.lock();
            state.slots[self.slot].arrivals.subscribe()
        };
        // The job gets the spare, or, if there is none, the next worker that is started.
        if let Some(worker) = self.worker.take() {
            let mut state = self.fleet.lock();
            let slot = &mut state.slots[self.slot];
            match slot.take_unused() {
                Some(spare) => {
                    slot.put_ready(worker);
                    self.worker = Some(spare);
                    return Ok(());
                }
                // The used worker makes room for an unused one.
                None => slot.lost_one(),
            }
        }
        loop {
            changed.mark_unchanged();
            {
                let mut state = self.fleet.lock();
                if state.closing {
                    return Err(unavailable());
                }
                let slot = &mut state.slots[self.slot];
                if let Some(worker) = slot.take_unused() {
                    self.worker = Some(worker);
                    return Ok(());
                }
                if let Some(reason) = slot.failure() {
                    return Err(RunFailure { message: reason.to_owned(), ..unavailable() });
                }
            }
            if changed.changed().await.is_err() {
                return Err(unavailable());
            }
        }
    }

    /// Drops the worker, which kills the process, and requests a replacement.
    pub(super) fn lose(&mut self) {
        if self.worker.take().is_some() {
            self.fleet.lock().slots[self.slot].lost_one();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let held = self.since.elapsed();
        let (fleet, slot, owner) = (Arc::clone(&self.fleet), self.slot, self.owner);
        let (mut worker, court) = (self.worker.take(), self.court.take());
        let had_worker = worker.is_some();
        if court.is_none() && !worker.as_ref().is_some_and(Worker::is_scrubbing) {
            let usable = worker.as_mut().is_some_and(Worker::is_idle);
            fleet.give_back(slot, owner, worker.filter(|_| usable), had_worker, held);
            return;
        }
        // The device is busy until it is scrubbed.
        fleet.lock().slots[slot].set_work(Work::CleanUp);
        let runtime = fleet.runtime.clone();
        runtime.spawn(async move {
            let settle = async {
                let worker = worker.as_mut()?;
                let settled = worker.settle().await;
                if let Err(reason) = &settled {
                    tracing::info!(device = worker.device().ordinal, %reason, "a worker is replaced");
                }
                settled.ok()
            };
            let close = async {
                if let Some(court) = court {
                    court.close(&fleet.sealing[slot]).await;
                }
            };
            let (settled, ()) = tokio::join!(settle, close);
            fleet.give_back(slot, owner, worker.filter(|_| settled.is_some()), had_worker, held);
        });
    }
}

pub(super) fn unavailable() -> RunFailure {
    RunFailure {
        code: FailureCode::WorkerUnavailable,
        message: "no worker could be started on the device".to_owned(),
        blame: Blame::Environment,
    }
}
