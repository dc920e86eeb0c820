//! Detection of results in half precision. If a reference rounds internally, as in TF32, the tolerance is as wide as
//! the rounding of float16, and cannot detect such results.

use super::fit::MOST_RELATIVE;
use super::nudges::FEW_ELEMENTS;
use super::{Comparison, ToleranceBasis};
use warpgauge_tensor::Dtype;
use warpgauge_tensor::element::Element;

/// Relative distance to the nearest float16 number at which a value is known to need more bits. An eighth of all
/// values that need more bits are nearer.
const APART: f64 = 1.0 / 16384.0;

impl Comparison {
    /// Fails an output in which every value is exact in float16, although most of the expected values are not and the
    /// element type is wider. Only the tolerance of a reference that rounds internally accepts such an output. The
    /// check leaves out references that round to fewer bits than float16, e.g. to bfloat16: their relative tolerance
    /// is wide, and a result in float16 is as precise. The contents may be samples of the whole.
    pub fn refuse_half(&mut self, dtype: Dtype, actual: &[u8], expected: &[u8]) {
        let is_of_tf32 = self.tolerance.basis == ToleranceBasis::InnerRounding
            && self.tolerance.computes_in.is_none()
            && self.tolerance.rtol <= MOST_RELATIVE;
        let is_rounded = match dtype.part() {
            _ if !self.passed || !is_of_tf32 => false,
            Dtype::Float32 => is_rounded::<f32>(actual, expected),
            Dtype::Float64 => is_rounded::<f64>(actual, expected),
            _ => false,
        };
        if is_rounded {
            self.half_precision = true;
            self.passed = false;
        }
    }
}

fn is_rounded<T: Element>(actual: &[u8], expected: &[u8]) -> bool {
    let values = |bytes| <[u8]>::chunks_exact(bytes, T::SIZE).map(|bytes| T::read(bytes).to_f64());
    if !values(actual).all(|value| value.is_nan() || in_half(value) == value) {
        return false;
    }
    let shown: Vec<f64> =
        values(expected).filter(|value| value.is_finite() && *value != 0.0).collect();
    let is_apart = |value: &&f64| (in_half(**value) - **value).abs() > APART * value.abs();
    shown.len() >= FEW_ELEMENTS && 2 * shown.iter().filter(is_apart).count() > shown.len()
}

/// Returns the nearest float16 number.
pub(super) fn in_half(value: f64) -> f64 {
    half::f16::from_f64(value).to_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ResolvedTolerance, compare, resolve_by_type};

    fn found(values: impl Fn(usize) -> (f32, f32), basis: ToleranceBasis) -> bool {
        found_at(1e-3, values, basis)
    }

    fn found_at(rtol: f64, values: impl Fn(usize) -> (f32, f32), basis: ToleranceBasis) -> bool {
        let of = |pick: &dyn Fn((f32, f32)) -> f32| -> Vec<u8> {
            (0..256).flat_map(|at| pick(values(at)).to_le_bytes()).collect()
        };
        let wide = ResolvedTolerance { atol: 10.0, rtol, ..resolve_by_type(None, Dtype::Float32) };
        let tolerance = ResolvedTolerance { basis, ..wide };
        let (actual, expected) = (of(&|pair| pair.0), of(&|pair| pair.1));
        let comparison = compare(Dtype::Float32, &[256], &actual, &expected, None, &tolerance);
        assert_eq!(comparison.passed, !comparison.half_precision);
        comparison.half_precision
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
        // The reference rounds to bfloat16.
        assert!(!found_at(4e-3, in_half, ToleranceBasis::InnerRounding));
    }

    #[test]
    fn a_result_with_more_bits_or_of_short_numbers_is_not() {
        let basis = ToleranceBasis::InnerRounding;
        assert!(!found(|at| (value(at), value(at)), basis));
        let but_one = |at| (if at == 70 { value(at) } else { rounded(value(at)) }, value(at));
        assert!(!found(but_one, basis));
        // Rounding errors of the reference next to whole numbers do not count as additional bits.
        assert!(!found(|at| (at as f32, at as f32 * (1.0 + f32::EPSILON)), basis));
        assert!(!found(|at| (0.0, if at < 9 { value(at + 1) } else { 0.0 }), basis));
    }
}
