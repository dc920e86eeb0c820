//! Wire types of a paired comparison. The main type is [`PairedComparison`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::block::BlockOrder;
use super::drops::DropReason;

/// What a comparison found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PairedVerdict {
    /// The candidate is faster by more than the margin.
    Faster,
    /// The candidate is slower by more than the margin.
    Slower,
    /// They differ by less than the equivalence limit.
    Same,
    /// None of these could be shown.
    Inconclusive,
}

/// What led to a verdict, or is to be known with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PairedReason {
    /// The whole interval lies beyond the margin.
    BeyondMargin,
    /// The whole interval lies within the equivalence limit.
    WithinEquivalence,
    /// The interval reaches from what matters to what does not: more blocks, or a quieter device.
    DifferenceUnresolved,
    /// Every block was dropped.
    AllBlocksDropped,
    /// More blocks were dropped than may be.
    TooManyDropped,
    /// More blocks were dropped than may be, but in all blocks every slot of one kernel was slower than every
    /// slot of the other, beyond the margin.
    SlotsApart,
    /// Fewer than 8 blocks are left.
    TooFewBlocks,
    /// Successive blocks depended on one another too much for any interval, also after merging.
    DependentBlocks,
    /// Successive blocks depended on one another and were merged.
    BlocksMerged,
    /// Means are compared in place of medians: in one of the kernels some launches may bear the work of
    /// others.
    MeansCompared,
    /// The Hodges–Lehmann estimate lies outside the interval: a few blocks move the mean.
    EstimatorsDisagree,
    /// The ratio changed while the comparison ran, and its last third does not show the difference that all blocks
    /// together do.
    RatioDrifts,
    /// The comparison ended before its last look.
    EndedEarly,
    /// The times vary so much that the blocks that the time allows would not have resolved the difference, so
    /// the comparison ended.
    SpreadTooWide,
    /// The margin is one tick of the clock.
    MarginFromResolution,
    /// The margin is what the case showed against itself.
    MarginFromFloor,
    /// The times differ and the cycles do not, or the other way round: the clock made the difference.
    ClockInduced,
    /// The times are alike and the cycles differ: the clock makes up for it.
    ClockMasked,
    /// The clock was not known for every slot, so cycles are not compared.
    ClockUnknown,
}

/// A ratio, candidate over reference, with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RatioEstimate {
    /// Candidate over reference: below 1 the candidate needs less.
    pub ratio: f64,
    /// Lower end of the confidence interval.
    pub ci_low: f64,
    /// Upper end.
    pub ci_high: f64,
    /// Hodges–Lehmann estimate of the same ratio.
    pub hodges_lehmann: f64,
    /// Standard deviation of a block, relative.
    pub block_sd: f64,
    /// Blocks, or groups of merged blocks, that the estimate rests on.
    pub groups: u32,
    /// Blocks per group; more than 1 where successive blocks depended on one another.
    pub blocks_per_group: u32,
    /// Autocorrelation of successive groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag1_autocorrelation: Option<f64>,
}

/// One block as it went into the comparison, or did not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockReport {
    /// Order of its slots.
    pub order: BlockOrder,
    /// Ratio of the times, candidate over reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ratio: Option<f64>,
    /// Ratio of the SM cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle_ratio: Option<f64>,
    /// Why it does not count, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<DropReason>,
}

/// How many blocks were dropped for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DropCount {
    /// The reason.
    pub reason: DropReason,
    /// Blocks.
    pub count: u32,
}

/// The outcome of a paired comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairedComparison {
    /// The verdict on time.
    pub verdict: PairedVerdict,
    /// Why, most important first.
    pub reasons: Vec<PairedReason>,
    /// Time of the reference over time of the candidate: above 1 the candidate is faster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup: Option<f64>,
    /// Lower end of the speedup's confidence interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup_ci_low: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup_ci_high: Option<f64>,
    /// Level of the intervals, two-sided, at this one look.
    pub confidence: f64,
    /// Ratio of the times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<RatioEstimate>,
    /// Ratio of the SM cycles, where the clocks are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<RatioEstimate>,
    /// The difference in time is one of clock, not of cycles.
    pub clock_induced: bool,
    /// The margin τ, relative: differences up to it are not called.
    pub margin: f64,
    /// The equivalence limit Δ, relative: `same` means within it.
    pub equivalence: f64,
    /// Least difference, relative, that these blocks would have called in 95 of 100 cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum_detectable_effect: Option<f64>,
    /// p-value of the difference beyond the margin, corrected for the looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// Blocks that counted.
    pub blocks_used: u32,
    /// Blocks that did not.
    pub blocks_dropped: u32,
    /// Why they did not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<DropCount>,
    /// Every block, in time order.
    pub blocks: Vec<BlockReport>,
}
