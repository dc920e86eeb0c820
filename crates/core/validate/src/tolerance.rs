//! Resolution of the tolerance of an output.

use super::noise::{NoiseTolerance, ToleranceBounds, tolerance_by_noise, tolerance_by_size};
use super::rare::{FusionTies, jumps_by_one};
use super::{NudgedRun, OutlierTolerance, ResolvedTolerance, ToleranceBasis};
use warpgauge_contract::Tolerance;
use warpgauge_tensor::Dtype;

/// Returns the absolute and relative tolerance of an element type, which do not depend on the values.
///
/// | type | atol | rtol | why |
/// |---|---|---|---|
/// | float8_e4m3 | 2⁻⁶ | 1/8 | neighbours are up to 1/8 apart: one step |
/// | float8_e5m2 | 2⁻⁶ | 1/4 | neighbours are up to 1/4 apart: one step |
/// | float4_e2m1fn_x2 | 1/2 | 3/8 | neighbours are 1/2 apart up to 2, then up to 1/2 of the larger: one step |
/// | float8_e8m0fnu | 0 | 0 | neighbours are a factor of 2 apart: a step is another scale |
/// | integers, bool | 0 | 0 | exact |
///
/// Parts of complex numbers have the tolerance of their type. Wider floating-point types have no
/// fixed tolerance; it follows from the expected values.
fn of_type(dtype: Dtype) -> (ToleranceBounds, ToleranceBasis) {
    let (atol, rtol, basis) = match dtype {
        Dtype::Float8E4m3 => (1.0 / 64.0, 0.125, ToleranceBasis::ElementType),
        Dtype::Float8E5m2 => (1.0 / 64.0, 0.25, ToleranceBasis::ElementType),
        Dtype::Float4E2m1x2 => (0.5, 0.375, ToleranceBasis::ElementType),
        _ => (0.0, 0.0, ToleranceBasis::Exact),
    };
    (ToleranceBounds { atol, rtol }, basis)
}

/// Returns the tolerance of an output with an error bound for each element. Absolute and relative tolerance are 0
/// unless the contract gives them.
pub fn resolve_beside_bounds(tolerance: Option<&Tolerance>) -> ResolvedTolerance {
    filled(tolerance, ToleranceBounds { atol: 0.0, rtol: 0.0 }, ToleranceBasis::Given)
}

/// Returns the tolerance of an output whose expectation is given as data. Fields that the caller gives are used as
/// they are; the others follow from the type and the size of the values.
pub fn resolve(tolerance: Option<&Tolerance>, dtype: Dtype, expected: &[u8]) -> ResolvedTolerance {
    resolve_by_size(tolerance, dtype, expected, true)
}

fn resolve_by_size(
    tolerance: Option<&Tolerance>,
    dtype: Dtype,
    expected: &[u8],
    are_data: bool,
) -> ResolvedTolerance {
    let dtype = dtype.part();
    let by_size = tolerance_by_size(dtype, expected, are_data);
    match by_size.filter(|_| is_open(tolerance, dtype)) {
        Some(bounds) => filled(tolerance, bounds, ToleranceBasis::ExpectedSize),
        None => resolve_by_type(tolerance, dtype),
    }
}

/// Returns the tolerance of an output whose expected values a reference computed. The tolerance follows from the
/// reference's results for moved inputs, if these determine one. `base` is the sample of the output for the original
/// inputs. `computes_in` is a shorter type in which the reference is known to compute.
pub fn resolve_by_noise(
    tolerance: Option<&Tolerance>,
    dtype: Dtype,
    base: &[u8],
    (runs, computes_in): (&[NudgedRun<'_>], Option<Dtype>),
) -> ResolvedTolerance {
    let dtype = dtype.part();
    let open = is_open(tolerance, dtype);
    let basis = ToleranceBasis::ReferenceNoise;
    if !dtype.is_float() {
        let outliers = jumps_by_one(dtype, base, runs).filter(|_| open);
        let exact = resolve_by_type(tolerance, dtype);
        return outliers.map_or(exact, |_| ResolvedTolerance { outliers, basis, ..exact });
    }
    match tolerance_by_noise(dtype, base, runs, computes_in).filter(|_| open) {
        Some(NoiseTolerance { bounds, outliers, rounds_inputs, computes_in }) => {
            let basis = if rounds_inputs { ToleranceBasis::InnerRounding } else { basis };
            let resolved = ResolvedTolerance { computes_in, ..filled(tolerance, bounds, basis) };
            with_outliers(resolved, tolerance, outliers)
        }
        None => resolve_by_size(tolerance, dtype, base, false),
    }
}

/// Returns the tolerance of integers, from a reference's results with and without fused multiply-add. If few elements
/// differ, each by one, these are close to a rounding tie.
pub fn resolve_by_fusion(
    tolerance: Option<&Tolerance>,
    dtype: Dtype,
    ties: FusionTies,
    elements: usize,
) -> ResolvedTolerance {
    let exact = resolve_by_type(tolerance, dtype);
    let outliers = ties.tolerance(elements).filter(|_| is_open(tolerance, dtype));
    let basis = ToleranceBasis::ReferenceNoise;
    outliers.map_or(exact, |_| ResolvedTolerance { outliers, basis, ..exact })
}

/// Adds a tolerance for outliers, unless the caller gives `atol` or `rtol`.
fn with_outliers(
    resolved: ResolvedTolerance,
    tolerance: Option<&Tolerance>,
    outliers: Option<OutlierTolerance>,
) -> ResolvedTolerance {
    let is_given = tolerance.is_some_and(|given| given.atol.is_some() || given.rtol.is_some());
    ResolvedTolerance { outliers: outliers.filter(|_| !is_given), ..resolved }
}

/// Returns the tolerance by type, which does not depend on the expected values.
pub fn resolve_by_type(tolerance: Option<&Tolerance>, dtype: Dtype) -> ResolvedTolerance {
    let (bounds, basis) = of_type(dtype);
    filled(tolerance, bounds, basis)
}

/// Returns the tolerance of quantised values and of their scales. Both are judged together before the comparison, so
/// all remaining differences are mismatches.
pub fn resolve_with_scales(tolerance: Option<&Tolerance>) -> ResolvedTolerance {
    let nothing = ToleranceBounds { atol: 0.0, rtol: 0.0 };
    let given = tolerance.map(|given| Tolerance { atol: None, rtol: None, ..given.clone() });
    filled(given.as_ref(), nothing, ToleranceBasis::Scales)
}

/// Returns whether the tolerance of an output follows, wholly or in part, from its expected values.
pub fn is_open(tolerance: Option<&Tolerance>, dtype: Dtype) -> bool {
    let has_own = dtype.is_float() && dtype.size() == 1;
    !has_own && !is_given(tolerance, dtype)
}

/// Returns whether the caller gives a complete tolerance. For integers, one of the fields is
/// enough.
fn is_given(tolerance: Option<&Tolerance>, dtype: Dtype) -> bool {
    tolerance.is_some_and(|given| match dtype.is_float() {
        true => given.atol.is_some() && given.rtol.is_some(),
        false => given.atol.is_some() || given.rtol.is_some(),
    })
}

/// Fills in the fields that the caller leaves out.
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
        computes_in: None,
        outliers: None,
    }
}
