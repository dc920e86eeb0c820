use super::*;
use crate::{Filling, ToleranceBasis, resolve, resolve_by_type, validation_error};
use warpgauge_contract::Tolerance;

fn bytes<T: Element>(values: &[T]) -> Vec<u8> {
    let mut out = vec![0; values.len() * T::SIZE];
    values.iter().zip(out.chunks_exact_mut(T::SIZE)).for_each(|(value, slot)| value.write(slot));
    out
}

fn tolerance(atol: f64, rtol: f64) -> ResolvedTolerance {
    ResolvedTolerance {
        atol,
        rtol,
        required_matched_ratio: 1.0,
        allow_non_finite: false,
        basis: ToleranceBasis::Given,
        computes_in: None,
        outliers: None,
    }
}

fn f32s(actual: &[f32], expected: &[f32], tolerance: &ResolvedTolerance) -> Comparison {
    let shape = [actual.len() as u64];
    compare(Dtype::Float32, &shape, &bytes(actual), &bytes(expected), None, tolerance)
}

#[test]
fn few_elements_may_be_outliers() {
    let outliers = Some(crate::OutlierTolerance { share: 0.1, atol: 2.0 });
    let tolerance = ResolvedTolerance { outliers, ..tolerance(0.0, 0.0) };
    let of = |actual: [f32; 20]| f32s(&actual, &[0.0; 20], &tolerance);
    let mut actual = [0.0; 20];
    (actual[3], actual[9]) = (2.0, -1.0);
    let comparison = of(actual);
    assert!(comparison.passed && (comparison.matched, comparison.outliers) == (18, 2));
    actual[5] = 1.0;
    let comparison = of(actual);
    assert!(!comparison.passed && comparison.outliers == 0, "too many");
    (actual[5], actual[3]) = (0.0, 2.5);
    assert!(!of(actual).passed, "too far");
    actual[3] = f32::NAN;
    assert!(!of(actual).passed, "none");
}

#[test]
fn equal_buffers_match_in_every_dtype() {
    for dtype in Dtype::ALL {
        // 0x01 repeated is finite in every type.
        let data = vec![1; 70_001 * dtype.size()];
        let result = compare(dtype, &[70_001], &data, &data, None, &resolve_by_type(None, dtype));
        assert!(result.passed, "{dtype}: {result:?}");
        let numbers = 70_001 * dtype.parts();
        assert_eq!((result.elements, result.matched), (numbers, numbers));
        assert_eq!((result.max_abs_error, result.max_rel_error), (0.0, 0.0));
        for shape in [&[70_001][..], &[7, 5], &[3, 0], &[]] {
            let equal = vec![1; shape.iter().product::<u64>() as usize * dtype.size()];
            let tolerance = tolerance(1e-3, 1e-2);
            let filling = Some(Filling::FIXED);
            let result = compare(dtype, shape, &equal, &equal, filling, &tolerance);
            let derived = Comparison::of_equal(dtype, shape, &tolerance);
            assert_eq!(format!("{derived:?}"), format!("{result:?}"), "{dtype} {shape:?}");
        }
        let mut other = data.clone();
        other[69_999 * dtype.size()] ^= if dtype.is_float() { 0xff } else { 1 };
        let tolerance = tolerance(0.0, 0.0);
        let result = compare(dtype, &[70_001], &other, &data, None, &tolerance);
        // Both numbers of a byte of floats change.
        let wrong = if dtype == Dtype::Float4E2m1x2 { 2 } else { 1 };
        assert_eq!((result.passed, result.matched), (false, numbers - wrong), "{dtype}");
        let index = unravel(69_999 * dtype.parts(), &shape_of_parts(dtype, &[70_001]));
        assert_eq!(result.first_mismatches[0].index, index, "{dtype}");
    }
}

