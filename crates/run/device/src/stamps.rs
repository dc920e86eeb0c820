//! Measures the clock of the multiprocessors on the device.

use serde::{Deserialize, Serialize};

use super::support::Support;
use super::{Context, DeviceBuffer, DeviceError, PendingCopy, Staging, Stream};

/// Minimum time between two readings from which a clock rate is computed, nanoseconds. The device's
/// timer advances in steps of up to 1 µs.
const MIN_SPAN_NS: u64 = 50_000;

/// Mean clock rate of the multiprocessors between two moments.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClockReading {
    /// Median over the multiprocessors of their clock rates, Hz.
    pub median_hz: f64,
    /// Clock rate of the slowest multiprocessor, Hz.
    pub min_hz: f64,
    /// Clock rate of the fastest multiprocessor, Hz.
    pub max_hz: f64,
    /// Time between the two moments, seconds.
    pub span_s: f64,
}

/// Readings of the multiprocessors' cycle counters and timers, taken in stream order.
///
/// Each reading is copied from the device at once, so that the next launch cannot access it.
pub struct Stamps {
    slots: DeviceBuffer,
    multiprocessors: u32,
}

/// A reading of the counters of every multiprocessor.
pub struct Stamp {
    copy: PendingCopy,
}

impl Stamps {
    /// Allocates memory for readings of a device with this number of multiprocessors.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn new(context: &Context, multiprocessors: u32) -> Result<Self, DeviceError> {
        let bytes = u64::from(multiprocessors) * 16;
        let slots = DeviceBuffer::new(context, bytes, "clock readings")?;
        Ok(Self { slots, multiprocessors })
    }

    /// Returns the size of the host memory for a reading, bytes.
    pub fn bytes(&self) -> usize {
        self.slots.len()
    }

    /// Queues a reading into `target`, which must have [`Stamps::bytes`] bytes.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn take(
        &self,
        support: &Support,
        target: Staging,
        stream: &Stream,
    ) -> Result<Stamp, DeviceError> {
        // A multiprocessor that runs no block must not keep an old reading.
        self.slots.fill(0, stream)?;
        support.stamp(self.slots.address(), self.multiprocessors, stream)?;
        Ok(Stamp { copy: self.slots.start_copy_to_host(0, target, stream)? })
    }
}

impl Stamp {
    /// Returns the cycles and nanoseconds of each multiprocessor; zeros for a multiprocessor
    /// without a reading.
    ///
    /// # Errors
    /// Returns a fault of work queued earlier.
    pub fn finish(self) -> Result<Vec<[u64; 2]>, DeviceError> {
        let bytes = self.copy.finish()?;
        let words = bytes.bytes().chunks_exact(16).map(|pair| {
            let word = |at: usize| {
                let mut word = [0; 8];
                word.copy_from_slice(&pair[at..at + 8]);
                u64::from_ne_bytes(word)
            };
            [word(0), word(8)]
        });
        Ok(words.collect())
    }
}

/// Returns the clock rates between two readings, or `None` if the readings are too close together
/// or contain no values.
pub fn clock_between(earlier: &[[u64; 2]], later: &[[u64; 2]]) -> Option<ClockReading> {
    let mut clocks = Vec::new();
    let mut spans = Vec::new();
    for (&[cycles0, ns0], &[cycles1, ns1]) in earlier.iter().zip(later) {
        let (Some(cycles), Some(ns)) = (cycles1.checked_sub(cycles0), ns1.checked_sub(ns0)) else {
            continue;
        };
        if ns0 == 0 || ns < MIN_SPAN_NS {
            continue;
        }
        clocks.push(cycles as f64 / ns as f64 * 1e9);
        spans.push(ns);
    }
    clocks.sort_by(f64::total_cmp);
    spans.sort_unstable();
    Some(ClockReading {
        median_hz: *clocks.get(clocks.len() / 2)?,
        min_hz: *clocks.first()?,
        max_hz: *clocks.last()?,
        span_s: *spans.get(spans.len() / 2)? as f64 * 1e-9,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_cycles_over_time() {
        let earlier = [[1000, 5_000], [0, 0], [7, 5_000]];
        let later = [[2_001_000, 1_005_000], [9, 9_000_000], [1_980_007, 1_005_000]];
        let clock = clock_between(&earlier, &later).unwrap();
        assert!((clock.max_hz - 2e9).abs() < 1.0 && (clock.min_hz - 1.98e9).abs() < 1.0);
        assert!((clock.span_s - 1e-3).abs() < 1e-12);
    }

    #[test]
    fn readings_that_tell_nothing_give_no_clock() {
        assert_eq!(clock_between(&[], &[]), None);
        assert_eq!(clock_between(&[[0, 0]], &[[5, 1_000_000]]), None);
        assert_eq!(clock_between(&[[1, 10]], &[[50, 20]]), None, "too close");
        assert_eq!(clock_between(&[[9, 10]], &[[1, 1_000_000]]), None, "the counter went back");
    }
}
