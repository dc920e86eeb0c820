//! A block of a paired comparison: four slots, two for each of the compared kernels. The main type
//! is [`PairedBlock`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::parted::RankedBy;
use crate::stats::{Sorted, mean};

/// One of the two kernels in a paired comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arm {
    /// Reference kernel, in the outer slots of the order ABBA.
    A,
    /// Candidate kernel, in the inner slots of the order ABBA.
    B,
}

/// Order of the four slots of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BlockOrder {
    /// Reference, candidate, candidate, reference.
    Abba,
    /// Candidate, reference, reference, candidate.
    Baab,
}

impl BlockOrder {
    /// Returns the order of block `index`. The orders alternate, so that an effect on the outer
    /// slots affects both arms equally often.
    pub fn of_block(index: usize) -> Self {
        if index.is_multiple_of(2) { Self::Abba } else { Self::Baab }
    }

    /// Returns the arms of the four slots, in time order.
    pub fn arms(self) -> [Arm; 4] {
        match self {
            Self::Abba => [Arm::A, Arm::B, Arm::B, Arm::A],
            Self::Baab => [Arm::B, Arm::A, Arm::A, Arm::B],
        }
    }
}

/// Measurements of one block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairedBlock {
    /// Order of the slots.
    pub order: BlockOrder,
    /// Samples of the two slots of the reference, in time order, in milliseconds.
    pub a: [Vec<f32>; 2],
    /// Samples of the two slots of the candidate, in time order, in milliseconds.
    pub b: [Vec<f32>; 2],
    /// Mean SM clock during each of the four slots, in time order, in Hz; `None` if unknown.
    pub clock_hz: [Option<f64>; 4],
    /// NVML's throttle reasons at any time during the block, combined by OR.
    pub throttle_reasons: u64,
}

impl PairedBlock {
    /// Returns the samples of the two slots of an arm, in time order, in milliseconds.
    pub fn slots(&self, arm: Arm) -> &[Vec<f32>; 2] {
        match arm {
            Arm::A => &self.a,
            Arm::B => &self.b,
        }
    }

    /// Returns the medians of the two slots of an arm, in time order, as natural logarithms of
    /// milliseconds. Returns `None` if a slot has no samples, a sample is not finite, or a median
    /// is not positive.
    pub fn ln_medians(&self, arm: Arm) -> Option<[f64; 2]> {
        let [first, second] = self.slots(arm);
        Some([ln_median(first)?, ln_median(second)?])
    }

    /// Returns the logarithm of an arm's time in milliseconds: from the medians of its slots, or
    /// from the mean of all its launches. A kernel cannot lower that mean by moving work from one
    /// launch to another.
    fn ln_time(&self, arm: Arm, by: RankedBy) -> Option<f64> {
        let [first, second] = self.ln_medians(arm)?;
        match by {
            RankedBy::Median => Some((first + second) / 2.0),
            RankedBy::Mean => {
                let samples = self.slots(arm).iter().flatten().map(|ms| f64::from(*ms));
                mean(&samples.collect::<Vec<_>>()).map(f64::ln)
            }
        }
    }

    /// Returns the clocks of the two slots of an arm, in time order, in Hz. Returns `None` unless
    /// both are known and positive.
    pub fn clocks(&self, arm: Arm) -> Option<[f64; 2]> {
        let known = |hz: &f64| hz.is_finite() && *hz > 0.0;
        let mut of_arm =
            self.order.arms().into_iter().zip(self.clock_hz).filter(|(a, _)| *a == arm);
        let mut next = || of_arm.next()?.1.filter(known);
        Some([next()?, next()?])
    }

    /// Returns ln(time of the candidate / time of the reference): the difference of the mean
    /// logarithms of the slot times of each arm. A linear drift cancels out.
    pub fn ln_time_ratio(&self, by: RankedBy) -> Option<f64> {
        Some(self.ln_time(Arm::B, by)? - self.ln_time(Arm::A, by)?)
    }

    /// Returns ln(SM cycles of the candidate / SM cycles of the reference). Cycles are time ×
    /// clock. Returns `None` unless all clocks are known.
    pub fn ln_cycle_ratio(&self, by: RankedBy) -> Option<f64> {
        let (a, b) = (self.clocks(Arm::A)?, self.clocks(Arm::B)?);
        let clocks = (b[0] * b[1] / (a[0] * a[1])).ln() / 2.0;
        Some(self.ln_time_ratio(by)? + clocks)
    }

    /// Returns the geometric mean of the median times of all four slots, in milliseconds.
    pub fn typical_ms(&self) -> Option<f64> {
        let [a, b] = [Arm::A, Arm::B].map(|arm| self.ln_time(arm, RankedBy::Median));
        Some(((a? + b?) / 2.0).exp())
    }
}

fn ln_median(samples: &[f32]) -> Option<f64> {
    let samples: Vec<f64> = samples.iter().map(|x| f64::from(*x)).collect();
    let median = Sorted::new(&samples)?.median();
    (median > 0.0).then(|| median.ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(order: BlockOrder, a: [f32; 2], b: [f32; 2], clock: [f64; 4]) -> PairedBlock {
        PairedBlock {
            order,
            a: a.map(|x| vec![x; 3]),
            b: b.map(|x| vec![x; 3]),
            clock_hz: clock.map(Some),
            throttle_reasons: 0,
        }
    }

    #[test]
    fn ratios_in_time_and_cycles() {
        // The reference runs at 2 GHz and the candidate at 1 GHz, so it takes twice the time and
        // the same cycles.
        for (order, clock) in
            [(BlockOrder::Abba, [2e9, 1e9, 1e9, 2e9]), (BlockOrder::Baab, [1e9, 2e9, 2e9, 1e9])]
        {
            let block = block(order, [1.0, 1.0], [2.0, 2.0], clock);
            assert!((block.ln_time_ratio(RankedBy::Median).unwrap() - 2.0_f64.ln()).abs() < 1e-12);
            assert!(block.ln_cycle_ratio(RankedBy::Median).unwrap().abs() < 1e-12);
            assert!((block.typical_ms().unwrap() - 2.0_f64.sqrt()).abs() < 1e-12);
        }
    }

    #[test]
    fn a_geometric_drift_cancels() {
        let drifting = [1.0_f32, 1.1, 1.21, 1.331];
        let block = block(
            BlockOrder::Abba,
            [drifting[0], drifting[3]],
            [drifting[1], drifting[2]],
            [1e9; 4],
        );
        assert!(block.ln_time_ratio(RankedBy::Median).unwrap().abs() < 1e-6);
    }

    #[test]
    fn what_cannot_be_told_is_absent() {
        let mut broken = block(BlockOrder::Abba, [1.0, 1.0], [1.0, 1.0], [1e9; 4]);
        broken.clock_hz[2] = None;
        assert!(
            broken.ln_cycle_ratio(RankedBy::Median).is_none()
                && broken.ln_time_ratio(RankedBy::Median).is_some()
        );
        broken.b[1].clear();
        assert_eq!(broken.ln_time_ratio(RankedBy::Median), None);
        broken.b[1] = vec![0.0; 3];
        assert_eq!(broken.ln_time_ratio(RankedBy::Median), None);
        broken.b[1] = vec![f32::NAN];
        assert_eq!(broken.ln_time_ratio(RankedBy::Median), None);
    }
}
