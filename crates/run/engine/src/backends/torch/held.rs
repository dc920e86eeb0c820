//! A device's lease, and the processes that start or end on the device beside and after an order.
//! The next order's processes create their contexts, and old processes release their memory. Both
//! would disturb timed work. Torch kernels therefore wait for the end of this work after they are
//! loaded and verified (`DeviceNoise`), and other orders before they begin (`Host::quiet_lease`).
//! Functions do not wait.

use std::future::Future;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use super::runs::Side;
use warpgauge_torch::{DeviceNoise, Killer};
use warpgauge_worker::{Fleet, Lease};

/// Time limit for an order's processes to end.
const ENDING: Duration = Duration::from_secs(2);

/// A device's lease. Dropping it releases the device.
pub(super) struct Held {
    lease: Option<Lease>,
    side: Arc<Side>,
    fleet: Arc<Fleet>,
    judged: bool,
    ending: Mutex<Vec<Killer>>,
}

impl Held {
    pub(super) fn new(lease: Lease, side: &Arc<Side>, fleet: &Arc<Fleet>) -> Self {
        let (side, fleet) = (Arc::clone(side), Arc::clone(fleet));
        Self { lease: Some(lease), side, fleet, judged: false, ending: Mutex::default() }
    }

    /// Marks the lease as one for an order with a judge process.
    pub(super) fn judged(mut self) -> Self {
        self.judged = true;
        self
    }

    /// Adds runners that must end before the device counts as quiet again; their owners end them.
    /// Returns the runners of earlier evaluations that have not ended yet.
    pub(super) fn ends(&self, runners: impl IntoIterator<Item = Killer>) -> Vec<Killer> {
        let mut ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        ending.retain(|runner| !runner.gone_by(Instant::now()));
        let earlier = ending.clone();
        ending.extend(runners);
        earlier
    }

    /// Returns the lease, and the runners that must end before the device counts as quiet again.
    pub(super) fn parts(&mut self) -> (Option<&mut Lease>, &Mutex<Vec<Killer>>) {
        (self.lease.as_mut(), &self.ending)
    }

    /// Starts the next order's runners, which create their contexts on the device. Nothing may be
    /// timed until the returned noise has ended. The noise also includes the end of the runners in
    /// `ending`.
    pub(super) fn makes_next(&self, ending: Vec<Killer>) -> Option<DeviceNoise> {
        let side = Arc::clone(&self.side);
        let (end, other) = UnixStream::pair().ok()?;
        tokio::spawn(async move {
            // The processes of earlier orders must have ended, too.
            let noise = async { Arc::clone(&side.noise).write_owned().await.downgrade() };
            let made = tokio::join!(noise, gone(ending), side.runners.replenish());
            drop((made, other));
        });
        Some(DeviceNoise(end))
    }
}

/// Waits until the runners have ended, up to a limit.
async fn gone(ending: Vec<Killer>) {
    let until = Instant::now() + ENDING;
    let wait = move || {
        ending.iter().for_each(|runner| {
            runner.gone_by(until);
        });
    };
    let _ = tokio::task::spawn_blocking(wait).await;
}

impl Drop for Held {
    fn drop(&mut self) {
        let (Some(lease), Ok(runtime)) = (self.lease.take(), Handle::try_current()) else { return };
        let (side, judged) = (Arc::clone(&self.side), self.judged);
        let ending = std::mem::take(self.ending.get_mut().unwrap_or_else(PoisonError::into_inner));
        // Preparations for later orders do not delay an order that already waits for a device.
        let is_wanted = self.fleet.waiting() > 0;
        // Queued while the lease is still held, so that the next holder's wait for a quiet device
        // includes this work.
        let mut noise = Box::pin(Arc::clone(&side.noise).read_owned());
        let queued = noise.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        runtime.spawn(async move {
            let noise = async {
                match queued {
                    Poll::Ready(noise) => noise,
                    Poll::Pending => noise.await,
                }
            };
            let (noise, (), ()) = tokio::join!(noise, gone(ending), side.judges.left());
            if !is_wanted {
                let judge = async {
                    if judged {
                        side.judges.prepared().await;
                    }
                };
                tokio::join!(judge, side.runners.replenish());
            }
            drop(noise);
        });
        drop(lease);
    }
}
