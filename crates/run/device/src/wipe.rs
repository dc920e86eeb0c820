//! Putting shared memory back to zero between two launches of one kernel.

use super::support::Support;
use super::{Context, DeviceBuffer, DeviceError, PreparedLaunch, Stream};

/// Zeroes the shared memory of every multiprocessor, without the 0.2 ms of host time that a
/// cooperative launch takes.
///
/// It relies on a device that nothing else uses meanwhile; between callers
/// [`Support::scrub_shared`] does the work, which does not.
pub struct SharedWipe {
    launch: PreparedLaunch,
    /// Counts the blocks that are there.
    cell: DeviceBuffer,
}

impl SharedWipe {
    /// Prepares it.
    ///
    /// # Errors
    /// As the driver says.
    pub fn new(context: &Context, support: &Support) -> Result<Self, DeviceError> {
        let cell = DeviceBuffer::new(context, 8, "the worker's own use")?;
        Ok(Self { launch: support.wipe_launch(cell.address())?, cell })
    }

    /// Queues it.
    ///
    /// # Errors
    /// As the driver says.
    pub fn queue(&mut self, stream: &Stream) -> Result<(), DeviceError> {
        self.cell.fill(0, stream)?;
        self.launch.launch(stream)
    }
}
