//! Copies of shared tensors that stay on their device. They are made for requests whose callers
//! wait for the result.
//!
//! The process that holds such a copy may die, so a job that must outlive it gets a copy through
//! the host. Copies also take memory that kernels need. So all copies together may take only a
//! share of the device's memory, and additional copies go through the host too. The main type is
//! [`DeviceCopies`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::pin::Pin;
use super::put::Reserved;
use warpgauge_executor::{Executor, OfferedDevice};
use warpgauge_model::{DeviceState, Requirements};
use warpgauge_shared_tensors::{HeldTensor, NewTensor, TensorHolders, TensorLocation};
use warpgauge_tensor::{Blob, OnDevice};

/// Divisor of a device's memory. The quotient is the maximum size of all copies together.
const SHARE: u64 = 8;

/// Unit in which the memory for copies is counted, bytes.
const UNIT: u64 = 1 << 20;

/// Minimum size of a tensor that is copied on the device, bytes. For smaller tensors, a copy
/// through the host takes no longer.
const LEAST_BYTES: u64 = 1 << 20;

/// Whether copies for a request may stay on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copies {
    /// The copies must be available at any time and in any process that runs the request.
    ThroughHost,
    /// The copies may stay, because this process runs the request at once.
    MayStay,
}

/// Number of free units for copies on each device, by ordinal.
type CopyRoom = BTreeMap<u32, Arc<Semaphore>>;

/// Makes copies that stay on their device.
pub(super) struct DeviceCopies {
    holders: Arc<dyn TensorHolders>,
    executor: Arc<dyn Executor>,
    room: CopyRoom,
}

/// Returns the number of units for copies on each device.
fn copy_room(devices: &[OfferedDevice]) -> CopyRoom {
    let room = |device: &OfferedDevice| {
        let units = device.info.memory_bytes / SHARE / UNIT;
        // A semaphore cannot count higher.
        let units = usize::try_from(units)
            .map_or(Semaphore::MAX_PERMITS, |units| units.min(Semaphore::MAX_PERMITS));
        (device.info.ordinal, Arc::new(Semaphore::new(units)))
    };
    devices.iter().map(room).collect()
}

impl DeviceCopies {
    /// Creates a maker of copies for the devices of this executor. Copies are limited to a share of
    /// each device's memory.
    pub(super) fn new(holders: Arc<dyn TensorHolders>, executor: Arc<dyn Executor>) -> Self {
        let room = copy_room(&executor.offer().devices);
        Self { holders, executor, room }
    }

    /// Copies a tensor on its device, for a request with these requirements. `staying` is the
    /// ordinal of the device that already contains copies for the request, if any. Returns `None`
    /// if the copy must go through the host.
    pub(super) async fn copied(
        self: &Arc<Self>,
        held: &HeldTensor,
        order: &Requirements,
        staying: &mut Option<u32>,
    ) -> Option<Blob> {
        let TensorLocation::Device(ordinal) = held.tensor.place else { return None };
        if held.tensor.bytes < LEAST_BYTES {
            return None;
        }
        let taken = match *staying {
            Some(there) => there == ordinal,
            None => self.takes(ordinal, order),
        };
        let units = held.tensor.place.occupied(held.tensor.bytes).div_ceil(UNIT);
        let room = self.room.get(&ordinal).filter(|_| taken)?;
        let room = Arc::clone(room).try_acquire_many_owned(u32::try_from(units).ok()?).ok()?;
        // The task continues even if the caller leaves, because the memory and its entry in the
        // registry must exist together or not at all.
        let (copies, held) = (Arc::clone(self), held.clone());
        let copying = tokio::spawn(async move { copies.copy_beside(&held, ordinal, room).await });
        let copy = copying.await.ok().flatten()?;
        *staying = Some(ordinal);
        Some(Blob::of_device(copy))
    }

    /// Returns whether this device meets the requirements and works.
    fn takes(&self, ordinal: u32, order: &Requirements) -> bool {
        self.executor.offer().devices.iter().any(|device| {
            device.info.ordinal == ordinal
                && order.is_met_by(&device.info.offer())
                && !matches!(device.state, DeviceState::Failed { .. })
        })
    }

    async fn copy_beside(
        &self,
        held: &HeldTensor,
        device: u32,
        room: OwnedSemaphorePermit,
    ) -> Option<OnDevice> {
        let (holders, bytes) = (&self.holders, held.tensor.bytes);
        let refused = |why: &dyn std::fmt::Display| {
            tracing::debug!(tensor = %held.id, %why, "a copy of a tensor goes through the host");
        };
        let new = NewTensor { name: None, ttl: None, evict: false, ..held.tensor.clone() };
        let reserved = Reserved::new(holders.as_ref(), new).await;
        let reserved = reserved.map_err(|quota| refused(&quota.0)).ok()?;
        let id = reserved.id;
        holders.copy(held, id).await.map_err(|error| refused(&error)).ok()?;
        let (lease, copy) =
            holders.registry().commit_unseen(id, held.generation, Instant::now())?;
        let pin = Pin::of(holders, &held.tensor.owner, lease);
        let exported = holders.export(&copy, false).await.map_err(|error| refused(&error)).ok()?;
        Some(OnDevice {
            id: id.to_string(),
            device,
            handle: exported.handle?,
            bytes,
            allocation_bytes: exported.allocation_bytes,
            held: Box::new((pin, room)),
        })
    }
}
