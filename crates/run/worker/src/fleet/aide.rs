//! A worker beside those that time: started at its first use, kept warm, one of a kind for a device.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::process::{StartPlan, Worker};
use super::restart::RestartPolicy;

/// Longest delay before another start that whoever needs the worker waits for.
const WORTH_WAITING: Duration = Duration::from_secs(1);

/// Such a worker, as its device remembers it between leases.
pub(super) struct Aide {
    /// How to start it.
    plan: StartPlan,
    state: Mutex<Kept>,
    /// Held by whoever starts it: who comes meanwhile waits for that one.
    starting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Kept {
    worker: Option<Worker>,
    restart: RestartPolicy,
    /// Whether the fleet shuts down, so that it is not kept any more.
    closing: bool,
}

impl Aide {
    pub(super) fn new(plan: StartPlan) -> Self {
        Self { plan, state: Mutex::default(), starting: tokio::sync::Mutex::default() }
    }

    /// The worker, started if there is none that can take a job.
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

    /// The worker, if it is free and was started before.
    pub(super) fn take_kept(&self) -> Option<Worker> {
        self.lock().worker.take()
    }

    /// Keeps it for the next who needs it.
    pub(super) fn keep(&self, worker: Worker) {
        let mut state = self.lock();
        if !state.closing {
            state.worker = Some(worker);
        }
    }

    /// Keeps none from now on that is given back.
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
