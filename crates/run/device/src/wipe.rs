//! Zeroes shared memory between two launches of a kernel.

use super::support::Support;
use super::{Context, DeviceBuffer, DeviceError, PreparedLaunch, Stream};

/// Zeroes the shared memory of every multiprocessor, without the 0.2 ms of host time of a
/// cooperative launch.
///
/// This requires that nothing else uses the device at the same time. Between jobs of different
/// callers, [`Support::scrub_shared`] zeroes the memory without this requirement.
pub struct SharedWipe {
    launch: PreparedLaunch,
    /// Counter of the thread blocks that have arrived.
    cell: DeviceBuffer,
}

impl SharedWipe {
    /// Prepares the launch.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn new(context: &Context, support: &Support) -> Result<Self, DeviceError> {
        let cell = DeviceBuffer::new(context, 8, "the worker's own use")?;
        Ok(Self { launch: support.wipe_launch(cell.address())?, cell })
    }

    /// Queues the launch.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn queue(&mut self, stream: &Stream) -> Result<(), DeviceError> {
        self.cell.fill(0, stream)?;
        self.launch.launch(stream)
    }
}
