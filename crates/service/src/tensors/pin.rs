//! Memory of tensors that this process itself needs.

use std::sync::Arc;

use uuid::Uuid;

use crate::shared::Shared;

/// A lease that holds until this is dropped, by whichever thread: the memory stays, also if somebody deletes
/// the tensor meanwhile.
pub(super) struct Pin {
    shared: Arc<Shared>,
    owner: String,
    lease: Uuid,
}

impl Pin {
    /// Of a lease that has no end of its own.
    pub(super) fn of(shared: &Arc<Shared>, owner: &str, lease: Uuid) -> Self {
        Self { shared: Arc::clone(shared), owner: owner.to_owned(), lease }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let tensors = &self.shared.tensors;
        if let Some((_, freed)) = tensors.registry().release(self.lease, &self.owner) {
            tensors.free_later(freed.into_iter().collect());
        }
    }
}