#[test]
fn the_bound_is_inclusive_and_relative_to_the_expectation() {
    let t = tolerance(0.5, 0.25);
    assert!(f32s(&[1.5, -2.75, 6.5], &[1.0, -3.0, 5.0], &t).passed);
    let result = f32s(&[3.0, 100.0], &[1.0, 100.0], &t);
    assert_eq!((result.passed, result.matched), (false, 1));
    assert_eq!((result.max_abs_error, result.max_rel_error), (2.0, 2.0));
    // Symmetric in neither argument: 4 is within a quarter of 5, 5 is not within a quarter of 4 −
    // ….
    assert!(f32s(&[4.0], &[5.0], &tolerance(0.0, 0.2)).passed);
    assert!(!f32s(&[5.0], &[4.0], &tolerance(0.0, 0.2)).passed);
}

#[test]
fn non_finite_values_fail_unless_allowed_and_equal() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let strict = tolerance(1e9, 1e9);
    let lenient = ResolvedTolerance { allow_non_finite: true, ..strict };
    for (actual, expected, allowed, counted) in [
        (nan, nan, true, 1),
        (inf, inf, true, 1),
        (-inf, -inf, true, 1),
        (inf, -inf, false, 1),
        (nan, inf, false, 1),
        (nan, 1.0, false, 1),
        (inf, 1.0, false, 1),
        (1.0, inf, false, 0),
        (1.0, nan, false, 0),
    ] {
        let result = f32s(&[actual], &[expected], &strict);
        assert!(!result.passed, "{actual} for {expected}");
        assert_eq!(result.non_finite, counted, "{actual} for {expected}");
        assert_eq!(f32s(&[actual], &[expected], &lenient).passed, allowed, "{actual} {expected}");
    }
}

#[test]
fn integers_of_64_bits_are_exact() {
    let big = (1i64 << 60) + 1;
    let exact = tolerance(0.0, 0.0);
    let run = |a: i64, e: i64, t: &ResolvedTolerance| {
        compare(Dtype::Int64, &[1], &bytes(&[a]), &bytes(&[e]), None, t)
    };
    assert!(run(big, big, &exact).passed);
    let result = run(big, big - 1, &exact);
    assert!(!result.passed);
    assert_eq!(result.max_abs_error, 1.0);
    assert_eq!(result.first_mismatches[0].actual, big.to_string());
    assert!(run(big, big - 1, &tolerance(1.0, 0.0)).passed);
    assert!(run(i64::MIN, i64::MAX, &exact).max_abs_error > 1.8e19);
}

#[test]
fn unwritten_elements_are_counted() {
    for filling in [Filling::FIXED, Filling::not_a_number(0x1234_5678_9ABC), Filling::number(99)] {
        for dtype in Dtype::ALL {
            let size = dtype.size();
            let expected = vec![0; 8 * size];
            let filled = filling.word(dtype).to_le_bytes().repeat(2 * size);
            let mut actual = filled.clone();
            actual[4 * size..].fill(0);
            let t = resolve_by_type(None, dtype);
            let result = compare(dtype, &[2, 4], &actual, &expected, Some(filling), &t);
            let half = 4 * dtype.parts();
            if dtype.is_packed() {
                // One launch is no proof: a number of four bits is often hit by chance.
                assert_eq!((result.unwritten, result.matched), (0, half), "{dtype} {filling:?}");
                continue;
            }
            assert_eq!((result.unwritten, result.matched), (half, half), "{dtype} {filling:?}");
            let third = unravel(2, &shape_of_parts(dtype, &[2, 4]));
            assert_eq!(result.first_mismatches[2].index, third, "{dtype}");
            // If the pattern is the expected value, nothing shows that it was not written.
            if !dtype.is_float() {
                let result = compare(dtype, &[8], &actual, &actual, Some(filling), &t);
                assert_eq!((result.passed, result.unwritten), (true, 0), "{dtype}");
            }
        }
    }
}

