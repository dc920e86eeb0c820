//! Limits the number of evaluations in progress. The main type is [`Admission`].

use std::sync::atomic::{AtomicBool, Ordering};

use super::error::ServiceError;
use super::turns::queue_full;
use warpgauge_turns::{Owner, Pool, PoolBounds, PoolPermit};

/// Permit for one evaluation in progress. Dropping it returns the permit.
pub(super) type Admitted = PoolPermit;

/// Admits evaluations. It has a permit for each place in the queue, and one more per device.
pub(super) struct Admission {
    pool: Pool,
    closing: AtomicBool,
}

impl Admission {
    /// Creates an admission with this many permits. If several keys share them (`shared`), one key
    /// may hold only a part. One additional caller, the dispatcher, may wait for a permit.
    pub(super) fn new(permits: usize, shared: bool) -> Self {
        let bounds = PoolBounds { places: permits, extra: 0, waiting: 1, shared, least: 1 };
        Self { pool: Pool::new(bounds), closing: AtomicBool::new(false) }
    }

    /// Admits an evaluation of this owner at once.
    ///
    /// # Errors
    /// [`ServiceError::QueueFull`] if no permit is left, and
    /// [`ExecError::ShuttingDown`](warpgauge_executor::ExecError::ShuttingDown) after
    /// [`Self::close`].
    pub(super) fn admit(&self, owner: &str) -> Result<Admitted, ServiceError> {
        if self.is_closing() {
            return Err(ServiceError::shutting_down());
        }
        self.pool.try_take(Owner::named(owner), 1).map_err(queue_full)
    }

    /// Waits for a permit on behalf of the server. Returns `None` if another caller is already
    /// waiting.
    pub(super) async fn admit_server(&self) -> Option<Admitted> {
        self.pool.take(Owner::SERVER).await.ok()
    }

    /// Returns additional permits for a sweep, which already holds one. The sweep receives them
    /// only while the queue is at most half full. A sweep holds at most two permits per device: one
    /// point runs while the next compiles or waits. So a sweep never takes more than one place in
    /// the queue per device.
    pub(super) fn more_lanes(&self, owner: &str, devices: usize) -> Vec<Admitted> {
        let most = 2 * devices;
        let mut lanes = Vec::new();
        while lanes.len() + 1 < most && self.pool.free() > self.pool.bounds().places / 2 {
            // If the pool is full or closing, the sweep continues with the permits that it has.
            let Ok(lane) = self.admit(owner) else { break };
            lanes.push(lane);
        }
        lanes
    }

    /// Rejects every evaluation from now on.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }

    /// Returns whether the service is shutting down.
    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_executor::ExecError;

    #[test]
    fn a_sweep_takes_more_lanes_while_the_queue_is_at_most_half_full() {
        let admission = Admission::new(8, false);
        let own = admission.admit("a").unwrap();
        let lanes = admission.more_lanes("a", 2);
        assert_eq!(lanes.len(), 3, "two for each device, with its own");
        let more = admission.more_lanes("b", 2);
        assert!(more.is_empty(), "half of the queue is taken");
        drop((own, lanes));
        admission.close();
        assert!(matches!(admission.admit("a"), Err(ServiceError::Exec(ExecError::ShuttingDown))));
        assert!(admission.is_closing() && admission.more_lanes("a", 2).is_empty());
    }
}
