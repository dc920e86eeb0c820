//! The sum of products that a tensor core computes for numbers of 8 to 16 bits, and for tf32.
//!
//! The PTX ISA does not specify order and precision. The algorithm was derived from measurements on
//! compute capability 9.0, and its results are equal bit for bit there. Products and addend are
//! exact. All of them are aligned to the term with the largest exponent and truncated toward zero
//! after [`FRACTION`] fraction bits. Their sum is truncated to the 24 significant bits of f32. The
//! exponent of a product is the sum of the exponents of its factors.

/// Number of fraction bits to which terms are truncated: the 23 bits of f32 and two more.
pub(crate) const FRACTION: i32 = 25;
/// Number of significant bits of f32.
const DIGITS: u32 = 24;
/// Lower bound of the exponents of all nonzero products.
pub(crate) const LEAST: i32 = -300;

#[inline(always)]
pub(crate) fn exponent(v: f64) -> i32 {
    (v.to_bits() >> 52 & 0x7ff) as i32 - 1023
}

#[inline(always)]
pub(crate) fn power_of_two(n: i32) -> f64 {
    f64::from_bits(((1023 + n) as u64) << 52)
}

/// Returns `c` plus the sum of the products of two vectors, whose elements have exponents in f32's
/// range. Returns `None` if exponents do not determine the result: for an infinity or a NaN, or if
/// all terms are zero.
pub(crate) fn dot(x: &[f64], y: &[f64], c: f64) -> Option<f64> {
    if !c.is_finite() {
        return None;
    }
    let (mut top, mut finite) = (exponent(c), true);
    for (a, b) in x.iter().zip(y) {
        let product = a * b;
        finite &= product.is_finite();
        // The exponent of zero is far below all others.
        top = top.max(exponent(*a) + exponent(*b));
    }
    if !finite || top < LEAST {
        return None;
    }
    let scale = power_of_two(FRACTION - top);
    let products = x.iter().zip(y).map(|(a, b)| (a * b * scale) as i64);
    let sum = (c * scale) as i64 + products.sum::<i64>();
    let magnitude = sum.unsigned_abs();
    let excess = (64 - magnitude.leading_zeros()).saturating_sub(DIGITS);
    let cut = (magnitude >> excess << excess) as f64;
    Some((if sum < 0 { -cut } else { cut }) * power_of_two(top - FRACTION))
}

/// Returns the sum of products of 8-bit floats, which the hardware converts to f16. It consists of
/// two partial sums: one of the first two and one of the last two elements of every four. `round`
/// rounds each partial sum. The addend is added last.
pub(crate) fn eight(x: &[f64], y: &[f64], c: f64, round: impl Fn(f64) -> f64) -> f64 {
    let mut sum = 0.0;
    for half in 0..2 {
        let mine = |v: &[f64]| -> Vec<f64> {
            v.chunks(4).flat_map(|four| four.iter().skip(2 * half).take(2)).copied().collect()
        };
        let (x, y) = (mine(x), mine(y));
        let chain = || x.iter().zip(&y).fold(sum, |sum, (a, b)| a.mul_add(*b, sum));
        sum = round(dot(&x, &y, sum).unwrap_or_else(chain));
    }
    sum + c
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_terms_are_cut_and_the_sum_too() {
        let one = [1.0];
        assert_eq!(dot(&[3.0], &[5.0], 1.0), Some(16.0));
        // 2⁻²⁵ is the last digit that counts beside 1, and the sum has no digit for it.
        assert_eq!(dot(&[2f64.powi(-25)], &one, 1.0), Some(1.0));
        let two = [2f64.powi(-24), -2f64.powi(-26)];
        assert_eq!(dot(&two, &[1.0, 1.0], -1.0), Some(-1.0 + 2f64.powi(-24)));
        // The nearest value would be 1 + 2⁻²³.
        let near = [2f64.powi(-24), 2f64.powi(-25)];
        assert_eq!(dot(&near, &[1.0, 1.0], 1.0), Some(1.0));
        assert_eq!(dot(&[-1.0], &one, 1.0), Some(0.0));
    }

    #[test]
    fn two_halves_of_eight_bit_numbers() {
        let whole = |v: f64| v.floor();
        let (x, y) = ([0.5, 0.0, 0.5, 0.0], [1.0; 4]);
        assert_eq!(eight(&x, &y, 1.0, whole), 1.0);
        assert_eq!(eight(&[0.5, 0.5, 0.0, 0.0], &y, 1.0, whole), 2.0);
    }

    #[test]
    fn no_exponent_no_sum() {
        assert_eq!(dot(&[0.0], &[-1.0], -0.0), None);
        assert_eq!(dot(&[f64::INFINITY], &[1.0], 0.0), None);
        assert_eq!(dot(&[0.0], &[f64::INFINITY], 0.0), None);
        assert_eq!(dot(&[1.0], &[1.0], f64::NAN), None);
    }
}