#[test]
fn minus_one_that_was_written_is_a_mismatch() {
    for dtype in [Dtype::Int8, Dtype::Uint8, Dtype::Int16, Dtype::Int32, Dtype::Int64, Dtype::Bool]
    {
        let t = resolve_by_type(None, dtype);
        let (expected, actual) = (vec![0; 64 * dtype.size()], vec![0xFF; 64 * dtype.size()]);
        for bits in 0..500u64 {
            let filling = Filling::drawn(bits.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let result = compare(dtype, &[64], &actual, &expected, Some(filling), &t);
            assert_eq!((result.matched, result.unwritten), (0, 0), "{dtype}");
        }
    }
}

#[test]
fn a_nan_that_was_never_written_is_told_from_one_that_was() {
    let allowed = ResolvedTolerance { allow_non_finite: true, ..tolerance(1e-5, 1e-4) };
    for dtype in [Dtype::Float16, Dtype::Bfloat16, Dtype::Float32, Dtype::Float64] {
        let size = dtype.size();
        // The hardware's NaN, and one with another payload.
        let mut nan = vec![0xFF; size];
        nan[size - 1] = 0x7F;
        for bits in 0..500u64 {
            let filling = Filling::not_a_number(bits.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let filled = filling.word(dtype).to_le_bytes().repeat(size);
            let expected = nan.repeat(4);
            let result = compare(dtype, &[4], &filled, &expected, Some(filling), &allowed);
            assert_eq!((result.matched, result.unwritten), (4, 4), "{dtype}");
            let mut other = expected.clone();
            other[size - 1] = 0xFF;
            let result = compare(dtype, &[4], &other, &expected, Some(filling), &allowed);
            assert_eq!((result.matched, result.unwritten), (4, 0), "{dtype}");
        }
    }
}

#[test]
fn what_follows_the_filling_within_a_wide_tolerance_is_unwritten() {
    let wide = tolerance(1e30, 0.0);
    let filling = Filling::drawn(12_345);
    let filled = filling.word(Dtype::Int32).to_le_bytes().repeat(64);
    let result = compare(Dtype::Int32, &[64], &filled, &[0; 256], Some(filling), &wide);
    assert_eq!((result.passed, result.unwritten), (true, 64));
    let result = compare(Dtype::Int32, &[64], &[1; 256], &[0; 256], Some(filling), &wide);
    assert_eq!((result.passed, result.unwritten), (true, 0));
}

#[test]
fn a_share_of_mismatches_may_be_allowed() {
    let mut actual = vec![1.0f32; 1000];
    actual[..10].fill(2.0);
    let expected = vec![1.0; 1000];
    let with = |required_matched_ratio| ResolvedTolerance {
        required_matched_ratio,
        ..tolerance(0.0, 0.0)
    };
    assert!(f32s(&actual, &expected, &with(0.99)).passed);
    assert!(!f32s(&actual, &expected, &with(0.991)).passed);
    assert!(!f32s(&actual, &expected, &with(1.0)).passed);
}

#[test]
fn wrong_sizes_never_pass() {
    let t = tolerance(1e9, 0.0);
    for (actual, expected, elements) in [(3, 4, 4), (4, 3, 4), (4, 4, 5), (0, 0, 5), (6, 6, 6)] {
        let (actual, expected) = (vec![1.0f32; actual], vec![1.0f32; expected]);
        let shape = [elements.min(5)];
        let result = compare(Dtype::Float32, &shape, &bytes(&actual), &bytes(&expected), None, &t);
        let whole = actual.len() == expected.len() && actual.len() as u64 >= shape[0];
        assert_eq!(result.passed, whole, "{result:?}");
    }
}

#[test]
fn fast_and_slow_looks_agree() {
    let expected: Vec<f32> = (0..100_003).map(|i| (i as f32 * 0.37).sin() * 10.0).collect();
    let actual: Vec<f32> = expected.iter().map(|x| x * (1.0 + 1e-6) + 1e-6).collect();
    let t = tolerance(1e-5, 1e-5);
    let fast = f32s(&actual, &expected, &t);
    assert!(fast.passed);
    let whole = examine::<f32>(
        (0, &[actual.len() as u64]),
        &bytes(&actual),
        Expectation { elements: &bytes(&expected), bounds: None },
        None,
        &t,
    );
    assert_eq!(fast.matched, whole.matched);
    assert_eq!(fast.max_abs_error, whole.errors.max_abs());
    assert_eq!(fast.max_rel_error, whole.errors.max_rel());
    assert_eq!(fast.ulp, whole.errors.ulp_distribution());
    // The order of rounding in sums differs.
    assert!((fast.mean_abs_error / whole.errors.mean_abs() - 1.0).abs() < 1e-12);
    assert!((fast.rms_error / whole.errors.rms() - 1.0).abs() < 1e-12);
}

#[test]
fn errors_are_summed_up() {
    let next = |x: f32, steps: u32| f32::from_bits(x.to_bits() + steps);
    let expected = [1.0, 1.0, 1.0, 1.0, 0.0, -0.0, 8.0, 8.0, 8.0, 8.0];
    let mut actual = expected;
    (actual[1], actual[2], actual[3]) = (next(1.0, 1), next(1.0, 3), next(1.0, 9));
    (actual[4], actual[5]) = (-0.0, f32::from_bits(0x8000_0001));
    let result = f32s(&actual, &expected, &tolerance(1e-3, 0.0));
    assert!(result.passed);
    let ulp = result.ulp.unwrap();
    assert_eq!(ulp.histogram, [6, 2, 1, 0, 1]);
    assert_eq!((ulp.max, ulp.p50, ulp.p90, ulp.p99), (9, 0, 3, 9));
    let epsilon = f64::from(f32::EPSILON);
    assert!((result.mean_abs_error - 1.3 * epsilon).abs() < 1e-3 * epsilon);
    assert!((result.rms_error - (91.0f64 / 10.0).sqrt() * epsilon).abs() < 1e-3 * epsilon);
}

/// Neither sums nor squares of the errors fit binary64, nor do the squares of tiny ones.
#[test]
fn extreme_errors_stay_numbers() {
    let run = |actual: f64, expected: f64| {
        let (a, e) = ([actual; 100], [expected; 100]);
        let t = tolerance(0.0, 3.0);
        compare(Dtype::Float64, &[100], &bytes(&a), &bytes(&e), None, &t)
    };
    for (actual, expected) in [(f64::MAX, -f64::MAX), (2e-320, 1e-320), (1e-200, 2e-200)] {
        let result = run(actual, expected);
        let error = (actual - expected).abs().min(f64::MAX);
        assert_eq!(result.max_abs_error, error);
        assert!((result.mean_abs_error / error - 1.0).abs() < 1e-3, "{result:?}");
        assert!((result.rms_error / error - 1.0).abs() < 1e-3, "{result:?}");
    }
    // Readers with signed integers can parse the distance.
    for (actual, expected) in [(f64::MAX, -f64::MAX), (2.0, -2.0)] {
        let ulp = run(actual, expected).ulp.unwrap();
        assert_eq!(
            (ulp.max, ulp.p50, ulp.p99),
            (i64::MAX as u64, i64::MAX as u64, i64::MAX as u64)
        );
    }
    assert_eq!(run(1.0, -1.0).ulp.unwrap().max, 2 * 1f64.to_bits());
}

/// One step apart is one unit, for every code of the small types.
#[test]
fn neighbours_are_one_unit_apart() {
    for dtype in [Dtype::Float8E4m3, Dtype::Float8E5m2, Dtype::Float16, Dtype::Bfloat16] {
        let size = dtype.size();
        let finite = match dtype {
            Dtype::Float8E4m3 => 0x7F,
            Dtype::Float8E5m2 => 0x7C,
            Dtype::Float16 => 0x7C00u16,
            _ => 0x7F80,
        };
        for sign in [0, 1u16 << (8 * size - 1)] {
            let codes: Vec<u16> = (0..finite).map(|code| code | sign).collect();
            let bytes = |codes: &[u16]| {
                codes.iter().flat_map(|c| c.to_le_bytes()[..size].to_vec()).collect()
            };
            let (lower, upper): (Vec<u8>, Vec<u8>) =
                (bytes(&codes[..codes.len() - 1]), bytes(&codes[1..]));
            let shape = [codes.len() as u64 - 1];
            let result = compare(dtype, &shape, &lower, &upper, None, &tolerance(1e38, 0.0));
            let ulp = result.ulp.unwrap();
            assert_eq!((ulp.max, ulp.histogram), (1, vec![0, shape[0]]), "{dtype}");
        }
    }
}

#[test]
fn the_result_is_the_same_on_any_number_of_threads() {
    let expected: Vec<f32> = (0..300_000).map(|i| (i as f32 * 0.37).sin() * 10.0).collect();
    let mut actual: Vec<f32> = expected.iter().map(|x| x * (1.0 + 3e-6) + 1e-6).collect();
    for i in (5..actual.len()).step_by(10_007) {
        actual[i] = f32::NAN;
    }
    let all: Vec<_> = [1, 2, 3, 16]
        .into_iter()
        .map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| f32s(&actual, &expected, &tolerance(1e-5, 1e-5)))
        })
        .collect();
    assert!(!all[0].passed && all[0].rms_error > 0.0);
    assert!(all.iter().all(|result| *result == all[0]));
}

