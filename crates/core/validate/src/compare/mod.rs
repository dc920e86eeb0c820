//! Element-wise comparison, parallel, with a result that does not depend on the number of threads.

use super::{Comparison, FillTrace, Filling, MAX_LISTED_MISMATCHES, Mismatch, ResolvedTolerance};
use crate::pieces;
use errors::Errors;
use warpgauge_tensor::Dtype;
use warpgauge_tensor::element::{Element, for_dtype};
use warpgauge_tensor::shape::unravel;

mod errors;
mod fast;
mod joined;

pub(super) use errors::ordinal;
pub use joined::{CountedErrors, JoinedComparison, placed};

/// Compares raw little-endian elements: element `i` matches if
/// |actual − expected| ≤ atol + rtol·|expected|.
///
/// Where an expectation has bounds, that of the element is added to the right side ([`compare_traced`]).
///
/// Differences are computed in binary64, those of 64-bit integers exactly. A NaN or infinity
/// matches only if the tolerance allows it and the expectation is NaN or the same infinity.
/// `filling` is what the output held before the launch: if elements that still hold it, where
/// something else is expected, are too many for chance, they count as unwritten. Should the buffers not have the size
/// that `dtype` and `shape` give, the missing or surplus elements are mismatches.
pub fn compare(
    dtype: Dtype,
    shape: &[u64],
    actual: &[u8],
    expected: &[u8],
    filling: Option<Filling>,
    tolerance: &ResolvedTolerance,
) -> Comparison {
    let expected = Expectation { elements: expected, bounds: None };
    compare_traced(dtype, shape, actual, expected, filling, tolerance).0
}

/// What is expected of an output.
#[derive(Debug, Clone, Copy)]
pub struct Expectation<'a> {
    /// Raw little-endian elements.
    pub elements: &'a [u8],
    /// A binary64 number for each element, little-endian: how far it may be off beside what the tolerance
    /// allows. One that is missing, negative or not finite allows nothing.
    pub bounds: Option<&'a [u8]>,
}

impl<'a> Expectation<'a> {
    /// Bounds of the elements from one on.
    fn bounds_from(self, element: u64) -> Option<&'a [u8]> {
        let from = usize::try_from(element).ok().and_then(|at| at.checked_mul(BOUND_BYTES));
        self.bounds.map(|all| from.and_then(|from| all.get(from..)).unwrap_or_default())
    }

    /// How far an element may be off beside what the tolerance allows.
    fn bound(&self, element: usize) -> f64 {
        let at = element * BOUND_BYTES;
        let bytes = self.bounds.and_then(|all| all.get(at..at + BOUND_BYTES)?.try_into().ok());
        let bound = bytes.map_or(0.0, f64::from_le_bytes);
        if bound > 0.0 && bound.is_finite() { bound } else { 0.0 }
    }
}

/// Bytes of a bound.
const BOUND_BYTES: usize = 8;

/// As [`compare`], and what the launch left of the filling, to be added to that of others.
pub fn compare_traced(
    dtype: Dtype,
    shape: &[u64],
    actual: &[u8],
    expected: Expectation<'_>,
    filling: Option<Filling>,
    tolerance: &ResolvedTolerance,
) -> (Comparison, FillTrace) {
    let elements = filling.map(|filling| filling.elements(dtype));
    let (mut comparison, held, suspects) =
        for_dtype!(dtype, compare_as(shape, actual, expected, elements, tolerance));
    let mut trace = FillTrace::new(dtype);
    trace.add_launch(held, suspects);
    comparison.unwritten = if trace.is_reason() { trace.held } else { 0 };
    (comparison, trace)
}

/// What an output held before the launch, by an element's place modulo 4.
type Fillings = [[u8; 8]; 4];

/// What one chunk found.
#[derive(Default)]
struct Partial {
    matched: u64,
    non_finite: u64,
    non_finite_matched: u64,
    /// Mismatches that are near enough for outliers.
    outliers: u64,
    /// By place modulo 4: elements that hold the filling, and all that do or are wrong.
    held: [u64; 4],
    suspects: [u64; 4],
    errors: Errors,
    /// Element offset in the tensor, actual, expected.
    mismatches: Vec<(u64, String, String)>,
}

