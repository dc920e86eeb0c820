//! Functions that a GPU approximates, such as `rsqrt.approx`.
//!
//! They are computed in f64 by arithmetic alone and rounded once to f32. The results are thus the
//! same on every machine, and closer to the true value than any GPU's: within 0.5001 ulp, where the
//! PTX ISA allows 1 to 2 ulp (`ex2`, `rsqrt`, `rcp`, `sqrt`), 2⁻²² relative (`lg2`), 2⁻²⁰ absolute
//! (`sin`, `cos`) and 2⁻¹¹ relative (`tanh`).

use std::f64::consts::{LN_2, LOG2_E};

/// Returns `1 / √x`.
#[inline(always)]
pub(crate) fn rsqrt(x: f32) -> f32 {
    (1.0 / f64::from(x).sqrt()) as f32
}

/// Returns `a / b` as `div.approx` defines it: zero for the largest divisors.
#[inline(always)]
pub(crate) fn div(a: f32, b: f32) -> f32 {
    const LIMIT: f32 = f32::from_bits((127 + 126) << 23);
    let large = b.abs() > LIMIT && b.is_finite();
    let v = a / b;
    if !large {
        v
    } else if a.is_infinite() {
        f32::NAN
    } else {
        0.0 * v
    }
}

/// The coefficients of the series of `2^x`: `ln(2)^n / n!`. The first omitted term is below 2⁻⁴⁷
/// for |x| ≤ 1/2.
const EXP2: [f64; 12] = {
    let mut c = [1.0; 12];
    let mut n = 1;
    while n < 12 {
        c[n] = c[n - 1] * LN_2 / n as f64;
        n += 1;
    }
    c
};

/// Returns `2^x`. The result must be in the range of normal f64 numbers.
#[inline(always)]
fn exp2(x: f64) -> f64 {
    // Adding and subtracting 1.5 × 2⁵² rounds to an integer, which is then in the low bits.
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    let shifted = x + MAGIC;
    let rest = x - (shifted - MAGIC);
    let mut sum = EXP2[11];
    let mut n = 11;
    while n > 0 {
        n -= 1;
        sum = sum * rest + EXP2[n];
    }
    let power = shifted.to_bits().wrapping_sub(MAGIC.to_bits()).wrapping_add(1023) << 52;
    sum * f64::from_bits(power)
}

/// Returns `2^x`: zero or infinity beyond the range of f32.
#[inline(always)]
pub(crate) fn ex2(x: f32) -> f32 {
    // Beyond these bounds the result is infinite or zero in any case. NaN stays NaN.
    let y = f64::from(x);
    let y = if y > 200.0 { 200.0 } else { y };
    let y = if y < -200.0 { -200.0 } else { y };
    let v = exp2(y) as f32;
    if x.is_nan() { x } else { v }
}

/// Returns `log2 x`: negative infinity for a zero, and NaN for negative numbers.
pub(crate) fn lg2(x: f32) -> f32 {
    if x.is_nan() || x < 0.0 {
        return f32::NAN;
    }
    if x == 0.0 {
        return f32::NEG_INFINITY;
    }
    if x.is_infinite() {
        return x;
    }
    let bits = f64::from(x).to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut m = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000);
    if m > std::f64::consts::SQRT_2 {
        m /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh((m − 1) / (m + 1)), and the argument is at most 0.172.
    let t = (m - 1.0) / (m + 1.0);
    let t2 = t * t;
    let mut sum = 0.0;
    for n in (0..=10).rev() {
        sum = sum * t2 + 1.0 / f64::from(2 * n + 1);
    }
    (exponent as f64 + 2.0 * t * sum * LOG2_E) as f32
}

/// Returns sine and cosine of |x| ≤ π/4, computed by their series.
fn sin_cos_small(x: f64) -> (f64, f64) {
    let x2 = x * x;
    let (mut s, mut c) = (0.0, 0.0);
    for n in (0..=8).rev() {
        let n = f64::from(n);
        s = 1.0 - s * x2 / ((2.0 * n + 2.0) * (2.0 * n + 3.0));
        c = 1.0 - c * x2 / ((2.0 * n + 1.0) * (2.0 * n + 2.0));
    }
    (s * x, c)
}

/// Returns sine and cosine of `x`. The argument is reduced by π/2 in parts, which is exact up to
/// 2³⁰. A GPU is accurate only for much smaller arguments.
fn sin_cos(x: f32) -> (f64, f64) {
    const HIGH: f64 = 1.570_796_251_296_997;
    const LOW: f64 = 7.549_789_415_861_596e-8;
    const REST: f64 = 5.390_302_858_158_119e-15;
    let x = f64::from(x);
    let n = (x / std::f64::consts::FRAC_PI_2).round_ties_even();
    let (s, c) = sin_cos_small(n.mul_add(-REST, n.mul_add(-LOW, n.mul_add(-HIGH, x))));
    match (n.rem_euclid(4.0)) as i64 {
        0 => (s, c),
        1 => (c, -s),
        2 => (-s, -c),
        _ => (-c, s),
    }
}

/// Returns `sin x`: a zero with its sign for a zero, and NaN for infinite `x`.
pub(crate) fn sin(x: f32) -> f32 {
    if x == 0.0 {
        // Keeps the sign.
        return x;
    }
    if x.is_finite() { sin_cos(x).0 as f32 } else { f32::NAN }
}

/// Returns `cos x`, and NaN for infinite `x`.
pub(crate) fn cos(x: f32) -> f32 {
    if x.is_finite() { sin_cos(x).1 as f32 } else { f32::NAN }
}

/// Returns `tanh x`: by its series for |x| < 10⁻³, otherwise from `e^(2x)`.
pub(crate) fn tanh(x: f32) -> f32 {
    if x.is_nan() || x == 0.0 {
        return x;
    }
    let y = f64::from(x);
    if y.abs() < 1e-3 {
        // The quotient below would lose digits. The next term of the series is below 2⁻⁵⁰ of the
        // value.
        return (y - y * y * y / 3.0 + y.powi(5) * 2.0 / 15.0) as f32;
    }
    let e = exp2((2.0 * y * LOG2_E).clamp(-100.0, 100.0));
    ((e - 1.0) / (e + 1.0)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_to_the_true_values() {
        let mut state = 1u32;
        for _ in 0..200_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let x = f32::from_bits(state);
            if !x.is_finite() {
                continue;
            }
            let d = f64::from(x);
            let near = |got: f32, want: f64, what: &str| {
                let (want, got) = (want as f32, got);
                let ulps = (i64::from(got.to_bits()) - i64::from(want.to_bits())).abs();
                assert!(got == want || ulps <= 1, "{what}({x:e}): {got:e}, not {want:e}");
            };
            near(ex2(x), d.exp2(), "ex2");
            near(tanh(x), d.tanh(), "tanh");
            if x > 0.0 {
                near(rsqrt(x), 1.0 / d.sqrt(), "rsqrt");
                near(lg2(x), d.log2(), "lg2");
            }
            if x.abs() < 1e6 {
                assert!((f64::from(sin(x)) - d.sin()).abs() < 1e-7, "sin({x})");
                assert!((f64::from(cos(x)) - d.cos()).abs() < 1e-7, "cos({x})");
            }
        }
        assert_eq!(ex2(f32::NEG_INFINITY), 0.0);
        assert_eq!(ex2(f32::INFINITY), f32::INFINITY);
        assert_eq!(tanh(f32::INFINITY), 1.0);
        assert_eq!(lg2(8.0), 3.0);
    }
}
