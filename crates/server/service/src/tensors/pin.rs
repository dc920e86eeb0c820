//! Memory of tensors that this process itself needs.

use std::sync::Arc;

use uuid::Uuid;

use warpgauge_shared_tensors::TensorHolders;

/// A lease that holds until this is dropped, by whichever thread: the memory stays, also if somebody deletes
/// the tensor meanwhile.
pub(super) struct Pin {
    holders: Arc<dyn TensorHolders>,
    owner: String,
    lease: Uuid,
}

impl Pin {
    /// Of a lease that has no end of its own.
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
