//! Wire types of a paired comparison. The main type is [`PairedComparison`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::block::BlockOrder;
use super::drops::DropReason;

/// Verdict of a comparison of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PairedVerdict {
    /// The candidate is faster by more than the margin.
    Faster,
    /// The candidate is slower by more than the margin.
    Slower,
    /// The times differ by less than the equivalence limit.
    Same,
    /// The data supports none of the other verdicts.
    Inconclusive,
}

/// Reason for a verdict, or a note on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PairedReason {
    /// The whole confidence interval lies beyond the margin.
    BeyondMargin,
    /// The whole confidence interval lies within the equivalence limit.
    WithinEquivalence,
    /// The interval contains both relevant and irrelevant differences. More blocks or a quieter device would help.
    DifferenceUnresolved,
    /// Every block was dropped.
    AllBlocksDropped,
    /// Too many blocks were dropped.
    TooManyDropped,
    /// Too many blocks were dropped, but in all blocks every slot of one kernel was slower than every slot of the
    /// other, by more than the margin.
    SlotsApart,
    /// Fewer than 8 blocks are left after rejection.
    TooFewBlocks,
    /// Successive blocks depend on one another too much for any interval, even after merging.
    DependentBlocks,
    /// Successive blocks depend on one another, and were merged.
    BlocksMerged,
    /// Means are compared in place of medians, because some launches of a kernel may do the work of others.
    MeansCompared,
    /// The Hodges–Lehmann estimate lies outside the interval, because a few blocks move the mean.
    EstimatorsDisagree,
    /// The ratio changed during the comparison. Its last third does not show the difference that all blocks together
    /// show.
    RatioDrifts,
    /// The comparison ended early, before the last number of blocks at which a verdict is sought.
    EndedEarly,
    /// The times vary so much that the remaining blocks could not have resolved the difference, so the comparison
    /// ended early.
    SpreadTooWide,
    /// The margin is the difference that one tick of the clock makes.
    MarginFromResolution,
    /// The margin is the calibrated floor: the largest measured difference when the case was
    /// compared with itself.
    MarginFromFloor,
    /// The difference in time is not confirmed by the cycles, or the cycles differ in the opposite
    /// direction: the clock caused the difference.
    ClockInduced,
    /// The times are equal, but the cycles differ: a change of the clock compensates for the
    /// difference.
    ClockMasked,
    /// The clock was not known for every slot, so cycles are not compared.
    ClockUnknown,
}

/// Ratio of the candidate to the reference, with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RatioEstimate {
    /// Value of the candidate divided by that of the reference. Below 1, the candidate needs less.
    pub ratio: f64,
    /// Lower end of the confidence interval.
    pub ci_low: f64,
    /// Upper end of the confidence interval.
    pub ci_high: f64,
    /// Hodges–Lehmann estimate of the same ratio.
    pub hodges_lehmann: f64,
    /// Relative standard deviation of a block, or of a group of merged blocks.
    pub block_sd: f64,
    /// Number of blocks, or of groups of merged blocks, in the estimate.
    pub groups: u32,
    /// Number of blocks per group. It exceeds 1 if successive blocks depend on one another.
    pub blocks_per_group: u32,
    /// Autocorrelation of successive blocks, or of groups of merged blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag1_autocorrelation: Option<f64>,
}

/// Block of a comparison, used or dropped.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockReport {
    /// Order of the four slots of the block.
    pub order: BlockOrder,
    /// Time of the candidate divided by that of the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ratio: Option<f64>,
    /// SM cycles of the candidate divided by those of the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle_ratio: Option<f64>,
    /// Reason for dropping the block. Absent if it is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<DropReason>,
}

/// Number of blocks that were dropped for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DropCount {
    /// Reason for dropping the blocks.
    pub reason: DropReason,
    /// Number of blocks that were dropped for this reason.
    pub count: u32,
}

/// Comparison of the times of two kernels, side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairedComparison {
    /// Verdict on the times.
    pub verdict: PairedVerdict,
    /// Reasons for the verdict, the most important first.
    pub reasons: Vec<PairedReason>,
    /// Time of the reference divided by the time of the candidate. Above 1, the candidate is
    /// faster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup: Option<f64>,
    /// Lower end of the speedup's confidence interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup_ci_low: Option<f64>,
    /// Upper end of the speedup's confidence interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup_ci_high: Option<f64>,
    /// Two-sided confidence level of the intervals, at this look alone.
    pub confidence: f64,
    /// Ratio of the times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<RatioEstimate>,
    /// Ratio of the SM cycles. Absent if the clocks are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<RatioEstimate>,
    /// Whether a different clock, and not a different number of cycles, caused the difference in
    /// time.
    pub clock_induced: bool,
    /// Relative margin τ. Smaller differences are not called `faster` or `slower`.
    pub margin: f64,
    /// Relative equivalence limit Δ: `same` means a difference within this limit.
    pub equivalence: f64,
    /// Smallest relative difference that these blocks detect with a probability of 95 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum_detectable_effect: Option<f64>,
    /// p-value of the difference beyond the margin, corrected for the looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// Number of blocks that are used.
    pub blocks_used: u32,
    /// Number of blocks that were dropped.
    pub blocks_dropped: u32,
    /// Number of dropped blocks by reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<DropCount>,
    /// Blocks in time order.
    pub blocks: Vec<BlockReport>,
}
