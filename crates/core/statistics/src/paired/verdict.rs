//! Derivation of a verdict from blocks. The main functions are [`decide_at_look`] and [`conclude`].

use super::apart::are_apart;
use super::block::{Arm, PairedBlock};
use super::drops::{DropReason, drop_reasons};
use super::estimate::{Estimate, t_quantile};
use super::policy::{ComparePolicy, MAX_BLOCKS};
use super::report::{
    BlockReport, DropCount, PairedComparison, PairedReason, PairedVerdict, RatioEstimate,
};

use crate::parted::{GAP, RankedBy, parted_by};
use crate::stats::mean;

/// Minimum number of blocks for a verdict.
const MIN_BLOCKS: usize = 8;
/// Minimum number of blocks after which a comparison may be stopped as hopeless.
pub const MIN_BLOCKS_HOPELESS: usize = 4;
/// Smallest expected spread of the remaining blocks, as a share of the measured spread.
const SPREAD_MAY_BE: f64 = 0.9;
/// Smallest expected spread of the remaining blocks if fewer than [`MIN_BLOCKS`] were measured. In 5 % of cases, this
/// share of the standard deviation of four normal values exceeds the true one (χ² with 3 degrees of freedom).
const SPREAD_OF_FEW_MAY_BE: f64 = 0.62;
/// Largest difference between logarithms of equal times. Samples are 32-bit floats.
const ROUNDING: f64 = 1e-6;

/// Outcome of a check for a verdict at one number of blocks.
#[derive(Debug, Clone, PartialEq)]
pub enum LookOutcome {
    /// The comparison must measure up to this many blocks and look again.
    Continue {
        /// Number of blocks after which to check again.
        next_look: u32,
    },
    /// The comparison is decided, or cannot be decided.
    Done(Box<PairedComparison>),
}

/// Decides at the look with index `look` on `blocks`, which are in time order.
///
/// It uses only as many blocks as the look requires. If there are fewer, the comparison continues.
/// The comparison ends if the verdict is not `inconclusive`, at the last look, if all blocks are
/// rejected, or if more blocks would not help. A look that the policy does not contain concludes
/// with the available blocks.
pub fn decide_at_look(blocks: &[PairedBlock], look: usize, policy: &ComparePolicy) -> LookOutcome {
    let Some(at) = policy.looks.get(look).map(|look| (*look).min(MAX_BLOCKS)) else {
        return LookOutcome::Done(Box::new(conclude(blocks, policy)));
    };
    let Some(blocks) = blocks.get(..at as usize) else {
        return LookOutcome::Continue { next_look: at };
    };
    let comparison = evaluate(blocks, policy);
    let over = comparison.verdict != PairedVerdict::Inconclusive
        || comparison.blocks_used == 0
        || is_futile(&comparison, policy);
    match policy.looks.get(look + 1) {
        Some(next_look) if !over => LookOutcome::Continue { next_look: *next_look },
        _ => LookOutcome::Done(Box::new(comparison)),
    }
}

/// Returns whether more blocks would not help, because the difference lies within a margin that is
/// too wide for the verdict `same`. Stopping for this reason never leads to `faster` or `slower`.
fn is_futile(comparison: &PairedComparison, policy: &ComparePolicy) -> bool {
    let within = 1.0 + comparison.margin;
    let inside =
        comparison.time.is_some_and(|time| time.ci_high <= within && time.ci_low >= 1.0 / within);
    inside && !policy.may_be_same(comparison.equivalence)
}

/// Returns whether even `most` blocks are unlikely to decide the comparison: with the spread of `blocks`, the interval
/// would still include both relevant and irrelevant differences. It errs towards more blocks, and allows for a smaller
/// spread and for a move of the mean by a quarter of its standard error. Stopping for this reason never leads to a
/// verdict.
pub fn is_hopeless(blocks: &[PairedBlock], most: usize, policy: &ComparePolicy) -> bool {
    let comparison = evaluate(blocks, policy);
    let (open, spread_may_be) = match blocks.len() {
        ..MIN_BLOCKS_HOPELESS => return false,
        MIN_BLOCKS_HOPELESS..MIN_BLOCKS => (PairedReason::TooFewBlocks, SPREAD_OF_FEW_MAY_BE),
        _ => (PairedReason::DifferenceUnresolved, SPREAD_MAY_BE),
    };
    let is_open = comparison.verdict == PairedVerdict::Inconclusive;
    let Some(time) = comparison.time.filter(|_| is_open && comparison.reasons.contains(&open))
    else {
        return false;
    };
    let groups = f64::from(time.groups);
    let later = groups * (most.max(blocks.len()) as f64) / blocks.len().max(1) as f64;
    let half =
        spread_may_be * t_quantile(1.0 - policy.alpha_per_look(), later - 1.0) * time.block_sd
            / later.sqrt();
    let mean = time.ratio.ln().abs();
    let moves = time.block_sd / groups.sqrt() / 4.0;
    let may_be_same = policy.may_be_same(comparison.equivalence)
        && (mean - moves).max(0.0) + half < comparison.equivalence.ln_1p();
    let may_differ = mean + moves - half > comparison.margin.ln_1p();
    !may_be_same && !may_differ
}

