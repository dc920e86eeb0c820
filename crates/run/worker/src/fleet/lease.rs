//! A device, for one job after another of the same owner.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::answer::{Answer, outcome_of};
use super::one_shot::{self, OneShot, OneShotEnd};
use super::process::Worker;
use super::sealed::Court;
use super::slot::Work;
use super::{Fleet, Grant, RunEvent};
use crate::protocol::{Blame, RunFailure, RunOutcome, TaskPlan, WorkerJob};
use warpgauge_model::{DeviceInfo, FailureCode};
use warpgauge_telemetry::telemetry;
use warpgauge_turns::Owner;

/// Longest time for which an answer is held back until the device has a worker again.
const REPLACEMENT_LIMIT: Duration = Duration::from_millis(800);

/// A leased device. Dropping it gives the device back; dropping it while a job runs kills the
/// worker that runs it.
pub struct Lease {
    pub(super) fleet: Arc<Fleet>,
    pub(super) slot: usize,
    /// `None` after it was lost.
    pub(super) worker: Option<Worker>,
    /// Those that judged its last job, which have yet to clean up.
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

    /// The device.
    pub fn device(&self) -> &DeviceInfo {
        &self.device
    }

    /// How long the lease waited in the queue.
    pub fn queue_wait(&self) -> Duration {
        self.queued
    }

    /// Runs a job. `time_limit` counts from the candidate's first launch. `fresh`: in a process
    /// that has run nothing before and will run nothing after.
    ///
    /// What goes wrong is in the outcome: a worker that hangs is killed and reported as `timeout`,
    /// one that dies as `worker_died`.
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
            // An error means that the fleet is gone, which holds us: it cannot be.
            _ = stop.wait_for(|&stop| stop) => Err(RunFailure {
                code: FailureCode::ShuttingDown,
                message: "the server is shutting down; the job was stopped".to_owned(),
                blame: Blame::Environment,
            }),
        };
        if fresh && worker.is_usable() {
            self.lose();
        }
        self.replace_lost().await;
        outcome
    }

    /// Waits for another worker where this one can take no further job.
    pub(super) async fn replace_lost(&mut self) {
        if self.worker.as_mut().is_some_and(|worker| !worker.is_usable()) {
            self.lose();
            self.replacement().await;
        }
    }

    /// Runs a job in a process of its own that `shot`'s tool starts and watches. The device's
    /// workers wait meanwhile.
    pub async fn run_under<P: TaskPlan>(
        &mut self,
        shot: &OneShot,
        job: WorkerJob<P>,
    ) -> OneShotEnd<P::Output> {
        // What is still being scrubbed would be seen, or would wait.
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

    /// Waits until the device has a ready worker again, which it has at once where a spare stands
    /// by. So a job that costs a worker pays for it with its own time, and the next job with none,
    /// even when crashes follow each other faster than workers start.
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
        // Whoever waits for an answer should not wait for a machine that has become slow.
        let _ = tokio::time::timeout(REPLACEMENT_LIMIT, staffed).await;
    }

    /// Gets a worker that can take the job.
    pub(super) async fn make_ready(&mut self, fresh: bool) -> Result<(), RunFailure> {
        // What still cleans up would be timed.
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
        // The spare if there is one; else the next that is started.
        if let Some(worker) = self.worker.take() {
            let mut state = self.fleet.lock();
            let slot = &mut state.slots[self.slot];
            match slot.take_unused() {
                Some(spare) => {
                    slot.put_ready(worker);
                    self.worker = Some(spare);
                    return Ok(());
                }
                // Its place is needed for one that is unused.
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

    /// Drops the worker, which kills it if it lives, and has another one started.
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
