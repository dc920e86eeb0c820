//! Parallel element-wise comparison, with a result that does not depend on the number of threads.

use super::{Comparison, FillTrace, Filling, MAX_LISTED_MISMATCHES, Mismatch, ResolvedTolerance};
use crate::pieces;
use errors::Errors;
pub use extent::MismatchExtent;
use warpgauge_tensor::element::{Element, for_dtype};
use warpgauge_tensor::shape::unravel;
use warpgauge_tensor::{Dtype, shape_of_parts, unpacked};

mod errors;
mod extent;
mod fast;
mod joined;
mod map;

pub(super) use errors::ordinal;
pub use joined::{CountedErrors, JoinedComparison, placed};
use map::LazyMap;
pub use map::MismatchMap;

/// Compares raw little-endian elements: element `i` matches if
/// |actual − expected| ≤ atol + rtol·|expected|.
///
/// If an expectation has bounds, the element's bound is added to the right side ([`compare_traced`]).
///
/// The parts of complex elements are compared separately, as elements of a tensor with an additional dimension of
/// size 2. The two numbers in a byte of a packed type are also compared separately, as elements of a tensor whose
/// last dimension is twice as long.
///
/// Differences are computed in binary64; those of 64-bit integers are exact before they are converted. A NaN or
/// infinity matches only if the tolerance allows it and the expectation is NaN or the same infinity. `filling` is the
/// output's content before the launch. Elements that still hold it although another value is expected count as
/// unwritten, if there are too many for chance. If the buffers do not have the size that follows from `dtype` and
/// `shape`, the missing or surplus elements are mismatches.
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

/// Expected content of an output.
#[derive(Debug, Clone, Copy)]
pub struct Expectation<'a> {
    /// Expected elements, raw and little-endian.
    pub elements: &'a [u8],
    /// Error bound of each element in addition to the tolerance, as little-endian binary64 numbers. A bound that is
    /// missing, negative or not finite counts as 0.
    pub bounds: Option<&'a [u8]>,
}

impl<'a> Expectation<'a> {
    /// Returns the error bounds from an element on.
    fn bounds_from(self, element: u64) -> Option<&'a [u8]> {
        let from = usize::try_from(element).ok().and_then(|at| at.checked_mul(BOUND_BYTES));
        self.bounds.map(|all| from.and_then(|from| all.get(from..)).unwrap_or_default())
    }

    /// Returns the error bound of an element in addition to the tolerance.
    fn bound(&self, element: usize) -> f64 {
        let at = element * BOUND_BYTES;
        let bytes = self.bounds.and_then(|all| all.get(at..at + BOUND_BYTES)?.try_into().ok());
        let bound = bytes.map_or(0.0, f64::from_le_bytes);
        if bound > 0.0 && bound.is_finite() { bound } else { 0.0 }
    }
}

/// Size of a bound, bytes.
const BOUND_BYTES: usize = 8;

/// Compares as [`compare`] does, but with error bounds. Also returns the launch's trace of the filling, which can be
/// added to other traces.
pub fn compare_traced(
    dtype: Dtype,
    shape: &[u64],
    actual: &[u8],
    expected: Expectation<'_>,
    filling: Option<Filling>,
    tolerance: &ResolvedTolerance,
) -> (Comparison, FillTrace) {
    let (dtype, shape) = (dtype.part(), &shape_of_parts(dtype, shape)[..]);
    let elements = filling.map(|filling| filling.elements(dtype));
    let (mut comparison, held, suspects) =
        for_dtype!(dtype, compare_as(dtype, shape, actual, expected, elements, tolerance));
    comparison.refuse_half(dtype, actual, expected.elements);
    let mut trace = FillTrace::new(dtype);
    trace.add_launch(held, suspects);
    comparison.unwritten = if trace.is_reason() { trace.held } else { 0 };
    comparison.pattern = comparison.extent.pattern(shape, comparison.elements);
    (comparison, trace)
}

/// Elements of the filling, indexed by element index modulo 4.
type Fillings = [[u8; 8]; 4];

/// Result of comparing one chunk.
#[derive(Default)]
struct Partial {
    matched: u64,
    non_finite: u64,
    non_finite_matched: u64,
    /// Number of mismatches that are within the tolerance of outliers.
    outliers: u64,
    /// Number of elements that hold the filling, and number of elements that hold it or are wrong, by element index
    /// modulo 4.
    held: [u64; 4],
    suspects: [u64; 4],
    errors: Errors,
    extent: MismatchExtent,
    map: LazyMap,
    /// Mismatches: the index of the element in the tensor, the actual value and the expected value.
    mismatches: Vec<(u64, String, String)>,
}

impl Comparison {
    /// Returns what [`compare`] returns if all elements are finite and equal the expected ones.
    pub fn of_equal(dtype: Dtype, shape: &[u64], tolerance: &ResolvedTolerance) -> Self {
        let (dtype, shape) = (dtype.part(), &shape_of_parts(dtype, shape)[..]);
        for_dtype!(dtype, of_equal_as(shape, tolerance))
    }
}

fn of_equal_as<T: Comparable>(shape: &[u64], tolerance: &ResolvedTolerance) -> Comparison {
    let elements = shape.iter().product();
    let equal = Partial { matched: elements, errors: Errors::none(elements), ..Partial::default() };
    merge(vec![equal], elements, shape, T::ULP, tolerance).0
}

