//! Holding the device back until work is queued.

use super::support::Support;
use super::{Context, DeviceError, PinnedBuffer, Stream};

/// Longest time that the device waits for the host, nanoseconds. Only a host that died, or that is
/// stopped, takes longer.
const PATIENCE_NS: u64 = 2_000_000_000;

/// A kernel that keeps a stream from going on until the host says so.
///
/// What is queued behind it runs without gaps that come from the host: a launch between two events
/// then takes the time of the launch, not that of the driver call that made it.
pub struct Gate {
    word: PinnedBuffer,
    /// What the host writes to open the gate that was shut last.
    generation: u32,
}

impl Gate {
    /// An open gate.
    ///
    /// # Errors
    /// As the driver says.
    pub fn new(context: &Context) -> Result<Self, DeviceError> {
        Ok(Self { word: PinnedBuffer::new(context, 4)?, generation: 0 })
    }

    /// Queues the wait.
    ///
    /// # Errors
    /// As the driver says.
    pub fn shut(&mut self, support: &Support, stream: &Stream) -> Result<(), DeviceError> {
        self.generation = self.generation.wrapping_add(1);
        support.wait_for_word(self.word.address(), self.generation, PATIENCE_NS, stream)
    }

    /// Lets the device go on.
    pub fn open(&self) {
        self.word.publish_word(0, self.generation);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}
