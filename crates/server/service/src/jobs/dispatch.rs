//! Claims jobs that wait in the store: as many as the devices can run, and one more per device,
//! which compiles in the meantime. While all these slots are taken, the same number of extra slots
//! serves owners that have no job in a slot. Such jobs may not need the resource for which the
//! other jobs wait. The main type is [`Dispatcher`].

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

/// Pause after an error of the store, or while no disk space or no device is available. No event
/// signals the end of such a condition.
const PAUSE: Duration = Duration::from_secs(1);

/// The task that claims jobs.
pub(crate) struct Dispatcher {
    stop: watch::Sender<bool>,
    task: std::sync::Mutex<Option<JoinHandle<()>>>,
}

impl Dispatcher {
    /// Starts claiming jobs for this runner. If several keys share the devices (`shared`), extra
    /// slots serve owners that have no job in a slot.
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

    /// Stops claiming jobs.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Stops claiming jobs, and waits until the task has ended. No job is claimed afterwards.
    pub(crate) async fn stopped(&self) {
        self.stop();
        let task = self.task.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(task) = task
            && let Err(error) = task.await
        {
            tracing::error!(%error, "the dispatcher panicked");
        }
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Slots of claimed jobs.
struct Places {
    plain: Arc<Semaphore>,
    /// Slots for owners that have no job in a slot.
    extra: Arc<Semaphore>,
    /// Owners of the jobs in slots, one entry per job.
    owners: Mutex<Vec<String>>,
}

/// The slot of a claimed job. Dropping it frees the slot.
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

    /// Returns a normal slot or, if none is free, an extra one. If all slots are taken, waits for a
    /// normal slot.
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

    /// Waits until a normal slot is free.
    async fn plain_is_free(&self) {
        let _ = self.plain.acquire().await;
    }

    fn owners(&self) -> MutexGuard<'_, Vec<String>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClaimedPlace {
    /// Returns the owners that may not use this slot.
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

/// Result of an attempt to claim a job.
enum Turn {
    Begun,
    NothingWaits,
    /// No job can begin at present.
    Trouble,
}

/// Claims jobs and starts them.
struct Claimer {
    store: Store,
    executor: Arc<dyn Executor>,
    admission: Arc<Admission>,
    runner: Arc<Runner>,
    places: Arc<Places>,
    /// Whether the log already contains the error that no device works.
    told: bool,
}

async fn claim_all(mut claimer: Claimer, mut stop: watch::Receiver<bool>) {
    loop {
        let next = async {
            // The semaphores are never closed, and no other caller waits for a server permit.
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
        // This call must not be cancelled before its end: a claimed job must begin.
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

/// Waits for [`PAUSE`]. Returns whether the dispatcher should stop.
async fn paused(stop: &mut watch::Receiver<bool>) -> bool {
    tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => true,
        () = tokio::time::sleep(PAUSE) => false,
    }
}

impl Claimer {
    /// Claims the next job and starts it.
    async fn take_turn(&mut self, place: ClaimedPlace, admitted: Admitted) -> Turn {
        if let Err(error) = self.executor.offer().default_device() {
            if !std::mem::replace(&mut self.told, true) {
                tracing::error!(error = chain(&error), "jobs wait, because no device works");
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

    /// Requeues a job that cannot begin because of missing disk space. The job would fail now, but
    /// a later attempt may succeed.
    async fn put_off(&self, claimed: ClaimedJob, why: &ServiceError) {
        let job = claimed.job.id;
        tracing::error!(job, error = chain(why), "a job cannot begin, and is requeued");
        if let Err(error) = self.store.queue().release(claimed.lease).await {
            tracing::error!(job, error = chain(&error), "the job cannot be requeued yet");
        }
    }

    async fn begin_claimed(&self, claimed: ClaimedJob, admitted: Admitted, place: ClaimedPlace) {
        let ClaimedJob { job: row, request, lease } = claimed;
        let (attempt, again) = (u32::from(row.attempts), row.attempts < row.max_attempts);
        let kind = row.kind;
        let request = match records::decoded(kind, request).await {
            Ok(request) => request,
            Err(CodecError::Failed(error)) if again => {
                // Dropping the lease requeues the job for another attempt.
                tracing::error!(job = row.id, %error, "a stored request cannot be read now");
                return;
            }
            Err(error) => {
                tracing::error!(job = row.id, %error, "a stored request cannot be used");
                if let Err(error) =
                    self.store.queue().finish(lease, outcome::unreadable(&error)).await
                {
                    tracing::error!(
                        job = row.id,
                        error = chain(&error),
                        "the job cannot be ended either"
                    );
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
