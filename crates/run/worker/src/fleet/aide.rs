//! Auxiliary worker of a device, in addition to the timing workers. It is started at first use and
//! kept warm. A device has at most one auxiliary worker of each kind.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::process::{StartPlan, Worker};
use super::restart::RestartPolicy;

/// Maximum restart delay that a caller waits for. If the delay is longer, the caller gets an error.
const WORTH_WAITING: Duration = Duration::from_secs(1);

/// An auxiliary worker of a device, kept between leases.
pub(super) struct Aide {
    plan: StartPlan,
    state: Mutex<Kept>,
    /// Held while a worker starts, so that later callers wait for that start.
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

    /// Takes the worker, or starts one if there is none that can take a job.
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
            return Err(format!(
                "an earlier start failed; the next attempt begins in {seconds:.1} s"
            ));
        }
        let started = Worker::start(&self.plan).await;
        let restart = &mut self.lock().restart;
        match &started {
            Ok(_) => restart.succeeded(),
            Err(_) => drop(restart.failed(Instant::now())),
        }
        started
    }

    /// Takes the worker if it has been started and is not in use.
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

    /// From now on, ends workers that are returned, instead of keeping them.
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
