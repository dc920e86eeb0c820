//! Results in half precision. Where a reference rounds inside, as in TF32, the tolerance is as wide as the
//! rounding of float16, and cannot find them.

use super::nudges::FEW_ELEMENTS;
use super::{ResolvedTolerance, ToleranceBasis};
use warpgauge_tensor::Dtype;
use warpgauge_tensor::element::Element;

/// Relative distance to the next float16 number that shows that a value has more bits. An eighth of all
/// values of more bits are nearer.
const APART: f64 = 1.0 / 16384.0;

/// Returns whether every value is a float16 number, though the expected ones are not and the element type has
/// more bits. Only the tolerance of a reference that rounds inside admits such a result.
pub(super) fn is_rounded_to_half(
    dtype: Dtype,
    actual: &[u8],
    expected: &[u8],
    tolerance: &ResolvedTolerance,
) -> bool {
    if tolerance.basis != ToleranceBasis::InnerRounding {
        return false;
    }
    match dtype {
        Dtype::Float32 => is_rounded::<f32>(actual, expected),
        Dtype::Float64 => is_rounded::<f64>(actual, expected),
        _ => false,
    }
}

fn is_rounded<T: Element>(actual: &[u8], expected: &[u8]) -> bool {
    let values = |bytes: &'_ [u8]| -> Vec<f64> {
        bytes.chunks_exact(T::SIZE).map(|bytes| T::read(bytes).to_f64()).collect()
    };
    let in_half = |value: f64| half::f16::from_f64(value).to_f64();
    let is_half = |bytes: &[u8]| {
        let value = T::read(bytes).to_f64();
        value.is_nan() || in_half(value) == value
    };
    if !actual.chunks_exact(T::SIZE).all(is_half) {
        return false;
    }
    let shown: Vec<f64> =
        values(expected).into_iter().filter(|value| value.is_finite() && *value != 0.0).collect();
    let apart =
        shown.iter().filter(|value| (in_half(**value) - **value).abs() > APART * value.abs());
    shown.len() >= FEW_ELEMENTS && 2 * apart.count() > shown.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve_by_type;

    fn found(values: impl Fn(usize) -> (f32, f32), basis: ToleranceBasis) -> bool {
        let of = |pick: &dyn Fn((f32, f32)) -> f32| -> Vec<u8> {
            (0..256).flat_map(|at| pick(values(at)).to_le_bytes()).collect()
        };
        let tolerance = ResolvedTolerance { basis, ..resolve_by_type(None, Dtype::Float32) };
        let (actual, expected) = (of(&|pair| pair.0), of(&|pair| pair.1));
        is_rounded_to_half(Dtype::Float32, &actual, &expected, &tolerance)
    }

    fn value(at: usize) -> f32 {
        (at as f32 * 0.37).sin() * 3.0
    }

    fn rounded(value: f32) -> f32 {
        half::f16::from_f32(value).to_f32()
    }

    #[test]
    fn a_result_in_half_precision_is_found_where_the_reference_rounds_inside() {
        let in_half = |at| (rounded(value(at)), value(at));
        assert!(found(in_half, ToleranceBasis::InnerRounding));
        assert!(!found(in_half, ToleranceBasis::Given));
    }

    #[test]
    fn a_result_with_more_bits_or_of_short_numbers_is_not() {
        let basis = ToleranceBasis::InnerRounding;
        assert!(!found(|at| (value(at), value(at)), basis));
        let but_one = |at| (if at == 70 { value(at) } else { rounded(value(at)) }, value(at));
        assert!(!found(but_one, basis));
        // The reference's rounding errors beside whole numbers are no further bits.
        assert!(!found(|at| (at as f32, at as f32 * (1.0 + f32::EPSILON)), basis));
        assert!(!found(|at| (0.0, if at < 9 { value(at + 1) } else { 0.0 }), basis));
    }
}
