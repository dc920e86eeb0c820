//! A blocking kernel, which stops the device until work is queued.

use super::support::Support;
use super::{Context, DeviceError, PinnedBuffer, Stream};

/// Maximum time for which the device waits for the host, nanoseconds. The wait is longer only if
/// the host process died or was stopped.
const PATIENCE_NS: u64 = 2_000_000_000;

/// Time for which the device stays idle after the host has released it, nanoseconds. On an H200 the
/// times of short kernels vary half as much with 8 µs as without idle time.
const QUIET_NS: u32 = 8_000;

/// Indices of the words that host and device share. They are on separate cache lines.
const ARRIVED: usize = 0;
const RELEASED: usize = 64;

/// A kernel that blocks a stream until the host releases it.
///
/// Work queued after it runs without gaps caused by the host. The time between two events around a
/// launch is then only that of the launch, without the driver call.
pub struct BlockingKernel {
    page: PinnedBuffer,
    /// Value that releases the most recently launched kernel.
    generation: u32,
}

impl BlockingKernel {
    /// Creates a blocking kernel without launching it.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn new(context: &Context) -> Result<Self, DeviceError> {
        Ok(Self { page: PinnedBuffer::new(context, 4 * (RELEASED + 1))?, generation: 0 })
    }

    /// Launches the kernel and waits until it runs. All work queued before it has then ended.
    ///
    /// # Errors
    /// Returns a fault of work queued earlier, or of the driver.
    pub fn launch(&mut self, support: &Support, stream: &Stream) -> Result<(), DeviceError> {
        self.generation = self.generation.wrapping_add(1);
        let words = [ARRIVED, RELEASED].map(|word| self.page.address() + 4 * word as u64);
        support.block(words, self.generation, QUIET_NS, PATIENCE_NS, stream)?;
        self.page.wait_for_word(ARRIVED, self.generation, stream)
    }

    /// Releases the device, which then continues with the queued work.
    pub fn release(&self) {
        self.page.publish_word(RELEASED, self.generation);
    }
}

impl Drop for BlockingKernel {
    fn drop(&mut self) {
        self.release();
    }
}
