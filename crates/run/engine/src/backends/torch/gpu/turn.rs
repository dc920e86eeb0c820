//! What the judge's clock says of a batch, and how many calls make one long enough.

use std::time::Duration;

use super::shelf::Shelved;
use crate::backends::torch::timing::UNSURE;

/// How long a batch is to be that the judge's clock is round: what is not known of handing over is less
/// than a hundredth of it. In longer ones a GPU that is at its limit lowers its clock.
const LONG: Duration = Duration::from_millis(10);

/// What the judge's clock says of one side's batch.
#[derive(Clone)]
pub(super) struct Turn {
    pub(super) calls: u32,
    /// Writing its inputs.
    pub(super) presenting: Duration,
    /// From the word to go until the side says that it is done, and opening what it returned.
    pub(super) running: Duration,
    /// Copying what it returned.
    pub(super) copying: Duration,
    /// Bytes of each copy.
    pub(super) sizes: Vec<usize>,
}

impl Turn {
    pub(super) fn new(calls: u32, presenting: Duration, took: Duration, shelved: &Shelved) -> Self {
        let running = took + shelved.opening;
        let (copying, sizes) = (shelved.copying, shelved.sizes.clone());
        Self { calls, presenting, running, copying, sizes }
    }

    /// Writing and copying.
    pub(super) fn around(&self) -> Duration {
        self.presenting + self.copying
    }

    /// How much longer writing and copying took than they do on an idle device.
    pub(super) fn excess(&self, alone: Alone) -> Duration {
        self.presenting.saturating_sub(alone.presenting)
            + self.copying.saturating_sub(alone.copying)
    }

    /// Milliseconds of one call, of all that was spent.
    pub(super) fn each(&self, spent: Duration) -> f32 {
        (spent.as_secs_f64() * 1e3 / f64::from(self.calls.max(1))) as f32
    }
}

/// What writing inputs and copying results take on an idle device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Alone {
    pub(super) presenting: Duration,
    pub(super) copying: Duration,
}

impl Alone {
    /// The least of some measurements; nothing, where there are none.
    pub(super) fn least(measured: impl Iterator<Item = (Duration, Duration)>) -> Self {
        let least = measured.reduce(|(a, b), (c, d)| (a.min(c), b.min(d)));
        let (presenting, copying) = least.unwrap_or_default();
        Self { presenting, copying }
    }
}

/// What handing a batch over takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct HandOver(pub(super) Duration);

impl HandOver {
    /// Calls that make a batch long enough, by what they took in another one.
    pub(super) fn calls_of(self, turn: &Turn) -> u32 {
        let each = turn.running.saturating_sub(self.0) / turn.calls.max(1);
        let wanted = LONG.as_nanos() / each.as_nanos().max(1) + 1;
        u32::try_from(wanted).unwrap_or(u32::MAX)
    }

    /// What of it is sure.
    pub(super) fn sure(self) -> Duration {
        self.0.mul_f64(1.0 - UNSURE)
    }

    /// What of it is not.
    pub(super) fn unsure(self) -> Duration {
        self.0.mul_f64(UNSURE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_long_enough_by_what_a_call_takes_without_handing_over() {
        let ms = Duration::from_millis;
        let turn = |running| Turn {
            calls: 4,
            presenting: ms(9),
            running,
            copying: ms(9),
            sizes: Vec::new(),
        };
        assert_eq!(HandOver(ms(4)).calls_of(&turn(ms(8))), 11);
        // Quicker than handing over is known to be.
        assert_eq!(HandOver(ms(4)).calls_of(&turn(ms(3))), 10_000_001);
    }
}
