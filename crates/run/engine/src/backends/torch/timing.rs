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
    /// Of one call of each batch, by the judge's clock, milliseconds: at least what it took, since of handing
    /// over what is not sure is not deducted.
    pub outside_ms: Vec<f32>,
    /// Calls of such a batch.
    pub batch: u32,
    /// What handing a batch over takes, milliseconds: what of it is sure was deducted.
    pub hand_over_ms: f64,
    /// Bytes written before each call that events were round.
    pub flushed: u64,
    /// Calls that were neither the first nor timed.
    pub warmup: u32,
}

/// How much handing over varies, of what it takes.
pub(super) const UNSURE: f64 = 0.25;

/// What is not sure of handing a batch over, of each of its calls, milliseconds.
pub(super) fn unsure_ms(hand_over_ms: f64, batch: u32) -> f64 {
    hand_over_ms * UNSURE / f64::from(batch.max(1))
}

impl Clocks {
    /// How much of a call's time may be that of handing over, milliseconds, beyond what was deducted; or how much
    /// more may have been deducted: it varies by less than a quarter.
    pub(super) fn resolution_ms(&self) -> f64 {
        unsure_ms(self.hand_over_ms, self.batch)
    }

    /// Whether the clocks agree: the judge's says no more than the events do, but for a hundredth and what
    /// handing over may be.
    pub(super) fn agree(&self) -> bool {
        let (inside, outside) = (median(&self.inside_ms), median(&self.outside_ms));
        !self.inside_ms.is_empty() && outside <= inside * 1.01 + 2.0 * self.resolution_ms()
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
            batch: 10,
            hand_over_ms: 0.4,
            ..Clocks::default()
        };
        // A tenth of a quarter of what handing over takes, twice, and a hundredth.
        assert_eq!(clocks(1.02).samples(), [1.0, 1.0, 1.0]);
        assert_eq!(clocks(1.04).samples(), [1.04]);
    }
}
