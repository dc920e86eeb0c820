//! How close is close enough.

use super::ResolvedTolerance;
use warpgauge_contract::Tolerance;
use warpgauge_tensor::Dtype;

/// Absolute and relative tolerance of an element type, where the contract gives none.
///
/// | type | atol | rtol | why |
/// |---|---|---|---|
/// | float64 | 1e-9 | 1e-9 | ε is 2.2e-16: room for sums of millions of terms in any order |
/// | float32 | 1e-5 | 1e-4 | ε is 1.2e-7: room for sums of thousands of terms, fast maths |
/// | float16 | 1e-3 | 1e-2 | ε is 9.8e-4: about ten roundings |
/// | bfloat16 | 1e-2 | 1.6e-2 | ε is 7.8e-3: two roundings, as in PyTorch's own tests |
/// | float8_e4m3 | 2⁻⁶ | 1/8 | neighbours are up to 1/8 apart: one step |
/// | float8_e5m2 | 2⁻⁶ | 1/4 | neighbours are up to 1/4 apart: one step |
/// | integers, bool | 0 | 0 | exact |
///
/// The absolute parts are for results near zero, where cancellation leaves no relative accuracy;
/// they assume values of order 1. A contract whose values are much smaller must give its own.
pub fn default_tolerance(dtype: Dtype) -> (f64, f64) {
    match dtype {
        Dtype::Float64 => (1e-9, 1e-9),
        Dtype::Float32 => (1e-5, 1e-4),
        Dtype::Float16 => (1e-3, 1e-2),
        Dtype::Bfloat16 => (1e-2, 1.6e-2),
        Dtype::Float8E4m3 => (1.0 / 64.0, 0.125),
        Dtype::Float8E5m2 => (1.0 / 64.0, 0.25),
        _ => (0.0, 0.0),
    }
}

/// As [`resolve`], where each element has a bound of its own: what a contract does not allow is not.
pub fn resolve_beside_bounds(tolerance: Option<&Tolerance>) -> ResolvedTolerance {
    // Integers allow nothing by themselves.
    resolve(tolerance, Dtype::Int64)
}

/// Fills in what a contract leaves open, each field on its own.
pub fn resolve(tolerance: Option<&Tolerance>, dtype: Dtype) -> ResolvedTolerance {
    let (atol, rtol) = default_tolerance(dtype);
    ResolvedTolerance {
        atol: tolerance.and_then(|given| given.atol).unwrap_or(atol),
        rtol: tolerance.and_then(|given| given.rtol).unwrap_or(rtol),
        required_matched_ratio: tolerance
            .and_then(|given| given.required_matched_ratio)
            .unwrap_or(1.0),
        allow_non_finite: tolerance.is_some_and(|given| given.allow_non_finite),
    }
}
