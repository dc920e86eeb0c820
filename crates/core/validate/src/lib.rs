//! Validation of outputs and of contracts: tolerances, comparison, fillings, reasons for rejection, and
//! contract weaknesses. This crate has no side effects. docs/validation.md explains the rules.

#![forbid(unsafe_code)]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use warpgauge_tensor::Dtype;

mod arrangement;
mod compare;
mod elements;
mod filling;
mod fit;
mod inside;
mod lint;
mod message;
mod narrow;
mod noise;
mod nudges;
mod pieces;
mod rare;
mod reason;
mod standing;
mod ties;
mod tolerance;

#[cfg(test)]
mod corpora_tests;
#[cfg(test)]
mod moved_tests;

pub use arrangement::{Arrangement, Content, Contents, Rearranged, RowCount, RowOrder, Scaled};
pub use compare::{
    CountedErrors, Expectation, JoinedComparison, MismatchExtent, MismatchMap, compare,
    compare_traced, placed,
};
pub use elements::makes_change;
pub use filling::{FillTrace, Filling, POISON_BYTE, UnwrittenElements};
pub use inside::{may_round_inside, nudge_across};
pub use lint::{
    ArgumentContents, OutputFacts, Weakness, WeaknessCode, lint_output, needs_more_seeds,
    no_expectation,
};
pub use message::validation_error;
pub use noise::is_doubtful;
pub use nudges::{Nudge, NudgedRun, QUICK, nudges, sample, sampled_ranges};
pub use rare::FusionTies;
pub use reason::{Reason, ReasonCode};
pub use standing::StandingTies;
pub use ties::{Tie, tie};
pub use tolerance::{
    is_open, resolve, resolve_beside_bounds, resolve_by_fusion, resolve_by_noise, resolve_by_type,
    resolve_with_scales,
};

/// Maximum number of mismatches that a comparison lists.
pub const MAX_LISTED_MISMATCHES: usize = 10;

/// Tolerance of a comparison, with all defaults filled in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResolvedTolerance {
    /// Absolute tolerance.
    pub atol: f64,
    /// Relative tolerance.
    pub rtol: f64,
    /// Share of elements that must pass, 0–1.
    pub required_matched_ratio: f64,
    /// Whether NaN may match NaN, and an infinity an equal infinity.
    pub allow_non_finite: bool,
    /// Origin of `atol` and `rtol`.
    #[serde(default)]
    pub basis: ToleranceBasis,
    /// Shorter type in which the reference computes internally, e.g. bfloat16 under autocast, if the tolerance
    /// follows from it. Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub computes_in: Option<Dtype>,
    /// Larger tolerance for a few elements. Absent unless a few elements have far more noise than the others, or
    /// integers may be rounded either way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outliers: Option<OutlierTolerance>,
}

/// Larger tolerance for a few elements.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutlierTolerance {
    /// Maximum share of elements that may have this tolerance, 0–1.
    pub share: f64,
    /// Absolute tolerance of these elements.
    pub atol: f64,
}

/// Origin of a tolerance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToleranceBasis {
    /// The request gives the tolerance.
    #[default]
    Given,
    /// Integers, bool and scales (`float8_e8m0fnu`) are compared exactly.
    Exact,
    /// Rounding errors of the reference, measured by moving its inputs by a few units in the last
    /// place, or, for integers, with and without fused multiply-add.
    ReferenceNoise,
    /// Rounding errors of a reference that rounds its inputs to fewer bits, e.g. TF32 or bfloat16, measured by moving
    /// its inputs.
    InnerRounding,
    /// Size of the expected values and precision of their type.
    ExpectedSize,
    /// Distance between neighbouring numbers of a floating-point type of 8 or 4 bits.
    ElementType,
    /// Half a step of the expected number plus half a step of the actual one, each times its scale
    /// (`compare_as.scales`).
    Scales,
}

impl Comparison {
    /// Accepts indices that differ from the expected ones only among equal keys ([`tie`]).
    pub fn excuse_ties(&mut self) {
        if !self.passed && self.unwritten == 0 {
            self.tied = self.elements - self.matched;
            self.passed = true;
            self.first_mismatches.clear();
            self.pattern = None;
        }
    }
}

/// Element that does not match.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mismatch {
    /// Index of the element, with one number for each dimension.
    pub index: Vec<u64>,
    /// Actual value, as text (exact for integers, shortest round-trip for floating point).
    pub actual: String,
    /// Expected value, as text.
    pub expected: String,
}

/// Distances between actual and expected elements in units in the last place (ulp): steps from one number of the type
/// to the next. Zeros of both signs are equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UlpDistribution {
    /// Largest distance. Distances of 2^63 or more, which occur only between 64-bit numbers of different signs, are
    /// reported as 2^63 − 1.
    pub max: u64,
    /// Median distance: the upper end of its bin in the histogram.
    pub p50: u64,
    /// 90th percentile of the distances: the upper end of its bin in the histogram.
    pub p90: u64,
    /// 99th percentile of the distances: the upper end of its bin in the histogram.
    pub p99: u64,
    /// Number of pairs by distance: 0, then 1, 2–3, 4–7, 8–15, …; at most 65 numbers.
    pub histogram: Vec<u64>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Result of comparing one output with its expectation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Whether enough elements match.
    pub passed: bool,
    /// Number of elements.
    pub elements: u64,
    /// Number of elements that match.
    pub matched: u64,
    /// Number of elements that are NaN or infinite and do not match.
    pub non_finite: u64,
    /// Number of elements that are NaN or infinite and match the expectation.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub non_finite_matched: u64,
    /// Number of indices that differ from the expected ones but select an equal key of an input. They count as
    /// correct.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tied: u64,
    /// Number of elements that do not match, but lie within the tolerance of outliers; 0 if there are too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub outliers: u64,
    /// Number of elements that do not match but are within the tolerance of outliers, regardless of
    /// the limit.
    #[serde(skip)]
    near: u64,
    /// Positions of the elements that do not match.
    #[serde(skip)]
    pub extent: MismatchExtent,
    /// Description of the mismatches, if they form a pattern, e.g. `rows 32 to 63` or
    /// `every second element from 1 to 2047`. Absent if there is no pattern, if no element matches, or if only one
    /// does not match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Map of the mismatches over the whole output. Absent if the output passes, or if `first_mismatches` lists them
    /// all. Also absent for outputs that a device compares in parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mismatch_map: Option<MismatchMap>,
    /// Whether every number in the output is exact in float16, although the element type is wider and most of the
    /// reference's numbers need more bits. Such an output fails. The check applies if `basis` is `inner_rounding` and
    /// `rtol` is at most 0.002, as for TF32, because that tolerance would accept results in float16.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub half_precision: bool,
    /// Number of elements that were never written, because they still hold the filling.
    pub unwritten: u64,
    /// Largest |actual − expected| among finite pairs.
    pub max_abs_error: f64,
    /// Largest |actual − expected| / |expected| among finite pairs with expected ≠ 0.
    pub max_rel_error: f64,
    /// Mean of |actual − expected| over finite pairs.
    #[serde(default)]
    pub mean_abs_error: f64,
    /// Root of the mean square of actual − expected over finite pairs.
    #[serde(default)]
    pub rms_error: f64,
    /// Errors of a floating-point output in units in the last place, over finite pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ulp: Option<UlpDistribution>,
    /// Tolerance that was applied.
    pub tolerance: ResolvedTolerance,
    /// First mismatches, in index order; at most 10.
    pub first_mismatches: Vec<Mismatch>,
}
