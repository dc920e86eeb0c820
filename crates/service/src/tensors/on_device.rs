//! Copies of shared tensors that stay on their device, for requests whose callers wait for the answer.
//!
//! Such a copy goes with the process that holds it, so whoever is promised that a job survives gets one that
//! goes through the host. It is memory that kernels lack: so few requests have copies at once, and a copy
//! that does not find room goes through the host, too.

use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use crate::shared::Shared;
use warpgauge_exec::OfferedState;
use warpgauge_holder::{Held, New, Place};
use warpgauge_model::Requirements;
use warpgauge_tensor::{Blob, OnDevice};

/// Requests with copies on devices at once, for each device there is: one that runs, and the next.
pub(crate) const REQUESTS_PER_DEVICE: usize = 2;

/// Smaller tensors go through the host: that takes no longer than opening them.
const LEAST_BYTES: u64 = 1 << 20;

/// Whether copies for a request may stay on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copies {
    /// They must be there whenever, and wherever, it is run.
    ThroughHost,
    /// It is run at once, by this process.
    MayStay,
}

/// The one device that a request has copies on, and its place among those that have.
pub(super) struct Staying {
    device: u32,
    place: Arc<OwnedSemaphorePermit>,
}

impl Shared {
    /// A copy of a tensor beside it, for a request with these requirements. `staying`: where copies for the
    /// same request are, if there are some. `None`: it has to go through the host.
    pub(super) async fn copied_on_device(
        self: &Arc<Self>,
        held: &Held,
        order: &Requirements,
        staying: &mut Option<Staying>,
    ) -> Option<Blob> {
        let Place::Device(ordinal) = held.tensor.place else { return None };
        if held.tensor.bytes < LEAST_BYTES {
            return None;
        }
        if staying.is_none() && self.takes(ordinal, order) {
            let place = Arc::clone(&self.device_copies).try_acquire_owned().ok()?;
            *staying = Some(Staying { device: ordinal, place: Arc::new(place) });
        }
        let Staying { place, .. } = staying.as_ref().filter(|there| there.device == ordinal)?;
        // To its end, whether or not the caller waits for it: memory is held with its books, or not at all.
        let (shared, held, place) = (Arc::clone(self), held.clone(), Arc::clone(place));
        let copying = tokio::spawn(async move { shared.copy_beside(&held, ordinal, place).await });
        copying.await.ok().flatten().map(Blob::of_device)
    }

    /// Whether an order can be carried out on this device.
    fn takes(&self, ordinal: u32, order: &Requirements) -> bool {
        self.executor.offer().devices.iter().any(|device| {
            device.info.ordinal == ordinal
                && order.is_met_by(&device.info.offer())
                && !matches!(device.state, OfferedState::Failed { .. })
        })
    }

    async fn copy_beside(
        self: &Arc<Self>,
        held: &Held,
        device: u32,
        place: Arc<OwnedSemaphorePermit>,
    ) -> Option<OnDevice> {
        let (tensors, bytes) = (&self.tensors, held.tensor.bytes);
        let refused = |why: &dyn std::fmt::Display| {
            tracing::debug!(tensor = %held.id, %why, "a copy of a tensor goes through the host");
        };
        let new = New { name: None, ttl: None, evict: false, ..held.tensor.clone() };
        let owner = new.owner.clone();
        let (room, freed) = tensors.registry().reserve(new, Instant::now());
        tensors.free(freed).await;
        let id = room.map_err(|quota| refused(&quota.0)).ok()?;
        if let Err(error) = tensors.copy(held, id).await {
            tensors.registry().cancel(id);
            refused(&error);
            return None;
        }
        let (lease, copy) =
            tensors.registry().commit_unseen(id, held.generation, Instant::now())?;
        let kept = Kept {
            shared: Arc::clone(self),
            owner,
            lease,
            runtime: Handle::current(),
            _place: place,
        };
        let exported = tensors.export(&copy).await.map_err(|error| refused(&error)).ok()?;
        Some(OnDevice {
            id: id.to_string(),
            device,
            handle: exported.handle?,
            bytes,
            allocation_bytes: exported.allocation_bytes,
            held: Box::new(kept),
        })
    }
}

/// A copy's memory, until this is dropped.
struct Kept {
    shared: Arc<Shared>,
    owner: String,
    lease: Uuid,
    /// Where it is given back: this may be dropped by any thread.
    runtime: Handle,
    _place: Arc<OwnedSemaphorePermit>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _entered = self.runtime.enter();
        let tensors = &self.shared.tensors;
        if let Some((_, freed)) = tensors.registry().release(self.lease, &self.owner) {
            tensors.free_later(freed);
        }
    }
}