#[test]
fn the_first_mismatches_are_listed_in_order() {
    let expected = vec![0.0f32; 200_000];
    let mut actual = expected.clone();
    for i in [17, 40_000, 40_001, 90_000, 199_999] {
        actual[i] = 1.5;
    }
    let (a, e) = (bytes(&actual), bytes(&expected));
    let t = tolerance(1e-5, 1e-4);
    let result = compare(Dtype::Float32, &[200, 1000], &a, &e, None, &t);
    let indices: Vec<_> = result.first_mismatches.iter().map(|m| m.index.clone()).collect();
    assert_eq!(indices, [[0, 17], [40, 0], [40, 1], [90, 0], [199, 999]]);
    assert_eq!(
        validation_error("c", &result).as_deref(),
        Some(
            "output `c`: 5 of 200000 elements differ beyond atol 1e-5 + rtol \
             1e-4·|expected|; largest |error| 1.5, mean 3.75e-5; first: [0, 17] is 1.5, expected 0, [40, 0] is \
             1.5, expected 0, [40, 1] is 1.5, expected 0"
        )
    );
    actual.fill(1.0);
    let result = f32s(&actual, &expected, &t);
    assert_eq!(result.first_mismatches.len(), MAX_LISTED_MISMATCHES);
    assert_eq!(validation_error("c", &f32s(&expected, &expected, &t)), None);
}

