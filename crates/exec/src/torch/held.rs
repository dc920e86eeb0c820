//! A device's lease, and what is done there before it goes back: an order's processes give up what they had,
//! and those of the next order make their contexts. Later both would disturb whoever is timed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use super::runs::Side;
use warpgauge_torch::Killer;
use warpgauge_worker::{Fleet, Lease};

/// Longest time that the end of an order's processes is waited for.
const ENDING: Duration = Duration::from_secs(2);

/// A lease. Dropping it gives the device back, once what waits for the next order is ready.
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

    /// Has these runners end before the device goes back.
    pub(super) fn ends_first(&self, runners: impl IntoIterator<Item = Killer>) {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner).extend(runners);
    }

    /// One for an order that takes a process which judges.
    pub(super) fn judged(mut self) -> Self {
        self.judged = true;
        self
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let (Some(lease), Ok(runtime)) = (self.lease.take(), Handle::try_current()) else { return };
        let (side, fleet, judged) = (Arc::clone(&self.side), Arc::clone(&self.fleet), self.judged);
        let ending = std::mem::take(self.ending.get_mut().unwrap_or_else(PoisonError::into_inner));
        runtime.spawn(async move {
            let gone = tokio::task::spawn_blocking(move || {
                let until = Instant::now() + ENDING;
                ending.iter().for_each(Killer::kill);
                ending.iter().for_each(|runner| {
                    runner.gone_by(until);
                });
            });
            let _ = tokio::join!(gone, side.judges.left());
            // Whoever waits for a device already does not wait for the convenience of others.
            if fleet.waiting() == 0 {
                let judge = async {
                    if judged {
                        side.judges.prepared().await;
                    }
                };
                tokio::join!(judge, side.runners.replenish());
            }
            drop(lease);
        });
    }
}