/// Decides with the available blocks when the time limit is reached. This look uses the error
/// probability of one look, and the remaining looks do not take place. Blocks beyond [`MAX_BLOCKS`]
/// are ignored.
pub fn conclude(blocks: &[PairedBlock], policy: &ComparePolicy) -> PairedComparison {
    let mut comparison = evaluate(&blocks[..blocks.len().min(MAX_BLOCKS as usize)], policy);
    if policy.looks.last().is_some_and(|last| blocks.len() < *last as usize) {
        comparison.reasons.push(PairedReason::EndedEarly);
    }
    comparison
}

/// Decides after the last block: at the look that ended the measurement, or with the available
/// blocks if the time limit was reached before a look decided.
pub fn decide_at_end(blocks: &[PairedBlock], policy: &ComparePolicy) -> PairedComparison {
    let look = policy.looks.iter().position(|look| *look as usize == blocks.len());
    match look.map(|look| decide_at_look(blocks, look, policy)) {
        Some(LookOutcome::Done(comparison)) => *comparison,
        Some(LookOutcome::Continue { .. }) | None => conclude(blocks, policy),
    }
}

fn evaluate(blocks: &[PairedBlock], policy: &ComparePolicy) -> PairedComparison {
    let drops = drop_reasons(blocks, policy.calibrated_spread);
    let used: Vec<&PairedBlock> =
        blocks.iter().zip(&drops).filter(|(_, d)| d.is_none()).map(|(b, _)| b).collect();
    let by = compared_by(&used);
    let times: Vec<f64> = used.iter().filter_map(|block| block.ln_time_ratio(by)).collect();
    let cycles: Option<Vec<f64>> = used.iter().map(|block| block.ln_cycle_ratio(by)).collect();
    let limits = Limits::new(&used, policy);
    let time = Estimate::new(&times);
    let cycles = cycles.as_deref().and_then(Estimate::new);
    let alpha = policy.alpha_per_look();
    let dropped = blocks.len() - used.len();
    let too_many = dropped as f64 > policy.max_dropped * blocks.len() as f64;
    let apart = too_many && by == RankedBy::Median && are_apart(blocks, limits.ln_margin());
    let unsound = obstacle(blocks.len(), used.len(), too_many && !apart, time, alpha)
        .or_else(|| uneven(&used, by, time, alpha));
    let (mut verdict, mut reasons) = match unsound {
        Some(obstacle) => (PairedVerdict::Inconclusive, vec![obstacle]),
        None => limits.verdict(time, alpha),
    };
    let differs = matches!(verdict, PairedVerdict::Faster | PairedVerdict::Slower);
    let drifts = differs && drifts(&times);
    if drifts {
        (verdict, reasons) = (PairedVerdict::Inconclusive, vec![PairedReason::RatioDrifts]);
    }
    let (clock, clock_induced) = compare_clocks(verdict, cycles, limits, alpha);
    reasons.extend((apart && unsound.is_none()).then_some(PairedReason::SlotsApart));
    reasons.extend(clock);
    reasons.extend(limits.reason(policy));
    if by == RankedBy::Mean {
        reasons.push(PairedReason::MeansCompared);
    }
    if time.is_some_and(|time| time.merged > 1) {
        reasons.push(PairedReason::BlocksMerged);
    }
    let time_ratio = time.map(|time| ratio(time, alpha));
    // With too few blocks or too many rejected, a p-value would contradict the verdict.
    let sound = unsound.is_none() && !drifts;
    PairedComparison {
        verdict,
        reasons,
        speedup: time_ratio.map(|time| 1.0 / time.ratio),
        speedup_ci_low: time_ratio.map(|time| 1.0 / time.ci_high),
        speedup_ci_high: time_ratio.map(|time| 1.0 / time.ci_low),
        confidence: 1.0 - 2.0 * alpha,
        time: time_ratio,
        cycles: cycles.map(|cycles| ratio(cycles, alpha)),
        clock_induced,
        margin: limits.margin,
        equivalence: limits.equivalence,
        minimum_detectable_effect: time.map(|time| time.detectable(limits.margin, alpha)),
        p_value: time.filter(|_| sound).map(|time| limits.p_value(time, policy.looks.len())),
        blocks_used: used.len() as u32,
        blocks_dropped: (blocks.len() - used.len()) as u32,
        dropped: count(&drops),
        blocks: blocks.iter().zip(&drops).map(|(block, drop)| report(block, by, *drop)).collect(),
    }
}

