//! A worker beside those that time: started at its first use, kept warm, one of a kind for a device.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::Fleet;
use super::process::{StartPlan, Worker};
use super::restart::RestartPolicy;
use super::slot::Slot;

/// Longest delay before another start that whoever needs the worker waits for.
const WORTH_WAITING: Duration = Duration::from_secs(1);

/// Such a worker, as its device remembers it between leases.
#[derive(Default)]
pub(super) struct Aide {
    pub worker: Option<Worker>,
    restart: RestartPolicy,
    /// Held by whoever starts it: who comes meanwhile waits for that one.
    starting: Arc<Mutex<()>>,
}

/// Where a device has it.
pub(super) type Place = fn(&mut Slot) -> &mut Aide;

impl Fleet {
    /// The worker, started if there is none that can take a job.
    pub(super) async fn take_aide(
        &self,
        slot: usize,
        place: Place,
        plan: &StartPlan,
    ) -> Result<Worker, String> {
        let starting = Arc::clone(&place(&mut self.lock().slots[slot]).starting);
        let _turn = starting.lock().await;
        let kept = place(&mut self.lock().slots[slot]).worker.take();
        if let Some(mut worker) = kept {
            match worker.settle().await {
                Ok(()) => return Ok(worker),
                Err(reason) => tracing::info!(kind = ?plan.kind, %reason, "a worker is replaced"),
            }
        }
        let delay = place(&mut self.lock().slots[slot]).restart.delay(Instant::now());
        if delay <= WORTH_WAITING {
            tokio::time::sleep(delay).await;
        } else {
            let seconds = delay.as_secs_f64();
            return Err(format!("it could not be started before; next try in {seconds:.1} s"));
        }
        let started = Worker::start(plan).await;
        let mut state = self.lock();
        let restart = &mut place(&mut state.slots[slot]).restart;
        match &started {
            Ok(_) => restart.succeeded(),
            Err(_) => drop(restart.failed(Instant::now())),
        }
        started
    }

    /// Keeps it for the next who needs it.
    pub(super) fn keep_aide(&self, slot: usize, place: Place, worker: Worker) {
        let mut state = self.lock();
        if !state.closing {
            place(&mut state.slots[slot]).worker = Some(worker);
        }
    }
}
