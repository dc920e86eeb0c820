//! Jobs that wait in the store: as many are claimed as the devices can use, and one more each, to
//! be compiled meanwhile. While all these places are taken, as many again are there for owners that have none:
//! what a job waits for within a place, a compiler say, others may not need.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinHandle;

use super::Needs;
use super::accepted::Accepted;
use super::carry_out::{Keep, Runner, Task};
use super::live::Stop;
use super::outcome;
use crate::admission::{Admission, Admitted};
use crate::error::{ServiceError, chain};
use crate::records::{self, CodecError};
use warpgauge_executor::Executor;
use warpgauge_store::{ClaimedJob, Store};

/// Pause after the store failed, or there was no place for files or no device: what helps, room on the
/// disk say, tells nobody.
const PAUSE: Duration = Duration::from_secs(1);

/// The task that claims jobs.
pub(crate) struct Dispatcher {
    stop: watch::Sender<bool>,
    task: std::sync::Mutex<Option<JoinHandle<()>>>,
}

impl Dispatcher {
    /// Starts claiming jobs for this runner. Where several keys share the devices (`shared`), there are extra
    /// places for owners that have none.
    pub(super) fn start(needs: &Needs, runner: &Arc<Runner>, shared: bool) -> Self {
        let stop = watch::Sender::new(false);
        let devices = needs.executor.offer().devices.len();
        let task = (devices > 0).then(|| {
            let count = 2 * devices;
            let extra = if shared { count } else { 0 };
            let claimer = Claimer {
                store: needs.store.clone(),
                executor: Arc::clone(&needs.executor),
                admission: Arc::clone(&needs.admission),
                runner: Arc::clone(runner),
                places: Arc::new(Places::new(count, extra)),
                told: false,
            };
            tokio::spawn(claim_all(claimer, stop.subscribe()))
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

/// Places of jobs that were claimed.
struct Places {
    plain: Arc<Semaphore>,
    /// For those who have no job in a place.
    extra: Arc<Semaphore>,
    /// Those who have, each as often as it has.
    owners: Mutex<Vec<String>>,
}

/// A place of a job that was claimed, given back when dropped.
pub(super) struct ClaimedPlace {
    places: Arc<Places>,
    owner: Option<String>,
    is_extra: bool,
    _permit: OwnedSemaphorePermit,
}

impl Places {
    fn new(count: usize, extra: usize) -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self { plain: places(count), extra: places(extra), owners: Mutex::default() }
    }

    /// A plain place if there is one, else an extra one; waits where there is neither.
    async fn place(self: &Arc<Self>) -> Option<ClaimedPlace> {
        let plain = Arc::clone(&self.plain).try_acquire_owned();
        let (permit, is_extra) = match plain {
            Ok(permit) => (permit, false),
            Err(_) => match Arc::clone(&self.extra).try_acquire_owned() {
                Ok(permit) => (permit, true),
                Err(_) => (Arc::clone(&self.plain).acquire_owned().await.ok()?, false),
            },
        };
        Some(ClaimedPlace { places: Arc::clone(self), owner: None, is_extra, _permit: permit })
    }

    /// Comes back when a plain place is free.
    async fn plain_is_free(&self) {
        let _ = self.plain.acquire().await;
    }

    fn owners(&self) -> MutexGuard<'_, Vec<String>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClaimedPlace {
    /// Owners that may not have it.
    fn not_of(&self) -> Vec<String> {
        if !self.is_extra {
            return Vec::new();
        }
        let mut owners = self.places.owners().clone();
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    fn given_to(mut self, owner: &str) -> Self {
        self.places.owners().push(owner.to_owned());
        self.owner = Some(owner.to_owned());
        self
    }
}

impl Drop for ClaimedPlace {
    fn drop(&mut self) {
        let Some(owner) = &self.owner else { return };
        let mut owners = self.places.owners();
        if let Some(at) = owners.iter().position(|one| one == owner) {
            owners.swap_remove(at);
        }
    }
}

/// What came of a turn.
enum Turn {
    Begun,
    NothingWaits,
    /// Nothing can be begun now.
    Trouble,
}

/// Claims jobs and has them run.
struct Claimer {
    store: Store,
    executor: Arc<dyn Executor>,
    admission: Arc<Admission>,
    runner: Arc<Runner>,
    places: Arc<Places>,
    /// Whether the log says that no device works.
    told: bool,
}

async fn claim_all(mut claimer: Claimer, mut stop: watch::Receiver<bool>) {
    loop {
        let next = async {
            // No semaphore is ever closed, and nobody else waits for what is admitted.
            let place = claimer.places.place().await?;
            let admitted = claimer.admission.admit_server().await?;
            Some((place, admitted))
        };
        let next = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            next = next => next,
        };
        let Some((place, admitted)) = next else { return };
        let is_extra = place.is_extra;
        // Not to be dropped half way: a claimed job must be begun.
        match claimer.take_turn(place, admitted).await {
            Turn::Begun => {}
            Turn::NothingWaits => tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = claimer.places.plain_is_free(), if is_extra => {}
                () = claimer.store.queue().wait_for_work() => {}
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

impl Claimer {
    /// Claims the next job and begins it.
    async fn take_turn(&mut self, place: ClaimedPlace, admitted: Admitted) -> Turn {
        if let Err(error) = self.executor.offer().default_device() {
            if !std::mem::replace(&mut self.told, true) {
                tracing::error!(error = chain(&error), "jobs wait");
            }
            return Turn::Trouble;
        }
        self.told = false;
        match self.store.queue().claim_of_others(place.not_of()).await {
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
    async fn put_off(&self, claimed: ClaimedJob, why: &ServiceError) {
        let job = claimed.job.id;
        tracing::error!(job, error = chain(why), "a job cannot be begun, and waits");
        if let Err(error) = self.store.queue().release(claimed.lease).await {
            tracing::error!(job, error = chain(&error), "nor be given back yet");
        }
    }

    async fn begin_claimed(&self, claimed: ClaimedJob, admitted: Admitted, place: ClaimedPlace) {
        let ClaimedJob { job: row, request, lease } = claimed;
        let (attempt, again) = (u32::from(row.attempts), row.attempts < row.max_attempts);
        let kind = row.kind;
        let request = match records::decoded(kind, request).await {
            Ok(request) => request,
            Err(CodecError::Failed(error)) if again => {
                // Dropped, the lease gives the job back, which is an attempt.
                tracing::error!(job = row.id, %error, "a stored request cannot be read now");
                return;
            }
            Err(error) => {
                tracing::error!(job = row.id, %error, "a stored request cannot be used");
                if let Err(error) =
                    self.store.queue().finish(lease, outcome::unreadable(&error)).await
                {
                    tracing::error!(job = row.id, error = chain(&error), "nor be ended");
                }
                return;
            }
        };
        let job = self.runner.live_job(row.id, kind, &row.owner, attempt, None);
        if row.cancel_requested {
            job.stop(Stop::Cancelled);
        }
        *job.lease() = Some(lease);
        self.runner.begin(Task {
            job,
            request: Accepted::stored(request),
            admitted,
            place: Some(place.given_to(&row.owner)),
            to_accept: None,
            keep: Keep::Whole,
            returns: true,
            again,
            answer: None,
        });
    }
}
