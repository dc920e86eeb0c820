//! An auxiliary worker beside the timing workers: started at first use, kept warm, one of each kind per
//! device.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::process::{StartPlan, Worker};
use super::restart::RestartPolicy;

/// Longest restart delay that a caller waits for; beyond it the caller gets an error.
const WORTH_WAITING: Duration = Duration::from_secs(1);

/// An auxiliary worker, which its device keeps between leases.
pub(super) struct Aide {
    plan: StartPlan,
    state: Mutex<Kept>,
    /// Held while a worker starts: later callers wait for that start.
    starting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Kept {
    worker: Option<Worker>,
    restart: RestartPolicy,
    /// Whether the fleet is shutting down, so that returned workers are not kept.
    closing: bool,
}

impl Aide {
    pub(super) fn new(plan: StartPlan) -> Self {
        Self { plan, state: Mutex::default(), starting: tokio::sync::Mutex::default() }
    }

    /// Returns the worker. Starts one if none can take a job.
    pub(super) async fn take(&self) -> Result<Worker, String> {
        let _turn = self.starting.lock().await;
        if let Some(mut worker) = self.take_kept() {
            match worker.settle().await {
                Ok(()) => return Ok(worker),
                Err(reason) => {
                    tracing::info!(kind = ?self.plan.kind, %reason, "a worker is replaced");
                }
            }
        }
        let delay = self.lock().restart.delay(Instant::now());
        if delay <= WORTH_WAITING {
            tokio::time::sleep(delay).await;
        } else {
            let seconds = delay.as_secs_f64();
            return Err(format!("it could not be started before; next try in {seconds:.1} s"));
        }
        let started = Worker::start(&self.plan).await;
        let restart = &mut self.lock().restart;
        match &started {
            Ok(_) => restart.succeeded(),
            Err(_) => drop(restart.failed(Instant::now())),
        }
        started
    }

    /// Returns the worker if it has been started and is not in use.
    pub(super) fn take_kept(&self) -> Option<Worker> {
        self.lock().worker.take()
    }

    /// Keeps a worker for the next caller.
    pub(super) fn keep(&self, worker: Worker) {
        let mut state = self.lock();
        if !state.closing {
            state.worker = Some(worker);
        }
    }

    /// Stops keeping workers that are returned.
    pub(super) fn close(&self) {
        self.lock().closing = true;
    }

    /// Ends the worker, unless it is in use.
    pub(super) fn dismiss(&self) {
        drop(self.take_kept());
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