#[test]
fn given_tolerances_replace_defaults_one_by_one() {
    let given = Tolerance { atol: Some(0.5), ..Tolerance::default() };
    let resolved = resolve(Some(&given), Dtype::Float32, &bytes(&[2.0f32, -2.0]));
    assert_eq!((resolved.atol, resolved.rtol), (0.5, 1e-4));
    assert_eq!(resolved.basis, ToleranceBasis::ExpectedSize);
    let resolved = resolve(None, Dtype::Float32, &bytes(&[2.0f32, -2.0]));
    assert_eq!((resolved.atol, resolved.rtol), (2e-4, 1e-4));
    let exact = resolve(None, Dtype::Int32, &[1; 8]);
    assert_eq!((exact.atol, exact.rtol, exact.basis), (0.0, 0.0, ToleranceBasis::Exact));
}

/// Run in release mode with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement, not a check"]
fn speed_of_one_million_floats() {
    let expected: Vec<f32> = (0..1_000_000).map(|i| (i as f32 * 0.37).sin()).collect();
    let actual: Vec<f32> = expected.iter().map(|x| x * (1.0 + 1e-6)).collect();
    let (a, e) = (bytes(&actual), bytes(&expected));
    let mut times: Vec<_> = (0..50)
        .map(|_| {
            let start = std::time::Instant::now();
            let t = tolerance(1e-5, 1e-4);
            assert!(compare(Dtype::Float32, &[1_000_000], &a, &e, None, &t).passed);
            start.elapsed()
        })
        .collect();
    times.sort();
    println!("median {:?}, fastest {:?}", times[25], times[0]);
}