/// Returns the statistic for the comparison of times. It is the mean if in one arm a few launches
/// do the work of the others, both in the first half of the blocks and in the second. Occasional
/// disturbances of the device affect both arms, and do not lead to the choice of the mean.
fn compared_by(used: &[&PairedBlock]) -> RankedBy {
    let (first, second) = used.split_at(used.len() / 2);
    let parts = |half: &[&PairedBlock]| {
        let [a, b] = [Arm::A, Arm::B].map(|arm| parted_by(&relative(half, arm)));
        (a - b).abs() > GAP
    };
    if parts(first) && parts(second) { RankedBy::Mean } else { RankedBy::Median }
}

/// Returns the reason that rules out a verdict if launches that do the work of others are so rare that the blocks do
/// not represent the total time of all launches.
fn uneven(
    used: &[&PairedBlock],
    by: RankedBy,
    time: Option<Estimate>,
    alpha: f64,
) -> Option<PairedReason> {
    let (low, high) = time.filter(|_| by == RankedBy::Mean)?.bounds(alpha);
    let total = |arm| {
        let slots = used.iter().flat_map(|block| block.slots(arm)).flatten();
        mean(&slots.map(|ms| f64::from(*ms)).collect::<Vec<_>>())
    };
    let ratio = (total(Arm::B)? / total(Arm::A)?).ln();
    let inside = (low - ROUNDING..=high + ROUNDING).contains(&ratio);
    (!inside).then_some(PairedReason::EstimatorsDisagree)
}

/// Difference between the halves of the blocks above which the ratio drifts, in standard errors.
const DRIFT: f64 = 3.0;

/// Returns whether log-ratios, in time order, move away from the average difference. A device or
/// process that is still warming up causes a difference that disappears in the end.
fn drifts(ln_ratios: &[f64]) -> bool {
    let (first, second) = ln_ratios.split_at(ln_ratios.len() / 2);
    let (_, last) = ln_ratios.split_at(ln_ratios.len() - ln_ratios.len() / 3);
    let moments = |values: &[f64]| {
        let mean = mean(values)?;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        (values.len() > 1).then(|| {
            let count = values.len() as f64;
            (mean, squares / (count - 1.0) / count)
        })
    };
    let (Some((a, va)), Some((b, vb))) = (moments(first), moments(second)) else { return false };
    let (Some(all), Some(last)) = (mean(ln_ratios), mean(last)) else { return false };
    let is_significant = (a - b).abs() > DRIFT * (va + vb).sqrt();
    is_significant && last * all.signum() < all.abs() / 2.0
}

/// Returns the samples of an arm divided by the medians of their slots.
fn relative(blocks: &[&PairedBlock], arm: Arm) -> Vec<f32> {
    let slots = blocks.iter().flat_map(|block| {
        let medians = block.ln_medians(arm).into_iter().flatten();
        block.slots(arm).iter().zip(medians.collect::<Vec<_>>())
    });
    slots
        .flat_map(|(slot, ln_median)| {
            let median = ln_median.exp() as f32;
            slot.iter().map(move |ms| ms / median)
        })
        .collect()
}

/// Returns the reason that rules out a verdict regardless of the estimate.
fn obstacle(
    blocks: usize,
    used: usize,
    too_many_dropped: bool,
    time: Option<Estimate>,
    alpha: f64,
) -> Option<PairedReason> {
    match time {
        _ if blocks > 0 && used == 0 => Some(PairedReason::AllBlocksDropped),
        _ if too_many_dropped => Some(PairedReason::TooManyDropped),
        _ if used < MIN_BLOCKS => Some(PairedReason::TooFewBlocks),
        None => Some(PairedReason::TooFewBlocks),
        Some(time) if time.dependent() => Some(PairedReason::DependentBlocks),
        Some(time) => {
            let (low, high) = time.bounds(alpha);
            let centre = time.hodges_lehmann;
            let inside = (low - ROUNDING..=high + ROUNDING).contains(&centre);
            (!inside).then_some(PairedReason::EstimatorsDisagree)
        }
    }
}

/// Relative limits of a verdict. In logarithms they are symmetric, so that exchanging the arms only
/// exchanges `faster` and `slower`.
#[derive(Debug, Clone, Copy)]
struct Limits {
    margin: f64,
    equivalence: f64,
    /// Whether the equivalence limit is narrow enough for the verdict `same`.
    may_be_same: bool,
    typical_ms: f64,
}

