//! A lock-free histogram of durations. The main type is [`Histogram`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the buckets in seconds. They range from a cached compilation to the longest
/// evaluation.
pub const BOUNDS: [f64; 19] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0, 120.0, 300.0, 600.0,
];

/// The number of buckets: those of [`BOUNDS`], and one for longer durations.
const BUCKETS: usize = BOUNDS.len() + 1;

/// Durations by bucket, with their sum, minimum and maximum.
#[derive(Debug)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
    min_ns: AtomicU64,
    max_ns: AtomicU64,
}

/// A snapshot of a histogram. The number of durations is the sum of its buckets. `sum_s` may
/// already include a duration that is being added.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The number of durations in each bucket of [`BOUNDS`], not cumulative. The last bucket has no
    /// upper bound.
    pub buckets: [u64; BUCKETS],
    /// The sum of all durations, in seconds.
    pub sum_s: f64,
    /// The shortest duration in seconds, or 0 if there are no durations.
    pub min_s: f64,
    /// The longest duration, in seconds.
    pub max_s: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// Creates an empty histogram.
    pub const fn new() -> Self {
        Self {
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
            sum_ns: AtomicU64::new(0),
            min_ns: AtomicU64::new(u64::MAX),
            max_ns: AtomicU64::new(0),
        }
    }

    pub fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
        self.min_ns.fetch_min(ns, Ordering::Relaxed);
        self.max_ns.fetch_max(ns, Ordering::Relaxed);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
    }

    /// Adds a duration in milliseconds, the unit of reports. Invalid durations are ignored.
    pub fn observe_ms(&self, ms: f64) {
        if let Ok(duration) = Duration::try_from_secs_f64(ms * 1e-3) {
            self.observe(duration);
        }
    }

    /// Returns a snapshot of the histogram.
    pub fn observed(&self) -> Observed {
        let buckets = std::array::from_fn(|index| self.buckets[index].load(Ordering::Relaxed));
        let seconds = |ns: &AtomicU64| ns.load(Ordering::Relaxed) as f64 * 1e-9;
        let min_s =
            if buckets.iter().all(|count| *count == 0) { 0.0 } else { seconds(&self.min_ns) };
        Observed { buckets, sum_s: seconds(&self.sum_ns), min_s, max_s: seconds(&self.max_ns) }
    }
}

impl Observed {
    /// Returns the number of durations that were added.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the mean in seconds, or 0 if there are no durations.
    pub fn mean_s(&self) -> f64 {
        let count = self.count();
        if count == 0 { 0.0 } else { self.sum_s / count as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_in_the_bucket_whose_bound_it_does_not_pass() {
        let histogram = Histogram::new();
        assert_eq!(histogram.observed().min_s, 0.0);
        for ms in [0.0, 0.5, 0.500_001, 1.0, 599_999.0, 600_000.0, 600_001.0, f64::NAN, -1.0] {
            histogram.observe_ms(ms);
        }
        let observed = histogram.observed();
        assert_eq!(observed.buckets[..3], [2, 2, 0]);
        assert_eq!(observed.buckets[BOUNDS.len() - 1..], [2, 1]);
        assert_eq!(observed.count(), 7);
        assert_eq!(observed.min_s, 0.0);
        assert!((observed.max_s - 600.001).abs() < 1e-6);
        assert!((observed.mean_s() * 7.0 - observed.sum_s).abs() < 1e-9);
    }

    #[test]
    fn threads_lose_nothing() {
        let histogram = Histogram::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| histogram.observe_ms(2.0)));
            }
        });
        let observed = histogram.observed();
        assert_eq!(observed.count(), 4000);
        assert!((observed.sum_s - 8.0).abs() < 1e-9);
    }
}
