//! A device's lease, and what is done there after an order: its processes give up what they had, and those of
//! the next order make their contexts. Both would disturb whoever is timed, who waits for it
//! (`Host::quiet_lease`); functions do not.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use super::runs::Side;
use warpgauge_torch::Killer;
use warpgauge_worker::{Fleet, Lease};

/// Longest time that the end of an order's processes is waited for.
const ENDING: Duration = Duration::from_secs(2);

/// A lease. Dropping it gives the device back.
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

    /// One for an order that takes a process which judges.
    pub(super) fn judged(mut self) -> Self {
        self.judged = true;
        self
    }

    /// Names runners, which others end, and whose end is waited for afterwards.
    pub(super) fn ends(&self, runners: impl IntoIterator<Item = Killer>) {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner).extend(runners);
    }

    /// The lease, and whose end is waited for afterwards.
    pub(super) fn parts(&mut self) -> (Option<&mut Lease>, &Mutex<Vec<Killer>>) {
        (self.lease.as_mut(), &self.ending)
    }

    /// Has the next order's runners make their contexts now: for orders that are not timed.
    pub(super) fn makes_next(&self) {
        let side = Arc::clone(&self.side);
        if let Ok(noise) = Arc::clone(&side.noise).try_read_owned() {
            tokio::spawn(async move {
                side.runners.replenish().await;
                drop(noise);
            });
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let (Some(lease), Ok(runtime)) = (self.lease.take(), Handle::try_current()) else { return };
        let (side, judged) = (Arc::clone(&self.side), self.judged);
        let ending = std::mem::take(self.ending.get_mut().unwrap_or_else(PoisonError::into_inner));
        // Whoever waits for a device already does not wait for the convenience of others.
        let is_wanted = self.fleet.waiting() > 0;
        // Whoever waits for quiet has the lease: nobody does.
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