impl Limits {
    fn new(used: &[&PairedBlock], policy: &ComparePolicy) -> Self {
        let logs: Vec<f64> =
            used.iter().filter_map(|block| block.typical_ms()).map(f64::ln).collect();
        let typical_ms = if logs.is_empty() {
            0.0
        } else {
            (logs.iter().sum::<f64>() / logs.len() as f64).exp()
        };
        let margin = policy.margin_for(typical_ms);
        let equivalence = policy.equivalence_for(margin);
        Self { margin, equivalence, may_be_same: policy.may_be_same(equivalence), typical_ms }
    }

    fn ln_margin(self) -> f64 {
        self.margin.ln_1p() + ROUNDING
    }

    fn verdict(self, estimate: Option<Estimate>, alpha: f64) -> (PairedVerdict, Vec<PairedReason>) {
        let unresolved = (PairedVerdict::Inconclusive, vec![PairedReason::DifferenceUnresolved]);
        let Some((low, high)) = estimate.map(|estimate| estimate.bounds(alpha)) else {
            return unresolved;
        };
        let within = self.equivalence.ln_1p();
        if low > self.ln_margin() {
            (PairedVerdict::Slower, vec![PairedReason::BeyondMargin])
        } else if high < -self.ln_margin() {
            (PairedVerdict::Faster, vec![PairedReason::BeyondMargin])
        } else if low > -within && high < within && self.may_be_same {
            (PairedVerdict::Same, vec![PairedReason::WithinEquivalence])
        } else {
            unresolved
        }
    }

    /// Returns the p-value of "differs by no more than the margin", times the number of looks
    /// (Bonferroni). It is at most α exactly if the verdict is `faster` or `slower`. It is the
    /// smaller p-value of the two sides, because α applies to each side.
    fn p_value(self, time: Estimate, looks: usize) -> f64 {
        let side = time.p_above(self.ln_margin()).min(time.p_below(-self.ln_margin()));
        (side * looks.max(1) as f64).min(1.0)
    }

    /// Returns the reason why the margin exceeds the policy's, if it does.
    fn reason(self, policy: &ComparePolicy) -> Option<PairedReason> {
        if self.margin <= policy.margin {
            None
        } else if policy.resolution_for(self.typical_ms) >= policy.floor {
            Some(PairedReason::MarginFromResolution)
        } else {
            Some(PairedReason::MarginFromFloor)
        }
    }
}

/// Compares the verdict on cycles with that on time. Returns a reason, and whether only the clock
/// caused the difference in time.
fn compare_clocks(
    time: PairedVerdict,
    cycles: Option<Estimate>,
    limits: Limits,
    alpha: f64,
) -> (Option<PairedReason>, bool) {
    use PairedVerdict::{Faster, Inconclusive, Same, Slower};
    let Some(cycles) = cycles else { return (Some(PairedReason::ClockUnknown), false) };
    match (time, limits.verdict(Some(cycles), alpha).0) {
        (Faster, Same | Slower) | (Slower, Same | Faster) => {
            (Some(PairedReason::ClockInduced), true)
        }
        (Same, Faster | Slower) => (Some(PairedReason::ClockMasked), false),
        (Same | Inconclusive, _) | (Faster, Faster | Inconclusive) => (None, false),
        (Slower, Slower | Inconclusive) => (None, false),
    }
}

fn ratio(estimate: Estimate, alpha: f64) -> RatioEstimate {
    let (low, high) = estimate.bounds(alpha);
    RatioEstimate {
        ratio: estimate.mean.exp(),
        ci_low: low.exp(),
        ci_high: high.exp(),
        hodges_lehmann: estimate.hodges_lehmann.exp(),
        block_sd: estimate.sd,
        groups: estimate.groups,
        blocks_per_group: estimate.merged,
        lag1_autocorrelation: estimate.lag1,
    }
}

fn report(block: &PairedBlock, by: RankedBy, dropped: Option<DropReason>) -> BlockReport {
    BlockReport {
        order: block.order,
        time_ratio: block.ln_time_ratio(by).map(f64::exp),
        cycle_ratio: block.ln_cycle_ratio(by).map(f64::exp),
        dropped,
    }
}

fn count(drops: &[Option<DropReason>]) -> Vec<DropCount> {
    let mut counts = std::collections::BTreeMap::new();
    for reason in drops.iter().flatten() {
        *counts.entry(*reason).or_insert(0) += 1;
    }
    counts.into_iter().map(|(reason, count)| DropCount { reason, count }).collect()
}
