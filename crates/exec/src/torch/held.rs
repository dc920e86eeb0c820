//! A device's lease, and what is made there before it goes back: contexts for the next order. Making them
//! later would disturb whoever is timed.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::runs::Side;
use warpgauge_worker::{Fleet, Lease};

/// A lease. Dropping it gives the device back, once what waits for the next order is ready.
pub(super) struct Held {
    lease: Option<Lease>,
    side: Arc<Side>,
    fleet: Arc<Fleet>,
    judged: bool,
}

impl Held {
    pub(super) fn new(lease: Lease, side: &Arc<Side>, fleet: &Arc<Fleet>) -> Self {
        let (side, fleet) = (Arc::clone(side), Arc::clone(fleet));
        Self { lease: Some(lease), side, fleet, judged: false }
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
        runtime.spawn(async move {
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
