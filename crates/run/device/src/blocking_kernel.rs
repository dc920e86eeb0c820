//! A blocking kernel: it holds the device back until work is queued.

use super::support::Support;
use super::{Context, DeviceError, PinnedBuffer, Stream};

/// Longest time that the device waits for the host, nanoseconds. Only a host that died, or that is
/// stopped, takes longer.
const PATIENCE_NS: u64 = 2_000_000_000;

/// Time for which the device does nothing once the host has released it, nanoseconds. On an H200
/// the times of short kernels scatter half as much with 8 µs as with none.
const QUIET_NS: u32 = 8_000;

/// Words of the page that both sides see, on cache lines of their own.
const ARRIVED: usize = 0;
const RELEASED: usize = 64;

/// A kernel that keeps a stream from going on until the host releases it.
///
/// What is queued after it runs without gaps that come from the host: a launch between two events
/// then takes the time of the launch, not that of the driver call that made it.
pub struct BlockingKernel {
    page: PinnedBuffer,
    /// What the host writes to release the kernel that was launched last.
    generation: u32,
}

impl BlockingKernel {
    /// One that blocks nothing yet.
    ///
    /// # Errors
    /// As the driver says.
    pub fn new(context: &Context) -> Result<Self, DeviceError> {
        Ok(Self { page: PinnedBuffer::new(context, 4 * (RELEASED + 1))?, generation: 0 })
    }

    /// Launches the kernel and waits until it runs: all that was queued before it has ended.
    ///
    /// # Errors
    /// A fault of the work queued before it, or of the driver.
    pub fn launch(&mut self, support: &Support, stream: &Stream) -> Result<(), DeviceError> {
        self.generation = self.generation.wrapping_add(1);
        let words = [ARRIVED, RELEASED].map(|word| self.page.address() + 4 * word as u64);
        support.block(words, self.generation, QUIET_NS, PATIENCE_NS, stream)?;
        self.page.wait_for_word(ARRIVED, self.generation, stream)
    }

    /// Lets the device go on.
    pub fn release(&self) {
        self.page.publish_word(RELEASED, self.generation);
    }
}

impl Drop for BlockingKernel {
    fn drop(&mut self) {
        self.release();
    }
}
