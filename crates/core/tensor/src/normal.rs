//! Normally distributed numbers with the same bits on every platform.
//!
//! The numbers come from the inverse of the normal distribution function (Wichura, algorithm AS
//! 241, PPND16, Applied Statistics 37, 1988; relative accuracy about 1e-16). It uses only IEEE
//! binary64 `+ − × ÷ √`, each operation rounded separately. There is no fused multiply-add, and the
//! logarithm is implemented here, since the logarithms of the C libraries, CUDA and numpy differ in
//! the last bit. The main function is [`standard_normal`].

use std::f64::consts::{FRAC_1_SQRT_2, LN_2};

#[allow(clippy::excessive_precision)] // as published
/// Numerator and denominator for |p − 1/2| ≤ 0.425; constant term first.
const CENTRE: [[f64; 8]; 2] = [
    [
        3.387_132_872_796_366_608,
        1.331_416_678_917_843_774_5e2,
        1.971_590_950_306_551_442_7e3,
        1.373_169_376_550_946_112_5e4,
        4.592_195_393_154_987_145_7e4,
        6.726_577_092_700_870_085_3e4,
        3.343_057_558_358_812_810_5e4,
        2.509_080_928_730_122_672_7e3,
    ],
    [
        1.0,
        4.231_333_070_160_091_125_2e1,
        6.871_870_074_920_579_083_0e2,
        5.394_196_021_424_751_107_7e3,
        2.121_379_430_158_659_586_7e4,
        3.930_789_580_009_271_061_0e4,
        2.872_908_573_572_194_267_4e4,
        5.226_495_278_852_854_561_0e3,
    ],
];

#[allow(clippy::excessive_precision)] // as published
/// Numerator and denominator for √(−ln p) ≤ 5; constant term first.
const TAIL: [[f64; 8]; 2] = [
    [
        1.423_437_110_749_683_577_34,
        4.630_337_846_156_545_295_90,
        5.769_497_221_460_691_405_50,
        3.647_848_324_763_204_605_04,
        1.270_458_252_452_368_382_58,
        2.417_807_251_774_506_117_70e-1,
        2.272_384_498_926_918_458_33e-2,
        7.745_450_142_783_414_076_40e-4,
    ],
    [
        1.0,
        2.053_191_626_637_758_821_87,
        1.676_384_830_183_803_849_40,
        6.897_673_349_851_000_045_50e-1,
        1.481_039_764_274_800_745_90e-1,
        1.519_866_656_361_645_719_66e-2,
        5.475_938_084_995_344_946_00e-4,
        1.050_750_071_644_416_843_24e-9,
    ],
];

#[allow(clippy::excessive_precision)] // as published
/// Numerator and denominator for √(−ln p) > 5; constant term first.
const FAR_TAIL: [[f64; 8]; 2] = [
    [
        6.657_904_643_501_103_777_20,
        5.463_784_911_164_114_369_90,
        1.784_826_539_917_291_335_80,
        2.965_605_718_285_048_912_30e-1,
        2.653_218_952_657_612_309_30e-2,
        1.242_660_947_388_078_438_60e-3,
        2.711_555_568_743_487_578_15e-5,
        2.010_334_399_292_288_132_65e-7,
    ],
    [
        1.0,
        5.998_322_065_558_879_376_90e-1,
        1.369_298_809_227_358_053_10e-1,
        1.487_536_129_085_061_485_25e-2,
        7.868_691_311_456_132_591_00e-4,
        1.846_318_317_510_054_681_80e-5,
        1.421_511_758_316_445_888_70e-7,
        2.044_263_103_389_939_785_64e-15,
    ],
];

/// Largest probability used: below 1, so that the result is finite (|z| < 8.3).
const LARGEST_P: f64 = 1.0 - f64::EPSILON / 2.0;

/// Converts a random word into a standard normal number.
#[inline]
pub fn standard_normal(word: u64) -> f64 {
    // For the largest of the 2^53 values the sum rounds to 1; the bound keeps `p` below 1.
    let p = (word >> 11) as f64 * 2f64.powi(-53) + 2f64.powi(-54);
    inverse_normal_cdf(if p > LARGEST_P { LARGEST_P } else { p })
}

/// Returns the `p`-quantile of the standard normal distribution, 0 < p < 1.
#[inline]
pub fn inverse_normal_cdf(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180625 - q * q;
        return q * horner(&CENTRE[0], r) / horner(&CENTRE[1], r);
    }
    let smaller = if q < 0.0 { p } else { 1.0 - p };
    let r = (-natural_logarithm(smaller)).sqrt();
    let z = if r <= 5.0 {
        let r = r - 1.6;
        horner(&TAIL[0], r) / horner(&TAIL[1], r)
    } else {
        let r = r - 5.0;
        horner(&FAR_TAIL[0], r) / horner(&FAR_TAIL[1], r)
    };
    if q < 0.0 { -z } else { z }
}

/// Evaluates c₀ + x (c₁ + x (c₂ + …)) from the inside out, with one multiplication and one addition
/// per step.
#[inline]
fn horner(coefficients: &[f64; 8], x: f64) -> f64 {
    let mut sum = coefficients[7];
    for coefficient in coefficients[..7].iter().rev() {
        sum = sum * x + coefficient;
    }
    sum
}

/// Returns ln x for positive, normal `x`. With x = m·2^e, m in [√½, √2) and s = (m − 1) / (m + 1),
/// ln x = e·ln 2 + 2s·(1 + t/3 + t²/5 + … + t¹⁰/21) where t = s². The first omitted term is below
/// 1e-18 of the sum.
#[inline]
fn natural_logarithm(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i64 - 1022;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1022 << 52));
    if mantissa < FRAC_1_SQRT_2 {
        mantissa *= 2.0;
        exponent -= 1;
    }
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let t = s * s;
    let mut sum = 1.0 / 21.0;
    for divisor in [19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        sum = sum * t + 1.0 / divisor;
    }
    exponent as f64 * LN_2 + 2.0 * s * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithm_is_accurate() {
        for x in [0.5, 0.075, 1e-3, 1e-9, 2f64.powi(-54), 0.7, 0.71, 0.999_999] {
            let error = (natural_logarithm(x) - x.ln()).abs();
            assert!(error <= 4.0 * f64::EPSILON * x.ln().abs(), "ln {x}: off by {error:e}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Abramowitz and Stegun, table 26.5 and 26.6, extended with mpmath to 16 digits.
        for (p, z) in [
            (0.5, 0.0),
            (0.75, 0.674_489_750_196_081_7),
            (0.975, 1.959_963_984_540_054),
            (0.001, -3.090_232_306_167_813_5),
            (1e-12, -7.034_483_825_301_131),
        ] {
            let got = inverse_normal_cdf(p);
            assert!((got - z).abs() <= 2e-15 * z.abs(), "p {p}: {got} instead of {z}");
        }
    }

    #[test]
    fn every_word_gives_a_finite_number() {
        for word in [0, u64::MAX, u64::MAX - (1 << 11), 1 << 63, (1 << 63) - 1] {
            let z = standard_normal(word);
            assert!(z.is_finite() && z.abs() < 8.4, "word {word:x} gives {z}");
        }
        assert!(standard_normal(0) < -8.0 && standard_normal(u64::MAX) > 8.0);
    }
}
