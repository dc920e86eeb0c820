//! One block: two slots of each arm, interleaved.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::parted::RankedBy;
use crate::stats::{Sorted, mean};

/// Which kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arm {
    /// The reference.
    A,
    /// The candidate.
    B,
}

/// Order of the slots in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BlockOrder {
    /// Reference, candidate, candidate, reference.
    Abba,
    /// Candidate, reference, reference, candidate.
    Baab,
}

impl BlockOrder {
    /// The order of block `index`: they alternate, so that what favours the outer slots favours both
    /// arms equally often.
    pub fn of_block(index: usize) -> Self {
        if index.is_multiple_of(2) { Self::Abba } else { Self::Baab }
    }

    /// The arms of the four slots, in time order.
    pub fn arms(self) -> [Arm; 4] {
        match self {
            Self::Abba => [Arm::A, Arm::B, Arm::B, Arm::A],
            Self::Baab => [Arm::B, Arm::A, Arm::A, Arm::B],
        }
    }
}

/// What one block measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairedBlock {
    /// Order of the slots.
    pub order: BlockOrder,
    /// Samples of the reference's two slots, in time order, milliseconds.
    pub a: [Vec<f32>; 2],
    /// Samples of the candidate's two slots, in time order, milliseconds.
    pub b: [Vec<f32>; 2],
    /// Mean SM clock during each of the four slots, in time order, Hz; `None` where not known.
    pub clock_hz: [Option<f64>; 4],
    /// NVML's throttle reasons seen at any time during the block, or-ed.
    pub throttle_reasons: u64,
}

impl PairedBlock {
    /// Samples of the two slots of an arm, in time order, milliseconds.
    pub fn slots(&self, arm: Arm) -> &[Vec<f32>; 2] {
        match arm {
            Arm::A => &self.a,
            Arm::B => &self.b,
        }
    }

    /// Medians of the two slots of an arm, in time order, as natural logarithms of milliseconds;
    /// `None` where a slot has no samples, one that is not finite, or a median that is not positive.
    pub fn ln_medians(&self, arm: Arm) -> Option<[f64; 2]> {
        let [first, second] = self.slots(arm);
        Some([ln_median(first)?, ln_median(second)?])
    }

    /// ln of an arm's time in milliseconds: of its slots' medians, or of the mean of all its launches,
    /// so that nothing is gained by moving work from one slot to the other.
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

    /// Clocks of the two slots of an arm, in time order, Hz; `None` unless both are known and
    /// positive.
    pub fn clocks(&self, arm: Arm) -> Option<[f64; 2]> {
        let known = |hz: &f64| hz.is_finite() && *hz > 0.0;
        let mut of_arm =
            self.order.arms().into_iter().zip(self.clock_hz).filter(|(a, _)| *a == arm);
        let mut next = || of_arm.next()?.1.filter(known);
        Some([next()?, next()?])
    }

    /// ln(time of the candidate / time of the reference): the difference of the arms' mean
    /// logarithms of slot times, in which a linear drift cancels.
    pub fn ln_time_ratio(&self, by: RankedBy) -> Option<f64> {
        Some(self.ln_time(Arm::B, by)? - self.ln_time(Arm::A, by)?)
    }

    /// The same of SM cycles, time × clock; `None` unless all clocks are known.
    pub fn ln_cycle_ratio(&self, by: RankedBy) -> Option<f64> {
        let (a, b) = (self.clocks(Arm::A)?, self.clocks(Arm::B)?);
        let clocks = (b[0] * b[1] / (a[0] * a[1])).ln() / 2.0;
        Some(self.ln_time_ratio(by)? + clocks)
    }

    /// Mean of all four slots' median times, milliseconds (geometric).
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
        // The reference at 2 GHz, the candidate at 1 GHz: twice the time, the same cycles.
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