/// Each element has its own bound: one that is far off within its bound passes, and one that is nearer but
/// beyond its bound does not.
#[test]
fn bounds_of_elements_are_added_to_the_tolerance() {
    let elements = |of: &[f32]| of.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<_>>();
    let count = 2 * crate::pieces::CHUNK + 5;
    let expected = elements(&vec![1.0; count]);
    let tolerance = crate::resolve_beside_bounds(None);
    let judged = |at: usize, off: f32, bound: f64| {
        let mut actual = vec![1.0; count];
        actual[at] += off;
        let mut bounds = vec![0f64; count];
        bounds[at] = bound;
        let bounds: Vec<u8> = bounds.iter().flat_map(|it| it.to_le_bytes()).collect();
        let expected = Expectation { elements: &expected, bounds: Some(&bounds) };
        let actual = elements(&actual);
        let (dtype, shape) = (Dtype::Float32, [count as u64]);
        compare_traced(dtype, &shape, &actual, expected, None, &tolerance).0
    };
    for at in [0, crate::pieces::CHUNK, count - 1] {
        assert!(judged(at, 0.5, 0.5).passed, "{at}");
        let beyond = judged(at, 0.5, 0.49);
        assert_eq!(
            (beyond.matched, beyond.first_mismatches[0].index[0]),
            (count as u64 - 1, at as u64)
        );
        assert!(!judged(at, 0.5, f64::NAN).passed && !judged(at, 0.5, -1.0).passed);
        assert!(!judged(at, f32::NAN, f64::INFINITY).passed, "a bound is for numbers");
    }
    let expected = Expectation { elements: &expected, bounds: Some(&[]) };
    let actual = elements(&vec![2.0; count]);
    let shape = [count as u64];
    let missing = compare_traced(Dtype::Float32, &shape, &actual, expected, None, &tolerance).0;
    assert_eq!(missing.matched, 0);
}

#[test]
fn a_result_in_float16_is_wrong_where_the_tolerance_is_that_of_inner_rounding() {
    let expected: Vec<f32> = (0..64).map(|at| (at as f32 * 0.37).sin()).collect();
    let actual: Vec<f32> =
        expected.iter().map(|value| half::f16::from_f32(*value).to_f32()).collect();
    let tolerance = |basis| ResolvedTolerance { basis, ..tolerance(1e-3, 0.0) };
    let given = f32s(&actual, &expected, &tolerance(ToleranceBasis::Given));
    assert!(given.passed && !given.half_precision);
    let inner = f32s(&actual, &expected, &tolerance(ToleranceBasis::InnerRounding));
    assert!(!inner.passed && inner.half_precision);
    let text = crate::validation_error("c", &inner).unwrap();
    assert!(text.contains("is exact in float16"), "{text}");
    assert!(f32s(&expected, &expected, &tolerance(ToleranceBasis::InnerRounding)).passed);
}

#[test]
fn complex_elements_are_compared_by_their_parts() {
    let exact = tolerance(0.0, 1e-6);
    let actual = [1e6f32, 0.5, 2.0, f32::NAN, 3.0, -0.0];
    let expected = [1e6f32, 0.75, 2.0, f32::NAN, 3.0, 0.0];
    let of = |tolerance: &ResolvedTolerance| {
        compare(Dtype::Complex64, &[3, 1], &bytes(&actual), &bytes(&expected), None, tolerance)
    };
    let result = of(&exact);
    // The small part is wrong, although the modulus is within the tolerance; NaN is not allowed.
    assert_eq!((result.elements, result.matched, result.non_finite), (6, 4, 1));
    let found: Vec<_> = result.first_mismatches.iter().map(|one| one.index.clone()).collect();
    assert_eq!(found, [[0, 0, 1], [1, 0, 1]]);
    assert_eq!(result.first_mismatches[0].actual, "0.5");
    let result = of(&ResolvedTolerance { allow_non_finite: true, atol: 0.25, ..exact });
    assert_eq!((result.passed, result.non_finite_matched), (true, 1));
    // Half an element is missing.
    let short = &bytes(&actual)[..20];
    let result = compare(Dtype::Complex64, &[3], short, &bytes(&actual), None, &exact);
    assert_eq!((result.passed, result.elements), (false, 6));
}

