//! Copies of shared tensors that stay on their device, for requests whose callers wait for the answer.
//!
//! Such a copy goes with the process that holds it, so whoever is promised that a job survives gets one that
//! goes through the host. It is memory that kernels lack: so all of them together have a share of it, and a
//! copy that does not find room goes through the host, too.

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

/// Of a device's memory, copies have one part in so many.
const SHARE: u64 = 8;

/// What their room is counted in, bytes.
const UNIT: u64 = 1 << 20;

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

/// Room for copies on each device, by ordinal.
type CopyRoom = BTreeMap<u32, Arc<Semaphore>>;

/// Makes copies that stay on their device.
pub(super) struct DeviceCopies {
    holders: Arc<dyn TensorHolders>,
    executor: Arc<dyn Executor>,
    room: CopyRoom,
}

/// All the room that these have for copies.
fn copy_room(devices: &[OfferedDevice]) -> CopyRoom {
    let room = |device: &OfferedDevice| {
        let units = device.info.memory_bytes / SHARE / UNIT;
        // More than can be counted is as good as that.
        let units = usize::try_from(units)
            .map_or(Semaphore::MAX_PERMITS, |units| units.min(Semaphore::MAX_PERMITS));
        (device.info.ordinal, Arc::new(Semaphore::new(units)))
    };
    devices.iter().map(room).collect()
}

impl DeviceCopies {
    /// Copies on the devices of this executor, each of which has room for some.
    pub(super) fn new(holders: Arc<dyn TensorHolders>, executor: Arc<dyn Executor>) -> Self {
        let room = copy_room(&executor.offer().devices);
        Self { holders, executor, room }
    }

    /// A copy of a tensor beside it, for a request with these requirements. `staying`: the one device that the
    /// request has copies on, by ordinal, if it has some. `None`: it has to go through the host.
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
        // To its end, whether or not the caller waits for it: memory is held with its books, or not at all.
        let (copies, held) = (Arc::clone(self), held.clone());
        let copying = tokio::spawn(async move { copies.copy_beside(&held, ordinal, room).await });
        let copy = copying.await.ok().flatten()?;
        *staying = Some(ordinal);
        Some(Blob::of_device(copy))
    }

    /// Whether an order can be carried out on this device.
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
