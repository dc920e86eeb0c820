//! Rejection of blocks by rules that treat both arms alike. The main function is [`drop_reasons`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::block::{Arm, PairedBlock};
use crate::health::invalidates_timing;
use crate::parted::RankedBy;

/// Relative difference between the clocks of one arm's two slots above which a block is rejected.
const CLOCK_SPREAD: f64 = 0.05;
/// Relative difference between one arm's two slots that is always allowed.
const SLOT_DIFFERENCE: f64 = 0.01;
/// Allowed difference between one arm's slots for noisy kernels, in standard deviations of that
/// difference.
const SLOT_SIGMAS: f64 = 4.0;
/// Inverse of the median absolute value of a standard normal variable.
const MAD_TO_SIGMA: f64 = 1.4826;

/// Reason for dropping a block.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// A slot has no samples, or its median is not a positive time.
    NoTime,
    /// The GPU slowed down because of its temperature or power supply.
    Throttle,
    /// The clock changed between the two slots of one kernel.
    ClockSpread,
    /// The two slots of one kernel differ more than the slots of that kernel usually do.
    SlotsDisagree,
}

/// Returns the reason for the rejection of each block, or `None` if the block counts.
///
/// The rules treat the arms alike. Only a difference *between the two slots of one arm* rejects a
/// block. A difference between the arms is the result, even if the cause is a clock that drops
/// whenever the candidate runs: the throttling that a power-hungry kernel causes is a cost of that
/// kernel. For the same reason a power cap, the normal state of many devices, rejects no block.
///
/// Slots of one arm may differ by 1 % or by 4 standard deviations of that difference, whichever is
/// more, so that noisy short kernels are not all rejected. The deviation is estimated for each arm,
/// as 1.4826 × the median of |difference| over all blocks (Rousseeuw, Croux, JASA 88, 1993). An
/// estimate over both arms would reject ordinary blocks of the noisier arm. The deviation is at
/// least `calibrated_spread` (relative), if the caller has one from comparing the reference with
/// itself.
pub fn drop_reasons(
    blocks: &[PairedBlock],
    calibrated_spread: Option<f64>,
) -> Vec<Option<DropReason>> {
    let limits = [Arm::A, Arm::B].map(|arm| slot_limit(blocks, arm, calibrated_spread));
    blocks.iter().map(|block| reason(block, limits)).collect()
}

fn reason(block: &PairedBlock, limits: [f64; 2]) -> Option<DropReason> {
    let arms = [Arm::A, Arm::B];
    if block.ln_time_ratio(RankedBy::Median).is_none() {
        return Some(DropReason::NoTime);
    }
    if invalidates_timing(block.throttle_reasons) {
        return Some(DropReason::Throttle);
    }
    let spread = |arm| block.clocks(arm).map_or(0.0, |[x, y]| (x - y).abs() / x.max(y));
    if arms.into_iter().any(|arm| spread(arm) > CLOCK_SPREAD) {
        return Some(DropReason::ClockSpread);
    }
    let disagrees = |(arm, limit)| slot_difference(block, arm).is_some_and(|d| d > limit);
    arms.into_iter().zip(limits).any(disagrees).then_some(DropReason::SlotsDisagree)
}

/// Returns |ln(x / y)|, where x and y are the median times of an arm's two slots.
fn slot_difference(block: &PairedBlock, arm: Arm) -> Option<f64> {
    block.ln_medians(arm).map(|[x, y]| (x - y).abs())
}

fn slot_limit(blocks: &[PairedBlock], arm: Arm, calibrated: Option<f64>) -> f64 {
    let mut differences: Vec<f64> =
        blocks.iter().filter_map(|block| slot_difference(block, arm)).collect();
    differences.sort_unstable_by(f64::total_cmp);
    let own = differences.get(differences.len() / 2).map_or(0.0, |median| MAD_TO_SIGMA * median);
    SLOT_DIFFERENCE.max(SLOT_SIGMAS * own.max(calibrated.unwrap_or(0.0)))
}

#[cfg(test)]
mod tests {
    use super::super::block::BlockOrder;
    use super::*;

    fn block(a: [f32; 2], b: [f32; 2], clock_ghz: [f64; 4]) -> PairedBlock {
        PairedBlock {
            order: BlockOrder::Abba,
            a: a.map(|x| vec![x; 5]),
            b: b.map(|x| vec![x; 5]),
            clock_hz: clock_ghz.map(|ghz| Some(ghz * 1e9)),
            throttle_reasons: 0,
        }
    }

    fn with(odd: PairedBlock, quiet: usize) -> Option<DropReason> {
        let mut blocks = vec![block([1.0, 1.001], [1.0, 1.001], [1.9; 4]); quiet];
        blocks.push(odd);
        let reasons = drop_reasons(&blocks, None);
        assert!(reasons[..quiet].iter().all(Option::is_none));
        reasons[quiet]
    }

    #[test]
    fn a_clock_that_follows_one_arm_is_kept() {
        assert_eq!(with(block([1.0, 1.0], [1.2, 1.2], [1.9, 1.5, 1.5, 1.9]), 9), None);
        assert_eq!(with(block([1.2, 1.2], [1.0, 1.0], [1.5, 1.9, 1.9, 1.5]), 9), None);
        let moved = with(block([1.0, 1.0], [1.0, 1.0], [1.9, 1.9, 1.5, 1.5]), 9);
        assert_eq!(moved, Some(DropReason::ClockSpread));
        let unknown = PairedBlock { clock_hz: [None; 4], ..block([1.0; 2], [1.0; 2], [1.9; 4]) };
        assert_eq!(with(unknown, 9), None);
    }

    #[test]
    fn heat_drops_and_a_power_cap_does_not() {
        let with_bits = |bits| {
            with(PairedBlock { throttle_reasons: bits, ..block([1.0; 2], [1.0; 2], [1.9; 4]) }, 9)
        };
        assert_eq!(with_bits(0x4), None);
        for bits in [0x8, 0x20, 0x40, 0x80, 0x44] {
            assert_eq!(with_bits(bits), Some(DropReason::Throttle), "{bits:#x}");
        }
    }

    #[test]
    fn an_odd_slot_drops_its_block_whichever_arm_it_is_in() {
        for odd in
            [block([1.0, 1.02], [1.0, 1.0], [1.9; 4]), block([1.0, 1.0], [1.02, 1.0], [1.9; 4])]
        {
            assert_eq!(with(odd, 9), Some(DropReason::SlotsDisagree));
        }
        assert_eq!(with(block([1.0; 2], [0.0, 1.0], [1.9; 4]), 9), Some(DropReason::NoTime));
    }

    #[test]
    fn an_arm_that_is_always_noisy_is_not_dropped() {
        let blocks: Vec<PairedBlock> = (0..20)
            .map(|i| block([1.0, 1.0], [1.0, 1.0 + 0.005 * (i % 9) as f32], [1.9; 4]))
            .collect();
        assert!(drop_reasons(&blocks, None).iter().all(Option::is_none));
        // A calibrated spread is a lower limit: 4 × 1 % allows a difference that 1 % would not.
        let one = [block([1.0, 1.02], [1.0, 1.0], [1.9; 4])];
        assert_eq!(drop_reasons(&one, Some(0.01)), [None]);
        assert!(drop_reasons(&[], None).is_empty());
    }
}
