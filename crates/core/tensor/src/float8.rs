//! The 8-bit floating-point formats of the Open Compute Project: E4M3 and E5M2 of OFP8 (revision
//! 1.0), and E8M0, the scale format of the microscaling formats (MX, revision 1.0). Also E2M1, the
//! 4-bit format of MX.
//!
//! Conversion rounds to nearest, ties to even, and saturates: values that are too large, and
//! infinities, become the largest finite number, as with CUDA's `__NV_SATFINITE`.

/// Layout of one 8-bit format.
struct Format {
    mantissa_bits: i32,
    bias: i32,
    /// Code of the largest finite number.
    largest: u8,
}

const E4M3: Format = Format { mantissa_bits: 3, bias: 7, largest: 0x7E };
const E5M2: Format = Format { mantissa_bits: 2, bias: 15, largest: 0x7B };
const E2M1: Format = Format { mantissa_bits: 1, bias: 1, largest: 7 };

/// Rounds to E4M3 (largest 448, no infinities, NaN 0x7F).
pub fn e4m3_from_f32(x: f32) -> u8 {
    encode(x, &E4M3)
}

/// Rounds to E5M2 (largest 57344, NaN 0x7F).
pub fn e5m2_from_f32(x: f32) -> u8 {
    encode(x, &E5M2)
}

/// Returns the value of an E4M3 code.
#[inline]
pub fn e4m3_to_f32(code: u8) -> f32 {
    E4M3_VALUES[usize::from(code)]
}

/// Returns the value of an E5M2 code.
#[inline]
pub fn e5m2_to_f32(code: u8) -> f32 {
    E5M2_VALUES[usize::from(code)]
}

/// Rounds to E2M1 (largest 6, neither infinities nor NaN; NaN becomes 6). The code has its sign in the highest
/// bit and the rest in the lowest three.
pub fn e2m1_from_f32(x: f32) -> u8 {
    if x.is_nan() { E2M1.largest } else { encode(x.clamp(-8.0, 8.0), &E2M1) }
}

/// Returns the value of an E2M1 code as [`e2m1_from_f32`] returns it. Other bits are ignored.
#[inline]
pub fn e2m1_to_f32(code: u8) -> f32 {
    E2M1_VALUES[usize::from(code & 0x87)]
}

/// NaN code of E8M0.
pub const E8M0_NAN: u8 = 0xFF;

/// Rounds to the nearest power of two from 2^-127 to 2^127; values midway are rounded up. Zero and
/// negative numbers become 2^-127, NaN 0xFF.
pub fn e8m0_from_f32(x: f32) -> u8 {
    if x.is_nan() {
        return E8M0_NAN;
    }
    if x <= 0.0 {
        return 0;
    }
    let (exponent, fraction) = (x.to_bits() >> 23, x.to_bits() & 0x7F_FFFF);
    // Subnormal numbers, below 2^-126, have no implicit leading one.
    let midway = if exponent == 0 { 0x60_0000 } else { 0x40_0000 };
    (exponent + u32::from(fraction >= midway)).min(u32::from(E8M0_NAN) - 1) as u8
}

/// Returns the value of an E8M0 code.
#[inline]
pub fn e8m0_to_f32(code: u8) -> f32 {
    match code {
        0 => f32::from_bits(0x40_0000),
        E8M0_NAN => f32::NAN,
        exponent => f32::from_bits(u32::from(exponent) << 23),
    }
}

static E4M3_VALUES: [f32; 256] = table(&E4M3);
static E5M2_VALUES: [f32; 256] = table(&E5M2);
static E2M1_VALUES: [f32; 256] = table(&E2M1);

fn encode(x: f32, format: &Format) -> u8 {
    let sign = if x.is_sign_negative() { 0x80 } else { 0 };
    if x.is_nan() {
        return sign | 0x7F;
    }
    let magnitude = f64::from(x.abs());
    let smallest_exponent = 1 - format.bias;
    let exponent = if magnitude == 0.0 {
        smallest_exponent
    } else {
        (((magnitude.to_bits() >> 52) as i32) - 1023).max(smallest_exponent)
    };
    // Divided by the distance between neighbours, a representable number is an integer. A carry out
    // of the mantissa correctly increments the exponent.
    let steps = (magnitude * power_of_two(format.mantissa_bits - exponent)).round_ties_even();
    let base = (exponent - smallest_exponent) << format.mantissa_bits;
    let code = f64::from(base) + steps;
    sign | if code > f64::from(format.largest) { format.largest } else { code as u8 }
}

const fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

const fn table(format: &Format) -> [f32; 256] {
    let mut values = [0.0; 256];
    let mut code = 0;
    while code < 256 {
        values[code] = decode(code as u8, format);
        code += 1;
    }
    values
}

