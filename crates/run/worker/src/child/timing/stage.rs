//! One launch between two events, and what comes right before it.

use crate::child::device::executor::TimingAids;
use crate::child::launch::program::LoadedProgram;
use crate::protocol::TimedLaunch;
use warpgauge_device::support::Support;
use warpgauge_device::{DeviceBuffer, DeviceError, Event, Stream};
use warpgauge_model::CacheState;

/// What a timed launch needs of its device.
pub(in crate::child) struct Stage<'a> {
    pub stream: &'a Stream,
    pub support: &'a Support,
    /// Memory that is written to push everything else out of L2.
    pub flush: Option<&'a DeviceBuffer>,
    pub aids: Option<&'a mut TimingAids>,
}

impl Stage<'_> {
    /// Queues what comes before a launch: variables put back, shared memory cleared, L2 flushed, as far
    /// as that is asked for.
    pub(in crate::child) fn clear(
        &mut self,
        arm: &mut LoadedProgram,
        forget: bool,
        how: TimedLaunch,
    ) -> Result<(), DeviceError> {
        let stream = self.stream;
        if forget {
            arm.forget(stream)?;
        }
        if let (true, Some(aids)) = (how.wipe_shared, &mut self.aids) {
            aids.wipe.queue(stream)?;
        }
        match (how.cache, self.flush) {
            (CacheState::Cold, Some(flush)) => flush.fill(0, stream),
            _ => Ok(()),
        }
    }

    /// Queues one launch on buffers that hold what it is to find: all is cleared as it is asked for;
    /// then the launch between its events.
    pub(in crate::child) fn queue(
        &mut self,
        arm: &mut LoadedProgram,
        forget: bool,
        how: TimedLaunch,
        [start, end]: [&Event; 2],
        launch: impl FnOnce(&mut LoadedProgram, &Stream) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let stream = self.stream;
        self.clear(arm, forget, how)?;
        if let Some(aids) = &mut self.aids {
            // The blocking kernel right before the first event: after anything else, what the device
            // does between the two is part of the time (0.5 µs after a fill). What is queued before
            // the device stands there takes longer too (0.7 µs).
            aids.blocking_kernel.launch(self.support, stream)?;
        }
        start.record(stream)?;
        launch(arm, stream)?;
        end.record(stream)?;
        if let Some(aids) = &self.aids {
            aids.blocking_kernel.release();
        }
        Ok(())
    }
}
