//! Pools of permits. Owners take turns to receive permits.

use std::time::Duration;

use super::error::ServiceError;
use warpgauge_config::Config;
use warpgauge_turns::{Owner, Pool, PoolBounds, PoolFull, PoolPermit};

/// Maximum number of requests that wait for a permit of one pool. It is higher than the number of
/// connections.
const MAX_WAITING: usize = 100_000;

/// Creates a pool of permits for requests that read or write files and tensors. The permits limit
/// the memory that such requests use at the same time.
pub(super) fn pool(permits: usize, config: &Config) -> Pool {
    let (waiting, shared) = (MAX_WAITING, config.server.has_several_keys());
    Pool::new(PoolBounds { places: permits, extra: 0, waiting, shared, least: 1 })
}

/// Waits for a permit. Owners take turns.
///
/// # Errors
///
/// [`ServiceError::QueueFull`] if too many requests wait.
pub(super) async fn in_turn(pool: &Pool, owner: &str) -> Result<PoolPermit, ServiceError> {
    pool.take(Owner::named(owner)).await.map_err(queue_full)
}

/// Returns the error for a pool that accepts no more requests.
pub(super) fn queue_full(full: PoolFull) -> ServiceError {
    let (waiting, own) = match full {
        PoolFull::All(waiting) => (waiting, false),
        PoolFull::Share(waiting) => (waiting, true),
    };
    ServiceError::QueueFull { waiting, own, retry_after: Duration::from_secs(1) }
}
