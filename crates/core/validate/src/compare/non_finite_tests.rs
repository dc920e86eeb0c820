//! The rules for NaN and infinity, for every pair of codes of the small types and for every code of
//! the larger ones against chosen ones, checked against other implementations of the formats.

use half::{bf16, f16};

use super::*;
use warpgauge_tensor::element::{E4m3, E5m2};

/// Decodes by other means than the code under test.
type Decode = fn(u64) -> f64;

fn tolerance(allow_non_finite: bool) -> ResolvedTolerance {
    ResolvedTolerance {
        atol: 0.125,
        rtol: 0.25,
        required_matched_ratio: 1.0,
        allow_non_finite,
        basis: crate::ToleranceBasis::Given,
        computes_in: None,
        outliers: None,
    }
}

/// The rules as the documentation states them.
fn rule(actual: f64, expected: f64, tolerance: &ResolvedTolerance) -> bool {
    if actual.is_nan() || expected.is_nan() {
        return tolerance.allow_non_finite && actual.is_nan() && expected.is_nan();
    }
    if actual.is_infinite() || expected.is_infinite() {
        return tolerance.allow_non_finite && actual == expected;
    }
    (actual - expected).abs() <= tolerance.atol + tolerance.rtol * expected.abs()
}

/// Compares all `actual` codes with each of the `expected` codes.
fn check<T: Comparable>(dtype: Dtype, actual: &[u64], expected: &[u64], decode: Decode) {
    let element = |code: &u64| code.to_le_bytes()[..T::SIZE].to_vec();
    let left: Vec<u8> = actual.iter().flat_map(element).collect();
    for allowed in [false, true] {
        let tolerance = tolerance(allowed);
        for wanted in expected {
            let y = decode(*wanted);
            let mut counted = (0, 0, 0);
            for code in actual {
                let x = decode(*code);
                let judged = judge(T::read(&element(code)), T::read(&element(wanted)), &tolerance);
                let context =
                    || format!("{dtype} {code:#x} ({x}) for {wanted:#x} ({y}), {allowed}");
                assert_eq!(judged.matches, rule(x, y, &tolerance), "{}", context());
                let finite = x.is_finite() && y.is_finite();
                assert_eq!(judged.error.is_some(), finite, "{}", context());
                counted.0 += u64::from(judged.matches);
                counted.1 += u64::from(!judged.matches && !x.is_finite());
                counted.2 += u64::from(finite);
            }
            let right = element(wanted).repeat(actual.len());
            let shape = [actual.len() as u64];
            let whole = compare(dtype, &shape, &left, &right, None, &tolerance);
            let pairs = whole.ulp.map_or(0, |ulp| ulp.histogram.iter().sum());
            assert_eq!((whole.matched, whole.non_finite, pairs), counted, "{dtype} {wanted:#x}");
            let finite = [whole.max_abs_error, whole.max_rel_error, whole.rms_error];
            assert!(finite.iter().all(|error| error.is_finite()), "{dtype} {wanted:#x}");
        }
    }
}

#[test]
fn eight_bit_floats_pair_by_pair() {
    let codes: Vec<u64> = (0..256).collect();
    check::<E4m3>(Dtype::Float8E4m3, &codes, &codes, |code| {
        f64::from(float8::F8E4M3::from_bits(code as u8).to_f32())
    });
    check::<E5m2>(Dtype::Float8E5m2, &codes, &codes, |code| {
        f64::from(f16::from_bits((code as u16) << 8))
    });
}

#[test]
fn sixteen_bit_floats_code_by_code() {
    let codes: Vec<u64> = (0..=0xFFFF).collect();
    // Zeros, smallest, one, largest, infinities, quiet and signalling NaN, all ones.
    let half = [0, 0x8000, 1, 0x3C00, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0x7C01, 0xFFFF];
    check::<f16>(Dtype::Float16, &codes, &half, |code| f64::from(f16::from_bits(code as u16)));
    let brain = [0, 0x8000, 1, 0x3F80, 0x7F7F, 0x7F80, 0xFF80, 0x7FC0, 0x7F81, 0xFFFF];
    check::<bf16>(Dtype::Bfloat16, &codes, &brain, |code| {
        f64::from(f32::from_bits((code as u32) << 16))
    });
}

#[test]
fn wide_floats_at_every_edge() {
    let codes = |bits: u32, mantissa: u32| -> Vec<u64> {
        let exponents = 1u64 << (bits - 1 - mantissa);
        let edges = [0, 1, (1 << mantissa) - 1, 1 << (mantissa - 1)];
        let magnitudes = (0..exponents)
            .flat_map(|exponent| edges.map(|fraction| exponent << mantissa | fraction));
        magnitudes.flat_map(|code| [code, code | 1 << (bits - 1)]).collect()
    };
    let single = codes(32, 23);
    let some: Vec<u64> =
        single.iter().copied().step_by(97).chain(single[2032..].to_vec()).collect();
    check::<f32>(Dtype::Float32, &single, &some, |code| f64::from(f32::from_bits(code as u32)));
    let double = codes(64, 52);
    let some: Vec<u64> =
        double.iter().copied().step_by(997).chain(double[16_368..].to_vec()).collect();
    check::<f64>(Dtype::Float64, &double, &some, f64::from_bits);
}

/// Integers and bools have neither NaN nor infinity: no pattern is ever counted as one.
#[test]
fn integers_are_always_finite() {
    let codes: Vec<u8> = (0..=255).collect();
    for dtype in Dtype::ALL.into_iter().filter(|dtype| !dtype.is_float() && !dtype.is_packed()) {
        let bytes: Vec<u8> = codes.iter().flat_map(|code| vec![*code; dtype.size()]).collect();
        let other = vec![1; bytes.len()];
        let result = compare(dtype, &[256], &bytes, &other, None, &tolerance(false));
        assert_eq!((result.non_finite, result.ulp.is_none()), (0, true), "{dtype}");
        assert!(result.max_abs_error >= 126.0, "{dtype}");
        let same = compare(dtype, &[256], &bytes, &bytes, None, &tolerance(false));
        assert!(same.passed, "{dtype}");
    }
}
