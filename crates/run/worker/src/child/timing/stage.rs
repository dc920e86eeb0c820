//! One launch between two events, with the preparation right before it.

use crate::child::device::executor::TimingAids;
use crate::child::launch::library_call::AddressOf;
use crate::child::launch::program::LoadedProgram;
use crate::protocol::TimedLaunch;
use warpgauge_device::support::Support;
use warpgauge_device::{DeviceBuffer, DeviceError, Event, Stream};
use warpgauge_model::CacheState;

/// Device resources for a timed launch.
pub(in crate::child) struct Stage<'a> {
    pub stream: &'a Stream,
    pub support: &'a Support,
    /// Memory that is written to evict all other data from L2.
    pub flush: Option<&'a DeviceBuffer>,
    pub aids: Option<&'a mut TimingAids>,
}

impl Stage<'_> {
    /// Queues the preparation of a launch. Restores scratch memory and, if requested, resets
    /// variables, clears shared memory and flushes L2.
    pub(in crate::child) fn clear(
        &mut self,
        arm: &mut LoadedProgram,
        address: AddressOf<'_>,
        forget: bool,
        how: TimedLaunch,
    ) -> Result<(), DeviceError> {
        let stream = self.stream;
        if forget {
            arm.forget(stream)?;
        }
        arm.renew(address, stream)?;
        if let (true, Some(aids)) = (how.wipe_shared, &mut self.aids) {
            aids.wipe.queue(stream)?;
        }
        match (how.cache, self.flush) {
            (CacheState::Cold, Some(flush)) => flush.fill(0, stream),
            _ => Ok(()),
        }
    }

    /// Queues one launch on the buffers at these addresses: the requested preparation, the launch
    /// between its events, and the copies of variables that it wrote.
    pub(in crate::child) fn queue(
        &mut self,
        arm: &mut LoadedProgram,
        address: AddressOf<'_>,
        preparation: (bool, TimedLaunch),
        events: [&Event; 2],
    ) -> Result<(), DeviceError> {
        self.prepare(arm, address, preparation)?;
        self.launch(arm, address, events)
    }

    /// Queues the preparation of a launch, and then the blocking kernel, if the device can be held
    /// back.
    pub(in crate::child) fn prepare(
        &mut self,
        arm: &mut LoadedProgram,
        address: AddressOf<'_>,
        (forget, how): (bool, TimedLaunch),
    ) -> Result<(), DeviceError> {
        self.clear(arm, address, forget, how)?;
        // A program that reads a flag from the device, or has more launches than the driver queues,
        // would wait forever.
        let waits = arm.can_wait();
        if let Some(aids) = self.aids.as_mut().filter(|_| waits) {
            // The blocking kernel must come right before the first event. After other work, the
            // time would include what the device does between that work and the event (0.5 µs after
            // a fill). Work that is queued before the device waits there takes longer too (0.7 µs).
            aids.blocking_kernel.launch(self.support, self.stream)?;
        }
        Ok(())
    }

    /// Queues the launch that [`Self::prepare`] has prepared.
    pub(in crate::child) fn launch(
        &mut self,
        arm: &mut LoadedProgram,
        address: AddressOf<'_>,
        [start, end]: [&Event; 2],
    ) -> Result<(), DeviceError> {
        let stream = self.stream;
        start.record(stream)?;
        arm.launch_renewed(address, stream)?;
        end.record(stream)?;
        self.release();
        arm.collect(address, stream)
    }

    /// Lets the device continue after the blocking kernel.
    pub(in crate::child) fn release(&self) {
        if let Some(aids) = &self.aids {
            aids.blocking_kernel.release();
        }
    }
}
