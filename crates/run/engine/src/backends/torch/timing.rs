//! The timed calls: their number, and their times by each clock.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use warpgauge_statistics::StopReason;

/// Limits on the timed calls.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Plan {
    /// Maximum number of timed calls.
    pub trials: u32,
    /// Time limit for starting timed calls. The CPU always makes at least three calls, and a device
    /// at least one batch.
    pub max_time: Duration,
    /// Whether each call gets new inputs.
    pub fresh: bool,
    pub enough: Enough,
}

/// Condition under which enough calls have been timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Enough {
    /// All trials are made, because the caller specified their number.
    All,
    /// Enough calls were timed to determine the median precisely.
    Precise,
    /// As for [`Self::Precise`], or the timed calls have taken [`BRIEF`]. Used in a comparison,
    /// which has a separate verdict on the times.
    Brief,
}

/// Duration of timed calls that suffices in a comparison, even if they do not determine the median
/// precisely.
pub(super) const BRIEF: Duration = Duration::from_millis(500);

/// Times of the timed calls.
#[derive(Debug, Default)]
pub(super) struct Timed {
    pub samples_ms: Vec<f32>,
    /// Reason why timing stopped.
    pub stopped: Option<StopReason>,
    /// Times by two clocks; `None` on the CPU.
    pub clocks: Option<Clocks>,
}

/// Times of a kernel on a device by two clocks.
#[derive(Debug, Clone, Default)]
pub(super) struct Clocks {
    /// Times from events around each call, in milliseconds. The submission's runner records the
    /// events. The cache is cold.
    pub inside_ms: Vec<f32>,
    /// Times of locked calls by the judge's clock, in milliseconds, without the overhead of a call.
    pub outside_ms: Vec<f32>,
    /// Number of locked calls in a turn.
    pub calls: u32,
    /// Whether a call moves so much data that no cache holds a significant part of it.
    pub large: bool,
    /// Time to decrypt a call's inputs and to hash its results, in milliseconds.
    pub overhead_ms: f64,
    /// Uncertainty of `overhead_ms`, in milliseconds.
    pub resolution_ms: f64,
    /// Whether calls wait for the device, so that their times include work on the host.
    pub waits: bool,
    /// Number of bytes that are written before each call that events time, to flush the cache.
    pub flushed: u64,
    /// Number of untimed calls, not counting the first call.
    pub warmup: u32,
}

impl Clocks {
    /// Returns whether the clocks agree: the judge's median is at most the events' median, plus 1 %
    /// and the uncertainty of the overhead.
    pub(super) fn agree(&self) -> bool {
        let (inside, outside) = (median(&self.inside_ms), median(&self.outside_ms));
        !self.inside_ms.is_empty() && outside <= inside * 1.01 + self.resolution_ms
    }

    /// Returns whether the times from events count. Few large calls are timed with events, and both
    /// clocks measure the same for them.
    pub(super) fn by_events(&self) -> bool {
        self.agree() && !self.large
    }

    /// Returns the times that count: those from events, or those by the judge's clock.
    pub(super) fn samples(&self) -> &[f32] {
        if self.by_events() { &self.inside_ms } else { &self.outside_ms }
    }
}

/// Returns the upper median of times in milliseconds; 0 for no times.
pub(super) fn median(times: &[f32]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f32::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_count_only_where_the_clock_of_the_judge_agrees() {
        let clocks = |outside: f32| Clocks {
            inside_ms: vec![1.0, 1.0, 1.0],
            outside_ms: vec![outside],
            resolution_ms: 0.02,
            ..Clocks::default()
        };
        assert_eq!(clocks(1.02).samples(), [1.0, 1.0, 1.0]);
        assert_eq!(clocks(1.04).samples(), [1.04]);
        let large = Clocks { large: true, ..clocks(1.02) };
        assert!(large.agree() && !large.by_events());
        assert_eq!(large.samples(), [1.02]);
    }
}
