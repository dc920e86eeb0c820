//! Leases on tensors that this process uses. The main type is [`Pin`].

use std::sync::Arc;

use uuid::Uuid;

use warpgauge_shared_tensors::TensorHolders;

/// A lease that lasts until this value is dropped. The memory remains even if a caller deletes the
/// tensor in the meantime.
pub(super) struct Pin {
    holders: Arc<dyn TensorHolders>,
    owner: String,
    lease: Uuid,
}

impl Pin {
    /// Wraps a lease that does not expire.
    pub(super) fn of(holders: &Arc<dyn TensorHolders>, owner: &str, lease: Uuid) -> Self {
        Self { holders: Arc::clone(holders), owner: owner.to_owned(), lease }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if let Some((_, freed)) = self.holders.registry().release(self.lease, &self.owner) {
            self.holders.free_later(freed.into_iter().collect());
        }
    }
}
