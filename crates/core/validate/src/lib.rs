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
    CountedErrors, Expectation, JoinedComparison, MismatchExtent, compare, compare_traced, placed,
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

/// Most mismatches that a comparison lists.
pub const MAX_LISTED_MISMATCHES: usize = 10;

/// A tolerance with every default filled in for one element type.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResolvedTolerance {
    /// Absolute tolerance.
    pub atol: f64,
    /// Relative tolerance.
    pub rtol: f64,
    /// Share of elements that must pass, 0–1.
    pub required_matched_ratio: f64,
    /// Whether NaN may match NaN and an infinity an equal one.
    pub allow_non_finite: bool,
    /// Where `atol` and `rtol` come from.
    #[serde(default)]
    pub basis: ToleranceBasis,
    /// Shorter type in which the reference computes inside, such as bfloat16 under autocast, where that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub computes_in: Option<Dtype>,
    /// What a few elements may be off by, where the reference's own noise is far larger in a few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outliers: Option<OutlierTolerance>,
}

/// How far a few elements may be off.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutlierTolerance {
    /// Share of the elements that this is allowed to, at most, 0–1.
    pub share: f64,
    /// Their absolute tolerance, in place of the other one.
    pub atol: f64,
}

/// Where a tolerance comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToleranceBasis {
    /// The request gives it.
    #[default]
    Given,
    /// Integers, bool and scales (`float8_e8m0fnu`) are compared exactly.
    Exact,
    /// The reference's own rounding, measured by moving its inputs by a unit in the last place.
    ReferenceNoise,
    /// The same, of a reference that rounds its inputs to fewer bits than they have, such as TF32 or bfloat16.
    InnerRounding,
    /// The size of the expected values and the precision of their type.
    ExpectedSize,
    /// The steps of a floating-point type of 8 or 4 bits.
    ElementType,
    /// Half a step of the expected and of the own number, each times its scale (`compare_as.scales`).
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

/// One element that does not match.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mismatch {
    /// Index of the element, one number per dimension.
    pub index: Vec<u64>,
    /// Value the kernel wrote, as text (exact for integers, shortest round-trip for floats).
    pub actual: String,
    /// Value it should have written, as text.
    pub expected: String,
}

/// Distances between actual and expected in units in the last place: how many numbers of the element
/// type lie between the two, plus one if they differ. Zeros of both signs are equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UlpDistribution {
    /// Largest distance; 2^63 and more, which only numbers of 64 bits with unlike signs can be apart,
    /// is reported as 2^63 − 1.
    pub max: u64,
    /// Half of the pairs are at most so far apart: the upper end of the histogram's bin.
    pub p50: u64,
    /// 90 % of the pairs are at most so far apart: the upper end of the histogram's bin.
    pub p90: u64,
    /// 99 % of the pairs are at most so far apart: the upper end of the histogram's bin.
    pub p99: u64,
    /// Pairs by distance: equal ones, then those 1, 2–3, 4–7, 8–15, … apart; at most 65 numbers.
    pub histogram: Vec<u64>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Outcome of comparing one output with its expectation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Whether enough elements match.
    pub passed: bool,
    /// Elements compared.
    pub elements: u64,
    /// Elements that match.
    pub matched: u64,
    /// Elements that are NaN or infinite where the expectation is not, or that may not be.
    pub non_finite: u64,
    /// Elements that are NaN or infinite, as the expectation is there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub non_finite_matched: u64,
    /// Indices that differ from the expected ones and name an equal key of an input: they are right as well.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tied: u64,
    /// Elements that do not match and are near enough for outliers, where they are few enough.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub outliers: u64,
    /// Elements that do not match and are near enough for outliers, however many.
    #[serde(skip)]
    near: u64,
    /// Where the elements lie that do not match.
    #[serde(skip)]
    pub extent: MismatchExtent,
    /// Names the elements that do not match, where they have a pattern: `rows 32 to 63`, `every second element from 1 to
    /// 2047`. Absent where all elements differ, or one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Whether the output has only float16 numbers in a wider type, where the reference has more bits. Such an output
    /// fails. It is looked for where `basis` is `inner_rounding` and `rtol` at most 0.002, as for TF32: that tolerance
    /// admits float16.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub half_precision: bool,
    /// Elements that still hold what the output was filled with: never written.
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
    /// The tolerance applied.
    pub tolerance: ResolvedTolerance,
    /// The first mismatches, in index order.
    pub first_mismatches: Vec<Mismatch>,
}