fn compare_as<T: Comparable>(
    shape: &[u64],
    actual: &[u8],
    expected: Expectation<'_>,
    filling: Option<Fillings>,
    tolerance: &ResolvedTolerance,
) -> (Comparison, [u64; 4], [u64; 4]) {
    // What follows a filling may be within a wide tolerance; but not where all is finite, and the
    // filling is not or is next to the largest number.
    let exact = tolerance.atol == 0.0 && tolerance.rtol == 0.0;
    let sharp = exact || (T::ULP && T::SIZE > 1) || filling.is_none();
    let partials =
        pieces::of_two([actual, expected.elements], T::SIZE, &|first, [actual, elements]| {
            let quick = (actual.len() == elements.len())
                .then(|| T::all_match(actual, elements, tolerance))
                .flatten()
                .filter(|_| sharp || actual == elements);
            let expected = Expectation { elements, bounds: expected.bounds_from(first) };
            match quick {
                Some(errors) => Partial {
                    matched: (actual.len() / T::SIZE) as u64,
                    errors,
                    ..Partial::default()
                },
                None => examine::<T>(first, actual, expected, filling.as_ref(), tolerance),
            }
        });
    let in_shape = shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent));
    let longest = (actual.len().max(expected.elements.len()).div_ceil(T::SIZE)) as u64;
    let elements = in_shape.unwrap_or(u64::MAX).max(longest);
    merge(partials, elements, shape, T::ULP, tolerance)
}

/// Every element on its own.
fn examine<T: Comparable>(
    first: u64,
    actual: &[u8],
    expected: Expectation<'_>,
    filling: Option<&Fillings>,
    tolerance: &ResolvedTolerance,
) -> Partial {
    let mut partial = Partial::default();
    let pairs = actual.chunks_exact(T::SIZE).zip(expected.elements.chunks_exact(T::SIZE));
    for (offset, (actual_bytes, expected_bytes)) in pairs.enumerate() {
        let (actual, expected_value) = (T::read(actual_bytes), T::read(expected_bytes));
        let judged = judge_within(actual, expected_value, tolerance, expected.bound(offset));
        // The place of a chunk is a multiple of 4.
        let cell = offset % 4;
        let held = filling.is_some_and(|f| f[cell][..T::SIZE] == *actual_bytes)
            && actual_bytes != expected_bytes;
        partial.held[cell] += u64::from(held);
        partial.suspects[cell] += u64::from(held || !judged.matches);
        if let Some(error) = judged.error {
            partial.errors.add(error, expected_value.to_f64());
            if T::ULP {
                let (x, y) = (ordinal::<T>(actual_bytes), ordinal::<T>(expected_bytes));
                partial.errors.add_ulp(x.abs_diff(y));
            }
        }
        if judged.matches {
            partial.matched += 1;
            partial.non_finite_matched += u64::from(!actual.to_f64().is_finite());
            continue;
        }
        partial.non_finite += u64::from(!actual.to_f64().is_finite());
        partial.outliers += u64::from(is_outlier(actual, expected_value, tolerance));
        if partial.mismatches.len() < MAX_LISTED_MISMATCHES {
            partial.mismatches.push((first + offset as u64, actual.text(), expected_value.text()));
        }
    }
    partial
}

/// What is to be said of one pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Judged {
    /// Whether the pair matches.
    pub(super) matches: bool,
    /// |actual − expected| if both are finite.
    pub(super) error: Option<f64>,
}

/// The rule of [`compare`] for one pair of elements.
#[inline]
pub(super) fn judge<T: Comparable>(
    actual: T,
    expected: T,
    tolerance: &ResolvedTolerance,
) -> Judged {
    judge_within(actual, expected, tolerance, 0.0)
}

