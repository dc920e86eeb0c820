//! Jobs that wait in the store: as many are claimed as the devices can use, and one more each, to
//! be compiled meanwhile.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinHandle;

use super::super::error::{self, ServiceError, chain};
use super::super::shared::{Admitted, Shared};
use super::carry_out::{Keep, Task};
use super::codec::{self, CodecError};
use super::live::{LiveJob, Stop};
use super::outcome;
use warpgauge_store::Claimed;

/// Pause after the store failed, or there was no place for files or no device: what helps, room on the
/// disk say, tells nobody.
const PAUSE: Duration = Duration::from_secs(1);

/// The task that claims jobs.
pub(crate) struct Dispatcher {
    stop: watch::Sender<bool>,
    task: std::sync::Mutex<Option<JoinHandle<()>>>,
}

impl Dispatcher {
    /// Starts claiming.
    pub(crate) fn start(shared: &Arc<Shared>) -> Self {
        let stop = watch::Sender::new(false);
        let devices = shared.executor.offer().devices.len();
        let task = (devices > 0).then(|| {
            let places = Arc::new(Semaphore::new(2 * devices));
            tokio::spawn(claim_all(Arc::downgrade(shared), places, stop.subscribe()))
        });
        Self { stop, task: std::sync::Mutex::new(task) }
    }

    /// Claims no more.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Stops and waits until it has: no job is claimed afterwards.
    pub(crate) async fn stopped(&self) {
        self.stop();
        let task = self.task.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(task) = task
            && let Err(error) = task.await
        {
            tracing::error!(%error, "the dispatcher ended badly");
        }
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What came of a turn.
enum Turn {
    Begun,
    NothingWaits,
    /// Nothing can be begun now.
    Trouble,
}

async fn claim_all(shared: Weak<Shared>, places: Arc<Semaphore>, mut stop: watch::Receiver<bool>) {
    let mut told = false;
    loop {
        let Some(shared) = shared.upgrade() else { return };
        let next = async {
            // Neither semaphore is ever closed.
            let place = Arc::clone(&places).acquire_owned().await.ok()?;
            let admitted = Arc::clone(&shared.admission).acquire_owned().await.ok()?;
            Some((place, admitted))
        };
        let next = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            next = next => next,
        };
        let Some((place, admitted)) = next else { return };
        // Not to be dropped half way: a claimed job must be begun.
        match shared.take_turn(place, admitted, &mut told).await {
            Turn::Begun => {}
            Turn::NothingWaits => tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = shared.store.wait_for_work() => {}
            },
            Turn::Trouble => {
                if paused(&mut stop).await {
                    return;
                }
            }
        }
    }
}

/// Lets [`PAUSE`] pass; whether the dispatcher is to stop.
async fn paused(stop: &mut watch::Receiver<bool>) -> bool {
    tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => true,
        () = tokio::time::sleep(PAUSE) => false,
    }
}

impl Shared {
    /// Claims the next job and begins it. `told`: whether it was told that no device works.
    async fn take_turn(
        self: &Arc<Self>,
        place: OwnedSemaphorePermit,
        admitted: Admitted,
        told: &mut bool,
    ) -> Turn {
        if let Err(error) = self.default_device() {
            if !std::mem::replace(told, true) {
                tracing::error!(error = chain(&error), "jobs wait");
            }
            return Turn::Trouble;
        }
        *told = false;
        match self.store.claim().await {
            Ok(Some(claimed)) => {
                match self.executor.has_place().await.map_err(ServiceError::from) {
                    Ok(()) => {
                        self.begin_claimed(claimed, admitted, place).await;
                        Turn::Begun
                    }
                    Err(error) => {
                        self.put_off(claimed, &error).await;
                        Turn::Trouble
                    }
                }
            }
            Ok(None) => Turn::NothingWaits,
            Err(error) => {
                tracing::error!(error = chain(&error), "cannot claim a job");
                Turn::Trouble
            }
        }
    }

    /// Has a job wait that cannot be begun for want of a place: it would fail, and it need not.
    async fn put_off(&self, claimed: Claimed, why: &ServiceError) {
        let job = claimed.job.id;
        tracing::error!(job, error = chain(why), "a job cannot be begun, and waits");
        if let Err(error) = self.store.release(claimed.lease).await {
            tracing::error!(job, error = chain(&error), "nor be given back yet");
        }
    }

    async fn begin_claimed(
        self: &Arc<Self>,
        claimed: Claimed,
        admitted: Admitted,
        place: OwnedSemaphorePermit,
    ) {
        let Claimed { job: row, request, lease } = claimed;
        let (attempt, again) = (u32::from(row.attempts), row.attempts < row.max_attempts);
        let kind = codec::from_store(row.kind);
        let request = match codec::decoded(kind, request).await {
            Ok(request) => request,
            Err(CodecError::Failed(error)) if again => {
                // Dropped, the lease gives the job back, which is an attempt.
                tracing::error!(job = row.id, %error, "a stored request cannot be read now");
                return;
            }
            Err(error) => {
                tracing::error!(job = row.id, %error, "a stored request cannot be used");
                if let Err(error) = self.store.finish(lease, outcome::unreadable(&error)).await {
                    tracing::error!(job = row.id, error = error::chain(&error), "nor be ended");
                }
                return;
            }
        };
        let job = LiveJob::new(row.id, kind, &row.owner, attempt, self.run_dir.path());
        if row.cancel_requested {
            job.stop(Stop::Cancelled);
        }
        *job.lease() = Some(lease);
        self.begin(Task {
            job,
            request,
            events: None,
            admitted,
            place: Some(place),
            to_accept: None,
            keep: Keep::Whole,
            returns: true,
            again,
            answer: None,
        });
    }
}