const fn decode(code: u8, format: &Format) -> f32 {
    let sign = if code & 0x80 != 0 { -1.0 } else { 1.0 };
    let magnitude = code & 0x7F;
    if magnitude > format.largest {
        // The code above the largest number of E5M2 is infinity. E4M3 has only NaN there.
        return if magnitude == 0x7C { sign * f32::INFINITY } else { f32::NAN };
    }
    let mantissa = (magnitude as i32) & ((1 << format.mantissa_bits) - 1);
    let exponent = (magnitude as i32) >> format.mantissa_bits;
    let (digits, scale) = if exponent == 0 {
        (mantissa, 1 - format.bias - format.mantissa_bits)
    } else {
        (mantissa + (1 << format.mantissa_bits), exponent - format.bias - format.mantissa_bits)
    };
    sign * (digits as f64 * power_of_two(scale)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finite_code_survives_the_round_trip() {
        for code in 0..=255u8 {
            let x = e4m3_to_f32(code);
            if x.is_finite() {
                assert_eq!(e4m3_from_f32(x), code, "E4M3 {code:#x} = {x}");
            }
            let x = e5m2_to_f32(code);
            if x.is_finite() {
                assert_eq!(e5m2_from_f32(x), code, "E5M2 {code:#x} = {x}");
            }
        }
    }

    #[test]
    fn decoding_agrees_with_an_independent_implementation() {
        for code in 0..=255u8 {
            let e5m2 = half::f16::from_bits(u16::from(code) << 8).to_f32();
            assert_eq!(e5m2_to_f32(code).is_nan(), e5m2.is_nan(), "E5M2 {code:#x}");
            assert!(e5m2.is_nan() || e5m2_to_f32(code) == e5m2, "E5M2 {code:#x}");
            let e4m3 = float8::F8E4M3::from_bits(code).to_f32();
            assert_eq!(e4m3_to_f32(code).is_nan(), e4m3.is_nan(), "E4M3 {code:#x}");
            assert!(e4m3.is_nan() || e4m3_to_f32(code) == e4m3, "E4M3 {code:#x}");
        }
    }

    #[test]
    fn four_bits_round_to_even_and_saturate() {
        for (x, rounded) in [
            (0.25, 0.0),
            (0.26, 0.5),
            (0.75, 1.0),
            (1.25, 1.0),
            (1.75, 2.0),
            (2.5, 2.0),
            (3.5, 4.0),
            (5.0, 4.0),
            (5.01, 6.0),
            (1e9, 6.0),
            (f32::INFINITY, 6.0),
        ] {
            assert_eq!(e2m1_to_f32(e2m1_from_f32(x)), rounded, "{x}");
            assert_eq!(e2m1_to_f32(e2m1_from_f32(-x)), -rounded, "{x}");
        }
        assert_eq!(e2m1_from_f32(-0.1), 0x80);
        assert_eq!(e2m1_to_f32(e2m1_from_f32(f32::NAN)), 6.0);
    }

    #[test]
    fn scales_are_powers_of_two() {
        for code in 0..255u8 {
            let x = e8m0_to_f32(code);
            assert_eq!(f64::from(x), 2f64.powi(i32::from(code) - 127), "{code}");
            assert_eq!(e8m0_from_f32(x), code, "{code}");
        }
        assert!(e8m0_to_f32(0xFF).is_nan());
        for (x, code) in [
            (1.0, 127),
            (1.49, 127),
            (1.5, 128), // Midway: up.
            (0.75, 127),
            (0.74, 126),
            (0.0, 0),
            (-4.0, 0),
            (f32::from_bits(0x5F_FFFF), 0), // Below the middle of the two smallest.
            (f32::from_bits(0x60_0000), 1),
            (f32::MAX, 254),
            (f32::INFINITY, 254),
            (f32::NAN, 255),
        ] {
            assert_eq!(e8m0_from_f32(x), code, "{x}");
        }
    }

    #[test]
    fn rounding_ties_saturation_and_nan() {
        assert_eq!(e4m3_to_f32(e4m3_from_f32(1.0625)), 1.0); // halfway 1 … 1.125: to even
        assert_eq!(e4m3_to_f32(e4m3_from_f32(1.1875)), 1.25);
        assert_eq!(e4m3_to_f32(e4m3_from_f32(1e9)), 448.0);
        assert_eq!(e4m3_to_f32(e4m3_from_f32(f32::NEG_INFINITY)), -448.0);
        assert_eq!(e5m2_to_f32(e5m2_from_f32(f32::INFINITY)), 57344.0);
        assert_eq!(e4m3_from_f32(2f32.powi(-10)), 0); // half the smallest number: to even
        assert_eq!(e4m3_from_f32(f32::MIN_POSITIVE / 4.0), 0);
        assert!(e4m3_to_f32(e4m3_from_f32(f32::NAN)).is_nan());
        assert!(e5m2_to_f32(e5m2_from_f32(-f32::NAN)).is_nan());
    }
}