/// The same, where the pair may be off by `bound` beside what the tolerance allows.
#[inline]
fn judge_within<T: Comparable>(
    actual: T,
    expected: T,
    tolerance: &ResolvedTolerance,
    bound: f64,
) -> Judged {
    let (x, y) = (actual.to_f64(), expected.to_f64());
    if x.is_finite() && y.is_finite() {
        // Two finite numbers may be further apart than the largest.
        let error = T::distance(actual, expected).min(f64::MAX);
        let matches = error <= tolerance.atol + tolerance.rtol * y.abs() + bound;
        return Judged { matches, error: Some(error) };
    }
    let same = x == y || (x.is_nan() && y.is_nan());
    Judged { matches: tolerance.allow_non_finite && same, error: None }
}

/// Whether a pair that does not match is near enough where few are.
fn is_outlier<T: Comparable>(actual: T, expected: T, tolerance: &ResolvedTolerance) -> bool {
    tolerance.outliers.is_some_and(|outliers| {
        let further = ResolvedTolerance { atol: outliers.atol, ..*tolerance };
        judge(actual, expected, &further).matches
    })
}

fn merge(
    partials: Vec<Partial>,
    elements: u64,
    shape: &[u64],
    ulp: bool,
    tolerance: &ResolvedTolerance,
) -> (Comparison, [u64; 4], [u64; 4]) {
    let mut total = Partial::default();
    for partial in partials {
        total.matched += partial.matched;
        total.non_finite += partial.non_finite;
        total.non_finite_matched += partial.non_finite_matched;
        total.outliers += partial.outliers;
        for cell in 0..4 {
            total.held[cell] += partial.held[cell];
            total.suspects[cell] += partial.suspects[cell];
        }
        total.errors.merge(&partial.errors);
        let room = MAX_LISTED_MISMATCHES - total.mismatches.len();
        total.mismatches.extend(partial.mismatches.into_iter().take(room));
    }
    let errors = &total.errors;
    let (passed, outliers) = accepted((total.matched, total.outliers), elements, tolerance);
    let comparison = Comparison {
        passed,
        elements,
        matched: total.matched,
        non_finite: total.non_finite,
        non_finite_matched: total.non_finite_matched,
        tied: 0,
        outliers,
        near: total.outliers,
        unwritten: 0,
        max_abs_error: errors.max_abs(),
        max_rel_error: errors.max_rel(),
        mean_abs_error: errors.mean_abs(),
        rms_error: errors.rms(),
        ulp: if ulp { errors.ulp_distribution() } else { None },
        tolerance: *tolerance,
        first_mismatches: total
            .mismatches
            .into_iter()
            .map(|(offset, actual, expected)| Mismatch {
                index: unravel(offset, shape),
                actual,
                expected,
            })
            .collect(),
    };
    (comparison, total.held, total.suspects)
}

/// Whether enough elements match, with those that are near enough for outliers if they are few; and how many these are.
fn accepted(
    (matched, near): (u64, u64),
    elements: u64,
    tolerance: &ResolvedTolerance,
) -> (bool, u64) {
    let most = tolerance.outliers.map_or(0.0, |outliers| outliers.share * elements as f64);
    let outliers = if near as f64 <= most { near } else { 0 };
    (enough(matched + outliers, elements, tolerance), outliers)
}

/// Whether so many matches are enough.
pub(super) fn enough(matched: u64, elements: u64, tolerance: &ResolvedTolerance) -> bool {
    let required = tolerance.required_matched_ratio;
    matched == elements || (required < 1.0 && matched as f64 >= required * elements as f64)
}

/// What the comparison needs of an element type.
pub(crate) trait Comparable: Element {
    /// Whether errors are also counted in units in the last place: floating-point numbers.
    const ULP: bool;
    /// |actual − expected|, both finite.
    fn distance(actual: Self, expected: Self) -> f64;
    /// A quick look at a whole chunk, both sides of one length: the errors if every element
    /// matches, `None` if one may not.
    fn all_match(actual: &[u8], expected: &[u8], tolerance: &ResolvedTolerance) -> Option<Errors>;
}

#[cfg(test)]
mod non_finite_tests;
#[cfg(test)]
mod tests;
