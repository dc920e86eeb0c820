//! The workers that read hardware counters: one for each device, started at first use and kept
//! warm.
//!
//! Such a worker never times a kernel, because a process that has loaded CUPTI launches kernels
//! differently. It runs only while a lease holds the device, so it never runs beside a timed
//! launch.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;

use super::aide::Aide;
use super::answer::{Answer, outcome_of};
use super::costs::{Costs, usual_ms};
use super::kind::WorkerKind;
use super::lease::Lease;
use super::plan;
use super::process::{StartPlan, Worker};
use crate::protocol::{
    Blame, CountPlan, CountedRun, PlanReport, RunFailure, RunOutcome, WorkerJob,
};

use warpgauge_model::{Cause, FailureCode, Unavailable};

/// Time limit for a worker to become ready. The first use of CUPTI takes a second, during which an
/// evaluation waits.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Permission for an external profiler to read the counters of this machine.
pub struct CounterClaim {
    _turn: OwnedMutexGuard<()>,
}

/// The profiling workers of all devices.
pub(super) struct Profilers {
    /// Held while counters are read, because a machine's counters serve one process at a time.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Profiling workers, by slot of the device.
    all: Vec<Profiler>,
}

/// The profiling worker of one device.
struct Profiler {
    plan: StartPlan,
    /// Paths of CUPTI libraries to try.
    cupti: Vec<PathBuf>,
    aide: Aide,
    /// Times that earlier profiles took.
    costs: Mutex<Costs>,
}

impl Profilers {
    /// Prepares the workers without starting any. `devices` contains, by slot, the plan for
    /// starting workers and the CUPTI libraries to try.
    pub(super) fn new(devices: impl Iterator<Item = (StartPlan, Vec<PathBuf>)>) -> Self {
        let all = devices.map(|(plan, cupti)| Profiler::new(plan, cupti)).collect();
        Self { turn: Arc::default(), all }
    }

    /// Plans the collection of NVIDIA's metrics on a chip, with a CUPTI library that fits a device.
    ///
    /// # Errors
    /// Fails if there is no CUPTI library, if CUPTI knows neither the chip nor any of the metrics,
    /// or if CUPTI fails.
    pub(super) async fn plan(
        &self,
        device: u32,
        chip: &str,
        metrics: &[String],
    ) -> Result<PlanReport, Unavailable> {
        let Some(Profiler { plan, cupti, .. }) = self.of_device(device) else {
            return Err(Cause::NoTool.because(format!("there is no device {device}")));
        };
        plan::plan_counters(&plan.program, cupti, chip, metrics).await
    }

    /// Returns the expected time of reading NVIDIA's metrics on a device, milliseconds. The
    /// estimate assumes a worker that has read the same metrics before.
    pub(super) fn expected_ms(&self, device: u32, metrics: &[String], passes: u32) -> f64 {
        let seen = self.of_device(device).and_then(|profiler| profiler.costs().seen(metrics));
        seen.unwrap_or_else(|| usual_ms(metrics, passes))
    }

    /// Returns a worker that reads a device's counters. Starts one if there is none, and makes
    /// workers of other devices release the counters.
    async fn take(&self, slot: usize) -> Result<Worker, String> {
        self.release(Some(slot)).await;
        self.all[slot].aide.take().await
    }

    /// Makes workers that hold counters release them, except the worker of slot `except`.
    async fn release(&self, except: Option<usize>) {
        for (slot, Profiler { aide, .. }) in self.all.iter().enumerate() {
            if Some(slot) == except {
                continue;
            }
            let Some(mut worker) = aide.take_kept() else { continue };
            match worker.release().await {
                Ok(()) => aide.keep(worker),
                // The worker is killed, so it no longer holds counters.
                Err(reason) => tracing::info!(%reason, "the profiling worker is replaced"),
            }
        }
    }

    /// From now on, ends workers that are returned, instead of keeping them.
    pub(super) fn close(&self) {
        self.all.iter().for_each(|profiler| profiler.aide.close());
    }

    pub(super) fn dismiss(&self) {
        self.all.iter().for_each(|profiler| profiler.aide.dismiss());
    }

    fn of_device(&self, device: u32) -> Option<&Profiler> {
        self.all.iter().find(|profiler| profiler.plan.device == device)
    }
}

impl Profiler {
    fn new(plan: StartPlan, cupti: Vec<PathBuf>) -> Self {
        let kind = WorkerKind::Counters { cupti: cupti.clone() };
        let counting = StartPlan { kind, start_timeout: START_TIMEOUT, ..plan.clone() };
        Self { plan, cupti, aide: Aide::new(counting), costs: Mutex::default() }
    }

    fn costs(&self) -> MutexGuard<'_, Costs> {
        self.costs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    /// Reads the hardware counters of `job` in a profiling worker. `time_limit` counts from the
    /// first launch; the wait for the counters has the same limit. The outcome reports every
    /// failure.
    pub async fn count(
        &mut self,
        job: WorkerJob<CountPlan>,
        time_limit: Duration,
    ) -> RunOutcome<CountedRun> {
        let asked = job.task.metrics.clone();
        let outcome = outcome_of::<CountPlan>(self.count_any(job.any(), time_limit).await);
        if let Some(facts) = outcome.told.facts.as_ref().filter(|facts| facts.passes > 0) {
            self.fleet.profilers.all[self.slot].costs().note(&asked, &facts.timings);
        }
        outcome
    }

    async fn count_any(&mut self, job: WorkerJob, time_limit: Duration) -> Answer {
        self.adjourn().await;
        let profilers = &self.fleet.profilers;
        let turn = Arc::clone(&profilers.turn).lock_owned();
        let turn = tokio::time::timeout(time_limit, turn).await;
        let _turn = turn.map_err(|_| RunFailure {
            code: FailureCode::CountersBusy,
            message: "another profile of this service did not end in time".to_owned(),
            blame: Blame::Environment,
        })?;
        let mut worker = profilers.take(self.slot).await.map_err(unavailable)?;
        let mut stop = self.fleet.stop.subscribe();
        let answer = tokio::select! {
            answer = worker.run(job, time_limit, &|_| {}) => answer,
            // The error case cannot occur: it would mean that the fleet is gone, but the fleet owns
            // this lease.
            _ = stop.wait_for(|&stop| stop) => Err(RunFailure {
                code: FailureCode::ShuttingDown,
                message: "the server is shutting down; the profile was stopped".to_owned(),
                blame: Blame::Environment,
            }),
        };
        // The worker is kept before the lease ends. No other process can read counters until this
        // worker releases them.
        match worker.settle().await {
            Ok(()) => profilers.all[self.slot].aide.keep(worker),
            Err(reason) => tracing::info!(%reason, "the profiling worker is replaced"),
        }
        answer
    }

    /// Reserves this machine's counters for an external profiler until the claim is dropped. Waits
    /// until no profiling worker reads counters, and makes workers that hold counters release them.
    /// On one machine, only one process can read counters at a time, regardless of the GPU.
    pub async fn claim_counters(&mut self) -> CounterClaim {
        let profilers = &self.fleet.profilers;
        let turn = Arc::clone(&profilers.turn).lock_owned().await;
        profilers.release(None).await;
        CounterClaim { _turn: turn }
    }
}

fn unavailable(reason: String) -> RunFailure {
    RunFailure {
        code: FailureCode::WorkerUnavailable,
        message: format!("no worker could be started to read counters: {reason}"),
        blame: Blame::Environment,
    }
}
