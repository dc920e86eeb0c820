//! The worker that reads hardware counters: one for a device, started at its first use, kept warm.
//!
//! It is never the worker that times: a process that has CUPTI in it launches kernels in another
//! way. It runs only while a lease has the device, so it never runs beside a timed launch.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;

use super::Fleet;
use super::aide::Aide;
use super::answer::{Answer, outcome_of};
use super::costs::Costs;
use super::kind::WorkerKind;
use super::lease::Lease;
use super::process::{StartPlan, Worker};
use super::slot::Slot;
use crate::protocol::{Blame, CountPlan, Counted, Job, RunFailure, RunOutcome};

use warpgauge_model::FailureCode;

/// Longest time for it to become ready: the first use of CUPTI takes a second, and an evaluation
/// waits for it.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// The right of another's profiler to read the counters of this machine.
pub struct CounterClaim {
    _turn: OwnedMutexGuard<()>,
}

/// What a device remembers of it between leases.
#[derive(Default)]
pub(super) struct Profiler {
    aide: Aide,
    /// What profiles took.
    pub costs: Costs,
}

impl Lease {
    /// Reads hardware counters as `job` says, in a worker for that. `time_limit` counts from the
    /// first launch; waiting for counters has the same bound. What goes wrong is in the outcome.
    pub async fn count(
        &mut self,
        job: Job<CountPlan>,
        time_limit: Duration,
    ) -> RunOutcome<Counted> {
        let asked = job.task.metrics.clone();
        let outcome = outcome_of::<CountPlan>(self.count_any(job.any(), time_limit).await);
        if let Some(facts) = outcome.told.facts.as_ref().filter(|facts| facts.passes > 0) {
            self.fleet.lock().slots[self.slot].profiler.costs.note(&asked, &facts.timings);
        }
        outcome
    }

    async fn count_any(&mut self, job: Job, time_limit: Duration) -> Answer {
        self.adjourn().await;
        let turn = Arc::clone(&self.fleet.counters).lock_owned();
        let turn = tokio::time::timeout(time_limit, turn).await;
        let _turn = turn.map_err(|_| RunFailure {
            code: FailureCode::CountersBusy,
            message: "another profile of this service did not end".to_owned(),
            blame: Blame::Environment,
        })?;
        let mut worker = self.take_profiler().await.map_err(unavailable)?;
        let mut stop = self.fleet.stop.subscribe();
        let answer = tokio::select! {
            answer = worker.run(job, time_limit, &|_| {}) => answer,
            // An error means that the fleet is gone, which holds us: it cannot be.
            _ = stop.wait_for(|&stop| stop) => Err(RunFailure {
                code: FailureCode::ShuttingDown,
                message: "the server is shutting down; the profile was stopped".to_owned(),
                blame: Blame::Environment,
            }),
        };
        // At once, and not with the lease: until it gives counters back, nobody else has any.
        match worker.settle().await {
            Ok(()) => self.fleet.keep_aide(self.slot, profiler_of, worker),
            Err(reason) => tracing::info!(%reason, "the profiling worker is replaced"),
        }
        answer
    }

    /// Takes the counters of this machine for another's profiler, until the answer is dropped: waits
    /// until no worker of ours reads any, and has those that keep them give them back. One process of
    /// a machine can read counters at a time, on whatever GPU.
    pub async fn claim_counters(&mut self) -> CounterClaim {
        let turn = Arc::clone(&self.fleet.counters).lock_owned().await;
        self.fleet.release_counters(None).await;
        CounterClaim { _turn: turn }
    }

    /// The worker, started if there is none.
    async fn take_profiler(&mut self) -> Result<Worker, String> {
        self.fleet.release_counters(Some(self.slot)).await;
        let plan = &self.fleet.plans[self.slot];
        let kind = WorkerKind::Counters { cupti: self.fleet.cupti[self.slot].clone() };
        let plan = StartPlan { kind, start_timeout: START_TIMEOUT, ..plan.clone() };
        self.fleet.take_aide(self.slot, profiler_of, &plan).await
    }
}

fn profiler_of(slot: &mut Slot) -> &mut Aide {
    &mut slot.profiler.aide
}

impl Fleet {
    async fn release_counters(&self, except: Option<usize>) {
        for slot in 0..self.plans.len() {
            if Some(slot) == except {
                continue;
            }
            let Some(mut worker) = self.lock().slots[slot].profiler.aide.worker.take() else {
                continue;
            };
            match worker.release().await {
                Ok(()) => self.keep_aide(slot, profiler_of, worker),
                // It is killed, and so it has none.
                Err(reason) => tracing::info!(%reason, "the profiling worker is replaced"),
            }
        }
    }
}

fn unavailable(reason: String) -> RunFailure {
    RunFailure {
        code: FailureCode::WorkerUnavailable,
        message: format!("no worker could be started to read counters: {reason}"),
        blame: Blame::Environment,
    }
}
