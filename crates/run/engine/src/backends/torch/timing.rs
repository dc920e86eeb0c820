//! How many calls are timed, and what the clocks say of them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use warpgauge_statistics::StopReason;

/// How many calls to time.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Plan {
    /// At most so many.
    pub trials: u32,
    /// No more are begun after that long, but for the first three.
    pub max_time: Duration,
    /// Whether each call is to see inputs of its own.
    pub fresh: bool,
}

/// What the timed calls took.
#[derive(Debug, Default)]
pub(super) struct Timed {
    pub samples_ms: Vec<f32>,
    /// Why no more calls were timed.
    pub stopped: Option<StopReason>,
    /// What two clocks say, where there is a device.
    pub clocks: Option<Clocks>,
}

/// What the clocks say of a kernel on a device.
#[derive(Debug, Clone, Default)]
pub(super) struct Clocks {
    /// Events round each call, with a cold cache, by the runner that has the submission, milliseconds.
    pub inside_ms: Vec<f32>,
    /// Of each locked call, by the judge's clock, milliseconds, without what there is round a call.
    pub outside_ms: Vec<f32>,
    /// Locked calls of a turn.
    pub calls: u32,
    /// What decrypting a call's inputs and hashing its results take, milliseconds.
    pub overhead_ms: f64,
    /// What is not known of that, milliseconds.
    pub resolution_ms: f64,
    /// Whether calls wait for the device, so that a time has the host's part in it.
    pub waits: bool,
    /// Bytes written before each call that events were round.
    pub flushed: u64,
    /// Calls that were neither the first nor timed.
    pub warmup: u32,
}

impl Clocks {
    /// Whether the clocks agree: the judge's says no more than the events do, but for a hundredth and what is not
    /// known of what there is round a call.
    pub(super) fn agree(&self) -> bool {
        let (inside, outside) = (median(&self.inside_ms), median(&self.outside_ms));
        !self.inside_ms.is_empty() && outside <= inside * 1.01 + self.resolution_ms
    }

    /// The times that count: those of the events, if the judge's clock agrees.
    pub(super) fn samples(&self) -> &[f32] {
        if self.agree() { &self.inside_ms } else { &self.outside_ms }
    }
}

/// The middle of some times, milliseconds.
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
    }
}
