//! How close is close enough.

use super::noise::{NoiseTolerance, ToleranceBounds, tolerance_by_noise, tolerance_by_size};
use super::rare::{jumps_by_one, ties_by_fusion};
use super::{NudgedRun, OutlierTolerance, ResolvedTolerance, ToleranceBasis};
use warpgauge_contract::Tolerance;
use warpgauge_tensor::Dtype;

/// Absolute and relative tolerance of an element type, whatever values it holds.
///
/// | type | atol | rtol | why |
/// |---|---|---|---|
/// | float8_e4m3 | 2⁻⁶ | 1/8 | neighbours are up to 1/8 apart: one step |
/// | float8_e5m2 | 2⁻⁶ | 1/4 | neighbours are up to 1/4 apart: one step |
/// | integers, bool | 0 | 0 | exact |
///
/// Wider floating-point types have none: theirs follows from what is expected.
fn of_type(dtype: Dtype) -> (ToleranceBounds, ToleranceBasis) {
    let (atol, rtol, basis) = match dtype {
        Dtype::Float8E4m3 => (1.0 / 64.0, 0.125, ToleranceBasis::ElementType),
        Dtype::Float8E5m2 => (1.0 / 64.0, 0.25, ToleranceBasis::ElementType),
        _ => (0.0, 0.0, ToleranceBasis::Exact),
    };
    (ToleranceBounds { atol, rtol }, basis)
}

/// As [`resolve`], where each element has a bound of its own: what a contract does not allow is not.
pub fn resolve_beside_bounds(tolerance: Option<&Tolerance>) -> ResolvedTolerance {
    filled(tolerance, ToleranceBounds { atol: 0.0, rtol: 0.0 }, ToleranceBasis::Given)
}

/// The tolerance of an output of which these data are expected: what the caller gives, each field on its own, and else
/// what the type and the size of the values allow.
pub fn resolve(tolerance: Option<&Tolerance>, dtype: Dtype, expected: &[u8]) -> ResolvedTolerance {
    resolve_by_size(tolerance, dtype, expected, true)
}

fn resolve_by_size(
    tolerance: Option<&Tolerance>,
    dtype: Dtype,
    expected: &[u8],
    are_data: bool,
) -> ResolvedTolerance {
    let by_size = tolerance_by_size(dtype, expected, are_data);
    match by_size.filter(|_| is_open(tolerance, dtype)) {
        Some(bounds) => filled(tolerance, bounds, ToleranceBasis::ExpectedSize),
        None => resolve_by_type(tolerance, dtype),
    }
}

/// As [`resolve`], where a reference computed the values: by what it left for inputs that were moved, if that tells it.
/// `base`: the sample of the output for inputs as they are.
pub fn resolve_by_noise(
    tolerance: Option<&Tolerance>,
    dtype: Dtype,
    base: &[u8],
    runs: &[NudgedRun<'_>],
) -> ResolvedTolerance {
    let open = is_open(tolerance, dtype);
    let basis = ToleranceBasis::ReferenceNoise;
    if !dtype.is_float() {
        let outliers = jumps_by_one(dtype, base, runs).filter(|_| open);
        let exact = resolve_by_type(tolerance, dtype);
        return outliers.map_or(exact, |_| ResolvedTolerance { outliers, basis, ..exact });
    }
    match tolerance_by_noise(dtype, base, runs).filter(|_| open) {
        Some(NoiseTolerance { bounds, outliers, rounds_inputs }) => {
            let basis = if rounds_inputs { ToleranceBasis::InnerRounding } else { basis };
            with_outliers(filled(tolerance, bounds, basis), tolerance, outliers)
        }
        None => resolve_by_size(tolerance, dtype, base, false),
    }
}

/// The tolerance of whole numbers, from what a reference leaves with fused multiply-add and without: where few elements
/// differ, each by one, they lie next to a tie of rounding.
pub fn resolve_by_fusion(
    tolerance: Option<&Tolerance>,
    dtype: Dtype,
    [fused, separate]: [&[u8]; 2],
) -> ResolvedTolerance {
    let exact = resolve_by_type(tolerance, dtype);
    let outliers = ties_by_fusion(dtype, fused, separate).filter(|_| is_open(tolerance, dtype));
    let basis = ToleranceBasis::ReferenceNoise;
    outliers.map_or(exact, |_| ResolvedTolerance { outliers, basis, ..exact })
}

/// A tolerance for few elements beside that of all, where the caller gives neither of its fields.
fn with_outliers(
    resolved: ResolvedTolerance,
    tolerance: Option<&Tolerance>,
    outliers: Option<OutlierTolerance>,
) -> ResolvedTolerance {
    let is_given = tolerance.is_some_and(|given| given.atol.is_some() || given.rtol.is_some());
    ResolvedTolerance { outliers: outliers.filter(|_| !is_given), ..resolved }
}

/// The tolerance as far as it does not hang on what is expected.
pub fn resolve_by_type(tolerance: Option<&Tolerance>, dtype: Dtype) -> ResolvedTolerance {
    let (bounds, basis) = of_type(dtype);
    filled(tolerance, bounds, basis)
}

/// Whether the tolerance of an output follows from what is expected of it, wholly or in part.
pub fn is_open(tolerance: Option<&Tolerance>, dtype: Dtype) -> bool {
    let has_own = dtype.is_float() && dtype.size() == 1;
    !has_own && !is_given(tolerance, dtype)
}

/// Whether the caller gives all of a tolerance that counts: of integers each of its fields does.
fn is_given(tolerance: Option<&Tolerance>, dtype: Dtype) -> bool {
    tolerance.is_some_and(|given| match dtype.is_float() {
        true => given.atol.is_some() && given.rtol.is_some(),
        false => given.atol.is_some() || given.rtol.is_some(),
    })
}

/// Fills in what a caller leaves open, each field on its own.
fn filled(
    tolerance: Option<&Tolerance>,
    bounds: ToleranceBounds,
    basis: ToleranceBasis,
) -> ResolvedTolerance {
    let [atol, rtol] =
        [tolerance.and_then(|given| given.atol), tolerance.and_then(|given| given.rtol)];
    let basis = if atol.is_some() && rtol.is_some() { ToleranceBasis::Given } else { basis };
    ResolvedTolerance {
        atol: atol.unwrap_or(bounds.atol),
        rtol: rtol.unwrap_or(bounds.rtol),
        required_matched_ratio: tolerance
            .and_then(|given| given.required_matched_ratio)
            .unwrap_or(1.0),
        allow_non_finite: tolerance.and_then(|given| given.allow_non_finite).unwrap_or(true),
        basis,
        outliers: None,
    }
}
