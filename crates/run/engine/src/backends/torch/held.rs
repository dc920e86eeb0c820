//! A device's lease, and the work on the device beside and after an order: the next order's processes create
//! their contexts, and old processes release their memory. Both would disturb timed work, which therefore waits
//! for them (`DeviceNoise` within an order, `Host::quiet_lease` between orders). Functions do not wait.

use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use super::runs::Side;
use warpgauge_torch::{DeviceNoise, Killer};
use warpgauge_worker::{Fleet, Lease};

/// Limit on the wait for the end of an order's processes.
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

    /// Marks the lease as one for an order that takes a judge process.
    pub(super) fn judged(mut self) -> Self {
        self.judged = true;
        self
    }

    /// Adds runners that must end before the device counts as quiet again. Other code ends them.
    pub(super) fn ends(&self, runners: impl IntoIterator<Item = Killer>) {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner).extend(runners);
    }

    /// The lease, and the runners that must end before the device counts as quiet again.
    pub(super) fn parts(&mut self) -> (Option<&mut Lease>, &Mutex<Vec<Killer>>) {
        (self.lease.as_mut(), &self.ending)
    }

    /// Starts the next order's runners now, which create their contexts. Nothing may be timed before the
    /// returned noise ends.
    pub(super) fn makes_next(&self) -> Option<DeviceNoise> {
        let side = Arc::clone(&self.side);
        let noise = Arc::clone(&side.noise).try_read_owned().ok()?;
        let (end, other) = UnixStream::pair().ok()?;
        tokio::spawn(async move {
            side.runners.replenish().await;
            drop((noise, other));
        });
        Some(DeviceNoise(end))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let (Some(lease), Ok(runtime)) = (self.lease.take(), Handle::try_current()) else { return };
        let (side, judged) = (Arc::clone(&self.side), self.judged);
        let ending = std::mem::take(self.ending.get_mut().unwrap_or_else(PoisonError::into_inner));
        // Preparations for later orders do not delay an order that already waits for a device.
        let is_wanted = self.fleet.waiting() > 0;
        // Only a holder of the lease waits for quiet, and the lease is still held here, so this succeeds.
        let noise = Arc::clone(&side.noise).try_read_owned();
        runtime.spawn(async move {
            let gone = tokio::task::spawn_blocking(move || {
                let until = Instant::now() + ENDING;
                ending.iter().for_each(|runner| {
                    runner.gone_by(until);
                });
            });
            let _ = tokio::join!(gone, side.judges.left());
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
