//! Is the output right? Tolerances and comparison; pure.

use poem_openapi::Object;
use serde::{Deserialize, Serialize};

mod compare;
mod message;
mod tolerance;

pub use compare::compare;
pub use message::validation_error;
pub use tolerance::{default_tolerance, resolve};

/// Byte that fills outputs before a launch, so that elements that are never written are seen.
///
/// 0xFF repeated is NaN in every floating-point type (binary64, binary32, binary16, bfloat16, E4M3,
/// E5M2), so a sum over unwritten memory is NaN; it is no valid bool, and as an integer it is −1 or
/// the type's largest value, which few kernels are expected to write.
pub const POISON_BYTE: u8 = 0xFF;

/// Mismatches that a comparison lists.
pub const MAX_LISTED_MISMATCHES: usize = 10;

/// A tolerance with every default filled in for one element type.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct ResolvedTolerance {
    /// Absolute tolerance.
    pub atol: f64,
    /// Relative tolerance.
    pub rtol: f64,
    /// Share of elements that must pass, 0–1.
    pub required_matched_ratio: f64,
    /// Whether NaN may match NaN and an infinity an equal one.
    pub allow_non_finite: bool,
}

/// One element that does not match.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct Mismatch {
    /// Index of the element, one number per dimension.
    pub index: Vec<u64>,
    /// Value the kernel wrote, as text (exact for integers, shortest round-trip for floats).
    pub actual: String,
    /// Value it should have written, as text.
    pub expected: String,
}

/// Outcome of comparing one output with its expectation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct Comparison {
    /// Whether enough elements match.
    pub passed: bool,
    /// Elements compared.
    pub elements: u64,
    /// Elements that match.
    pub matched: u64,
    /// Elements that are NaN or infinite where the expectation is not, or that may not be.
    pub non_finite: u64,
    /// Elements that still hold the poison pattern: never written.
    pub unwritten: u64,
    /// Largest |actual − expected| among finite pairs.
    pub max_abs_error: f64,
    /// Largest |actual − expected| / |expected| among finite pairs with expected ≠ 0.
    pub max_rel_error: f64,
    /// The tolerance applied.
    pub tolerance: ResolvedTolerance,
    /// The first mismatches, in index order.
    pub first_mismatches: Vec<Mismatch>,
}
