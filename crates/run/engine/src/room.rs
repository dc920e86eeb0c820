//! Limit on the disk space for the tensor data of all requests together. The main type is [`Room`].

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::error::ExecError;

/// Size of a unit of disk space, bytes. Data smaller than a unit is not counted.
const UNIT_BYTES: u64 = 1 << 20;

/// Number of requests of maximum size that fit at once. A comparison prepares up to seven kernels
/// with the same data.
const REQUESTS: u64 = 8;

/// Maximum time to wait for disk space. It also ends a deadlock of two requests that each hold
/// space and wait for more.
const PATIENCE: Duration = Duration::from_secs(60);

/// A limited amount of disk space, which requests share.
pub(crate) struct Room {
    units: Arc<Semaphore>,
    all: u32,
    patience: Duration,
}

/// A share of the disk space. Dropping it releases the space.
#[derive(Debug, Default)]
pub(crate) struct RoomShare {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Room {
    /// Creates the limit for requests with at most `max_decoded_bytes` each.
    pub(crate) fn new(max_decoded_bytes: u64) -> Self {
        let units = max_decoded_bytes.div_ceil(UNIT_BYTES).saturating_mul(REQUESTS);
        let most = u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX);
        let all = u32::try_from(units).unwrap_or(u32::MAX).min(most);
        Self { units: Arc::new(Semaphore::new(all as usize)), all, patience: PATIENCE }
    }

    /// Reserves disk space for `bytes` bytes. Callers are served in the order of their calls.
    ///
    /// # Errors
    /// Fails if no space becomes free within [`PATIENCE`].
    pub(crate) async fn share(&self, bytes: u64) -> Result<RoomShare, ExecError> {
        if bytes < UNIT_BYTES {
            return Ok(RoomShare::default());
        }
        // A request larger than the whole space gets all of it.
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).min(self.all);
        let taken = Arc::clone(&self.units).acquire_many_owned(units);
        match timeout(self.patience, taken).await {
            Ok(permit) => Ok(RoomShare { _permit: permit.ok() }),
            Err(_) => Err(ExecError::Unavailable(format!(
                "no disk space for {bytes} bytes of tensor data: other requests use all the space that tensor \
                 data may occupy, and did not end within {} s; try again later, or raise \
                 limits.max_decoded_bytes",
                self.patience.as_secs()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_requests_together_have_so_much_room() {
        let room = Room { patience: Duration::from_millis(1), ..Room::new(4 << 20) };
        let mut taken = Vec::new();
        for _ in 0..REQUESTS {
            taken.push(room.share(4 << 20).await.unwrap());
        }
        let refused = room.share(1 << 20).await.unwrap_err();
        assert!(refused.to_string().contains("limits.max_decoded_bytes"), "{refused}");
        room.share(1_000).await.unwrap();
        taken.pop();
        let again = room.share(4 << 20).await.unwrap();
        drop((taken, again));
        room.share(u64::MAX).await.unwrap();
    }
}