#[test]
fn scales_are_exact_and_nan_is_told_apart() {
    let by_type = resolve_by_type(None, Dtype::Float8E8m0);
    let of = |actual: &[u8], expected: &[u8], tolerance: &ResolvedTolerance| {
        compare(Dtype::Float8E8m0, &[3], actual, expected, None, tolerance)
    };
    assert!(of(&[0, 127, 255], &[0, 127, 255], &by_type).passed);
    let result = of(&[0, 128, 254], &[0, 127, 255], &by_type);
    assert_eq!((result.passed, result.matched, result.max_abs_error), (false, 1, 1.0));
    assert_eq!(
        (&*result.first_mismatches[0].actual, &*result.first_mismatches[0].expected),
        ("2", "1")
    );
    assert!(result.ulp.is_none());
    // NaN where a number is expected, and where NaN may not be.
    assert_eq!(of(&[255, 127, 1], &[0, 127, 1], &by_type).non_finite, 1);
    assert!(!of(&[255, 127, 1], &[255, 127, 1], &tolerance(0.0, 0.0)).passed);
    assert!(of(&[0, 128, 254], &[0, 127, 253], &tolerance(0.0, 1.0)).passed);
}

#[test]
fn packed_elements_are_compared_number_by_number() {
    // Low halves: 0.5, 6, −0; high halves: 1, −4, 0.
    let expected = [0x21, 0xE7, 0x08];
    let of = |dtype, actual: &[u8], tolerance: &ResolvedTolerance| {
        compare(dtype, &[1, 3], actual, &expected, None, tolerance)
    };
    let float = Dtype::Float4E2m1x2;
    let exact = tolerance(0.0, 0.0);
    let result = of(float, &[0x21, 0xF6, 0x80], &exact);
    // Zeros of both signs are equal; 4 for 6 and −6 for −4 are one step off.
    assert_eq!((result.elements, result.matched, result.max_abs_error), (6, 4, 2.0));
    let found: Vec<_> = result.first_mismatches.iter().map(|one| one.index.clone()).collect();
    assert_eq!(found, [[0, 2], [0, 3]]);
    let mismatch = &result.first_mismatches[1];
    assert_eq!((&*mismatch.actual, &*mismatch.expected), ("-6", "-4"));
    assert_eq!(result.ulp.unwrap().max, 1);
    let by_type = resolve_by_type(None, float);
    assert!(of(float, &[0x21, 0xF6, 0x80], &by_type).passed);
    assert!(!of(float, &[0x21, 0xE5, 0x08], &by_type).passed, "3 for 6 are two steps");
    // The same bytes as integers.
    let result = of(Dtype::Int4x2, &[0x21, 0xE6, 0x08], &exact);
    assert_eq!((result.matched, result.max_abs_error, result.ulp), (5, 1.0, None));
    let signed = &of(Dtype::Int4x2, &[0x21, 0xE7, 0x07], &exact).first_mismatches[0];
    assert_eq!((&*signed.actual, &*signed.expected), ("7", "-8"));
    let unsigned = &of(Dtype::Uint4x2, &[0x21, 0xE7, 0x07], &exact).first_mismatches[0];
    assert_eq!((&*unsigned.actual, &*unsigned.expected), ("7", "8"));
    // A byte is missing.
    let result = of(Dtype::Int4x2, &expected[..2], &exact);
    assert_eq!((result.passed, result.elements, result.matched), (false, 6, 4));
}

#[test]
fn pieces_of_packed_tensors_are_in_their_places() {
    let expected: Vec<u8> = (0..100_000).map(|at| (at % 251) as u8).collect();
    let mut actual = expected.clone();
    actual[70_000] ^= 0x10;
    let result =
        compare(Dtype::Uint4x2, &[100_000], &actual, &expected, None, &tolerance(0.0, 0.0));
    assert_eq!((result.elements, result.matched), (200_000, 199_999));
    assert_eq!(result.first_mismatches[0].index, [140_001]);
}