fn compare_as<T: Comparable>(
    dtype: Dtype,
    shape: &[u64],
    actual: &[u8],
    expected: Expectation<'_>,
    filling: Option<Fillings>,
    tolerance: &ResolvedTolerance,
) -> (Comparison, [u64; 4], [u64; 4]) {
    // A wide tolerance may accept a filling. That cannot happen if all elements are finite and the filling is
    // NaN or near the largest number.
    let exact = tolerance.atol == 0.0 && tolerance.rtol == 0.0;
    let sharp = exact || (T::ULP && T::SIZE > 1) || filling.is_none();
    let packed = if dtype.is_packed() { dtype.parts() } else { 1 };
    let partials = pieces::of_two([actual, expected.elements], T::SIZE, &|first, pieces| {
        let first = first * packed;
        let [actual, elements] = pieces.map(|piece| unpacked(dtype, piece));
        let (actual, elements) = (&actual[..], &elements[..]);
        let quick = (actual.len() == elements.len())
            .then(|| T::all_match(actual, elements, tolerance))
            .flatten()
            .filter(|_| sharp || actual == elements);
        let expected = Expectation { elements, bounds: expected.bounds_from(first) };
        match quick {
            Some(errors) => {
                Partial { matched: (actual.len() / T::SIZE) as u64, errors, ..Partial::default() }
            }
            None => examine::<T>((first, shape), actual, expected, filling.as_ref(), tolerance),
        }
    });
    let in_shape = shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent));
    let longest = (actual.len().max(expected.elements.len()).div_ceil(T::SIZE)) as u64 * packed;
    let elements = in_shape.unwrap_or(u64::MAX).max(longest);
    merge(partials, elements, shape, T::ULP, tolerance)
}

/// Compares element by element. `first` is the offset of the first element in a tensor of this shape.
fn examine<T: Comparable>(
    (first, shape): (u64, &[u64]),
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
        // The first element of a chunk has an index that is a multiple of 4.
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
        partial.extent.add(first + offset as u64, shape);
        partial.map.add(first + offset as u64, shape);
        if partial.mismatches.len() < MAX_LISTED_MISMATCHES {
            partial.mismatches.push((first + offset as u64, actual.text(), expected_value.text()));
        }
    }
    partial
}

/// Result of comparing one pair of elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Judged {
    pub(super) matches: bool,
    /// |actual − expected|, or `None` unless both values are finite.
    pub(super) error: Option<f64>,
}

/// Applies the rule of [`compare`] to one pair of elements.
#[inline]
pub(super) fn judge<T: Comparable>(
    actual: T,
    expected: T,
    tolerance: &ResolvedTolerance,
) -> Judged {
    judge_within(actual, expected, tolerance, 0.0)
}

/// Applies the rule of [`compare`] to one pair of elements, with an error bound in addition to the tolerance.
#[inline]
fn judge_within<T: Comparable>(
    actual: T,
    expected: T,
    tolerance: &ResolvedTolerance,
    bound: f64,
) -> Judged {
    let (x, y) = (actual.to_f64(), expected.to_f64());
    if x.is_finite() && y.is_finite() {
        // The difference of two finite numbers may overflow.
        let error = T::distance(actual, expected).min(f64::MAX);
        let matches = error <= tolerance.atol + tolerance.rtol * y.abs() + bound;
        return Judged { matches, error: Some(error) };
    }
    let same = x == y || (x.is_nan() && y.is_nan());
    Judged { matches: tolerance.allow_non_finite && same, error: None }
}

/// Returns whether a pair that does not match is within the tolerance of outliers.
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
        total.extent.join(&partial.extent, 0);
        total.map.join(partial.map);
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
        half_precision: false,
        outliers,
        near: total.outliers,
        extent: total.extent,
        pattern: None,
        mismatch_map: if passed { None } else { total.map.beyond(MAX_LISTED_MISMATCHES) },
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

/// Returns whether enough elements match, and the number of accepted outliers: all outliers if there are few enough,
/// otherwise none.
fn accepted(
    (matched, near): (u64, u64),
    elements: u64,
    tolerance: &ResolvedTolerance,
) -> (bool, u64) {
    let most = tolerance.outliers.map_or(0.0, |outliers| outliers.share * elements as f64);
    let outliers = if near as f64 <= most { near } else { 0 };
    (enough(matched + outliers, elements, tolerance), outliers)
}

/// Returns whether enough elements match.
pub(super) fn enough(matched: u64, elements: u64, tolerance: &ResolvedTolerance) -> bool {
    let required = tolerance.required_matched_ratio;
    matched == elements || (required < 1.0 && matched as f64 >= required * elements as f64)
}

/// An element type that can be compared.
pub(crate) trait Comparable: Element {
    /// Whether errors are also counted in units in the last place, as for floating-point numbers.
    const ULP: bool;
    /// Returns |actual − expected| of finite values.
    fn distance(actual: Self, expected: Self) -> f64;
    /// Compares a whole chunk quickly. Both sides must have the same length. Returns the errors if every element
    /// matches, or `None` if an element may not match.
    fn all_match(actual: &[u8], expected: &[u8], tolerance: &ResolvedTolerance) -> Option<Errors>;
}

#[cfg(test)]
mod non_finite_tests;
#[cfg(test)]
mod tests;
