//! Tolerances that follow from the expectation, if the caller gives none.
//!
//! A reference runs again on inputs that were moved by a unit in the last place, which shows how much rounding
//! changes its results. The errors of a kernel that rounds in another order are a small multiple of that change;
//! those of a kernel that omits work are far larger. docs/validation.md describes the measurements from which the
//! factors follow.

use std::ops::Range;

use super::elements::{changes, magnitudes, mean_squared_change, quantile, root_mean_square};
use super::fit::{changes_in_jumps, fitted, grows_beyond, inner_rounding, is_saturated, typical};
use super::inside::tolerance_of_shorter_type;
use super::nudges::{FEW_ELEMENTS, INNER_STEPS, LARGE_STEPS, NudgedRun};
use super::rare::part_outliers;
use super::{OutlierTolerance, ResolvedTolerance, ToleranceBasis};
use warpgauge_tensor::Dtype;
use warpgauge_tensor::element::Element;

/// Allowed error, as a multiple of the change if the inputs move by 2⁻²³. Errors of correct kernels stay below 14
/// times that change; those of useless kernels are above 130 times that change. A unit in the last place is 0.7 times
/// 2⁻²³ on average.
pub(super) const NOISE_FACTOR: f64 = 48.0;

/// Allowed error from the rounding of results of 32 bits or more, in units of 2⁻²³ (or 2⁻⁵²).
const WIDE_ROUNDINGS: f64 = 36.0;

/// Maximum error of a correct kernel with 16-bit results, in unit roundoffs of the type.
const NARROW_ROUNDINGS: f64 = 4.0;

/// Quantile over the elements that is used as the measured change.
pub(super) const QUANTILE: f64 = 0.999;

/// Range of changes, as shares of the values' size, that are not rounding if they do not grow with the inputs'
/// change.
const JUMP: Range<f64> = 1e-3..1.0;

/// Maximum error of a correct kernel from internal rounding, as a multiple of its root mean square over all elements.
/// The errors of a recurrent network in TF32 add up to 3.6 in its last steps. Results in float16 are within this
/// bound; the module `narrow` detects them.
const INNER_FACTOR: f64 = 5.0;

/// Maximum error from internal rounding if the reference also rounds its sums, as in bfloat16, as a multiple of the
/// same root mean square. The relative tolerance covers the rounding of sums.
const INNER_FACTOR_OF_SUMS: f64 = 2.0;

/// Factor on the change for 256 units if the changes are saturated. The values in a correct kernel cross boundaries
/// of the internal rounding just as those of a run with moved inputs do, so its results differ by about that change.
const SATURATED_FACTOR: f64 = 8.0;

/// Smallest distance between two neighbouring numbers, in units, at which a reference that rounds its inputs is
/// assumed to round its sums, too. Numbers of bfloat16 are 2¹⁶ units apart. Those of TF32 are 2¹³ apart, and its
/// tensor cores sum in binary32.
const SUMS_ROUNDED: f64 = 32768.0;
const BFLOAT16_UNITS: f64 = 65536.0;

/// Absolute and relative tolerance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ToleranceBounds {
    /// Absolute tolerance, in the unit of the values.
    pub atol: f64,
    /// Relative tolerance, as a share of the expected magnitude, in addition.
    pub rtol: f64,
}

/// A tolerance that was measured by moving a reference's inputs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NoiseTolerance {
    /// Tolerance that applies to every element.
    pub bounds: ToleranceBounds,
    /// Larger tolerance of a few elements.
    pub outliers: Option<OutlierTolerance>,
    /// Whether the reference rounds its inputs to fewer bits.
    pub rounds_inputs: bool,
    /// Shorter type in which the reference computes, if the tolerance follows from it.
    pub computes_in: Option<Dtype>,
}

/// Largest share of the values' size at which a measured tolerance is trusted without further runs.
const LARGE: f64 = 0.1;

/// Returns whether a measured tolerance is so large that runs on unmoved inputs ([`Nudge::NONE`]) must show
/// whether the reference's results vary.
pub fn is_doubtful(dtype: Dtype, base: &[u8], tolerance: &ResolvedTolerance) -> bool {
    let is_measured =
        matches!(tolerance.basis, ToleranceBasis::ReferenceNoise | ToleranceBasis::InnerRounding);
    is_measured && dtype.is_float() && tolerance.atol > LARGE * root_mean_square(dtype, base)
}

/// Returns the tolerance of an output, and that of outliers, from the changes if a reference's inputs move. Returns
/// `None` if no input can be moved, if the output jumps, or if it varies between equal runs. `base` is the
/// reference's output for unmoved inputs. `computes_in` is a shorter type in which the reference is known to compute.
pub(super) fn tolerance_by_noise(
    dtype: Dtype,
    base: &[u8],
    all: &[NudgedRun<'_>],
    computes_in: Option<Dtype>,
) -> Option<NoiseTolerance> {
    let unit = unit_roundoff(dtype)?;
    let size = root_mean_square(dtype, base);
    let again = all.iter().filter(|run| run.steps == 0);
    let again: Vec<&[u8]> = again.map(|run| run.output).collect();
    let varies = largest_changes(dtype, base, &again);
    if varies > tolerance_by_size(dtype, base, false)?.atol {
        return None;
    }
    let moved = all.iter().filter(|run| run.steps > 0);
    let mut classes: Vec<Dtype> = moved.map(|run| run.inputs).collect();
    classes.sort_by_key(|dtype| dtype.size());
    classes.dedup();
    if classes.is_empty() {
        return None;
    }
    let computed = unit.min(unit_roundoff(Dtype::Float32)?);
    let unit = if is_widened(dtype, base) { unit_roundoff(Dtype::Float32)? } else { unit };
    let magnitudes = magnitudes(dtype, base);
    let mut noise = vec![0.0; magnitudes.len()];
    let (mut narrow, mut inner_atol, mut inner_relative) = (0.0, 0.0, 0.0);
    let mut outliers: Option<OutlierTolerance> = None;
    let mut rounds_inside = false;
    let mut follows_from_type = false;
    for class in classes {
        let runs = |steps: u32| -> Vec<&[u8]> {
            let of = |run: &&NudgedRun<'_>| run.inputs == class && run.steps == steps;
            all.iter().filter(of).map(|run| run.output).collect()
        };
        let shorter = computes_in.filter(|_| class == Dtype::Float32);
        let found = shorter.and_then(|it| tolerance_of_shorter_type(dtype, base, all, it));
        if let Some(found) = found {
            follows_from_type = true;
            inner_atol += found.atol;
            inner_relative = found.rtol;
            noise.iter_mut().for_each(|noise| *noise += found.linear);
            continue;
        }
        let of_steps = |steps: u32| changes(dtype, base, &runs(steps));
        let [few, many, _] = INNER_STEPS;
        let square = |steps| mean_squared_change(dtype, base, &runs(steps));
        let (one, four) = (square(1), square(LARGE_STEPS));
        let inner = INNER_STEPS.map(|steps| (steps, square(steps)));
        let inner_of = || {
            let of_many = (&of_steps(many)[..], runs(many).len());
            inner_rounding(inner, of_many, one.min(four))
        };
        if let Some((linear, width)) = (class == Dtype::Float32).then(inner_of).flatten() {
            let width = width.min(2.0 * BFLOAT16_UNITS);
            // A long sum changes in the same way, because each term is rounded to the precision of the sum.
            let is_seen = magnitudes.len() >= FEW_ELEMENTS || is_bfloat16(dtype, base);
            let rounds_sums = width > SUMS_ROUNDED && is_seen;
            if rounds_sums {
                inner_relative = width * computed;
            }
            inner_atol +=
                linear * width * if rounds_sums { INNER_FACTOR_OF_SUMS } else { INNER_FACTOR };
            noise.iter_mut().for_each(|noise| *noise += linear);
            continue;
        }
        let (small, mut large, some) = (of_steps(1), of_steps(LARGE_STEPS), of_steps(few));
        let mut own = larger(&small, &large, LARGE_STEPS);
        let typical = size.min(typical(&magnitudes));
        let is_inner = class == Dtype::Float32 && grows_beyond(inner[1], inner[2]);
        let squares = [one, four, inner[0].1];
        if is_inner && is_saturated(squares, (&small, &some), typical) {
            rounds_inside = true;
            let part = SATURATED_FACTOR / NOISE_FACTOR;
            own.iter_mut().zip(&some).for_each(|(own, some)| *own = own.min(part * some.max(*own)));
        } else if is_inner && changes_in_jumps(&small, &large, typical) {
            rounds_inside = true;
        } else if let Some(found) = part_outliers(&mut own, (few, &some), (&magnitudes, typical)) {
            outliers = Some(outliers.map_or(found, |others| others.and(found)));
        }
        let small: Vec<f64> =
            small.iter().zip(&own).map(|(change, most)| change.min(*most)).collect();
        large.iter_mut().zip(&own).for_each(|(change, most)| {
            *change = change.min(f64::from(LARGE_STEPS) * most);
        });
        let (most, most_of_large) = (quantile(small, QUANTILE), quantile(large, QUANTILE));
        if JUMP.contains(&(most / size)) && most_of_large < 2.0 * most {
            return None;
        }
        let part = (computed / unit_roundoff(class)?).min(1.0);
        noise.iter_mut().zip(own).for_each(|(noise, own)| *noise += part * own);
        if dtype.size() == 2 && class.size() == 2 {
            narrow += most.max(most_of_large / f64::from(LARGE_STEPS));
        }
    }
    let rounding = if dtype.size() == 2 { NARROW_ROUNDINGS } else { 2.0 * WIDE_ROUNDINGS };
    let rounding = ToleranceBounds {
        atol: rounding * unit * size.min(typical(&magnitudes)) + narrow + inner_atol,
        rtol: rounding * unit + inner_relative,
    };
    let bounds = fitted(&magnitudes, &noise, rounding);
    let further = |outliers: OutlierTolerance| OutlierTolerance {
        atol: outliers.atol.max(bounds.atol),
        ..outliers
    };
    let outliers = outliers.map(further);
    let rounds_inputs = inner_atol > 0.0 || rounds_inside;
    let computes_in = computes_in.filter(|_| follows_from_type);
    let found = NoiseTolerance { bounds, outliers, rounds_inputs, computes_in };
    bounds.atol.is_finite().then_some(found)
}

/// Returns the larger of two changes of each element. The second change is first divided by its step, `steps`.
fn larger(changes: &[f64], others: &[f64], steps: u32) -> Vec<f64> {
    changes.iter().zip(others).map(|(one, other)| one.max(other / f64::from(steps))).collect()
}

/// Returns the tolerance if only the size of the values is known: relative to each value, and to their root mean
/// square. Returns `None` if the type has a fixed tolerance.
///
/// | type | relative to both | largest absolute part, if data are expected |
/// |---|---|---|
/// | float64 | 1e-9 | 1e-8 |
/// | float32 | 1e-4 | 1e-3 |
/// | float16 | 4 roundings: 2e-3 | 1e-2 |
/// | bfloat16 | 4 roundings: 1.6e-2 | 5e-2 |
///
/// Expected data may contain values of very different sizes, such as a range of numbers, and the small ones must be
/// correct, too.
pub(super) fn tolerance_by_size(
    dtype: Dtype,
    expected: &[u8],
    are_data: bool,
) -> Option<ToleranceBounds> {
    let narrow = |most| Some((NARROW_ROUNDINGS * unit_roundoff(dtype)?, most));
    let (rtol, most) = match dtype {
        Dtype::Float64 => (1e-9, 1e-8),
        Dtype::Float32 => (1e-4, 1e-3),
        Dtype::Float16 => narrow(1e-2)?,
        _ => narrow(5e-2)?,
    };
    let atol = rtol * root_mean_square(dtype, expected);
    Some(ToleranceBounds { atol: if are_data { atol.min(most) } else { atol }, rtol })
}

/// Returns the largest relative error of rounding to a floating-point type of 16 bits or more.
fn unit_roundoff(dtype: Dtype) -> Option<f64> {
    let digits = match dtype {
        Dtype::Float64 => 53,
        Dtype::Float32 => 24,
        Dtype::Float16 => 11,
        Dtype::Bfloat16 => 8,
        _ => return None,
    };
    Some(2f64.powi(-digits))
}

/// Returns whether all 64-bit numbers are exact in binary32. A wider copy of binary32 results is no more precise.
/// Integers prove nothing, because they may be counts, which are exact in both types.
fn is_widened(dtype: Dtype, base: &[u8]) -> bool {
    if dtype != Dtype::Float64 {
        return false;
    }
    let values = || base.chunks_exact(8).map(f64::read).filter(|value| value.is_finite());
    let is_narrow = |value: f64| f64::from(value as f32) == value;
    values().all(is_narrow) && values().any(|value| value.fract() != 0.0)
}

/// Returns whether bfloat16 represents all values exactly, and not all are 0.
fn is_bfloat16(dtype: Dtype, base: &[u8]) -> bool {
    let magnitudes = magnitudes(dtype, base);
    let is_held = |value: &f64| f64::from(half::bf16::from_f64(*value)) == *value;
    magnitudes.iter().all(is_held) && magnitudes.iter().any(|value| *value > 0.0)
}

/// Returns the quantile over the elements of the largest change in any run.
fn largest_changes(dtype: Dtype, base: &[u8], runs: &[&[u8]]) -> f64 {
    quantile(changes(dtype, base, runs), QUANTILE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moved_tests::{Moved, bytes, random};
    use crate::nudges::{Nudge, nudges};

    /// Returns the tolerance of `reference`, whose inputs are normally distributed.
    fn measured(inputs: &[f32], reference: impl Fn(&[f32]) -> Vec<f32>) -> Option<ToleranceBounds> {
        let inner = INNER_STEPS.map(|steps| (steps, 5));
        let small = [(1, 1), (1, 2), (LARGE_STEPS, 3), (LARGE_STEPS, 4)];
        let all = small.into_iter().chain(inner);
        let planned = all.map(|(steps, seed)| Nudge { dtype: Dtype::Float32, steps, seed });
        let moved = Moved::by(planned.collect(), inputs, &reference);
        tolerance_by_noise(Dtype::Float32, &bytes(&reference(inputs)), &moved.runs(), None)
            .map(|found| found.bounds)
    }

    fn passes(bounds: ToleranceBounds, actual: &[f32], expected: &[f32]) -> bool {
        actual.iter().zip(expected).all(|(a, e)| {
            f64::from((a - e).abs()) <= bounds.atol + bounds.rtol * f64::from(e.abs())
        })
    }

    /// Returns sums of 2048 products each.
    fn products(inputs: &[f32], sum: impl Fn(&mut dyn Iterator<Item = f32>) -> f32) -> Vec<f32> {
        let (a, b) = inputs.split_at(inputs.len() / 2);
        let rows =
            a.chunks_exact(2048).flat_map(|row| b.chunks_exact(2048).map(move |col| (row, col)));
        rows.map(|(row, col)| sum(&mut row.iter().zip(col).map(|(a, b)| a * b))).collect()
    }

    #[test]
    fn another_order_of_sums_passes_and_less_precision_does_not() {
        let inputs = random(64 * 2048, "x");
        let pairwise = |terms: &mut dyn Iterator<Item = f32>| {
            let mut parts = [0f32; 64];
            terms.enumerate().for_each(|(index, term)| parts[index % 64] += term);
            parts.iter().sum()
        };
        let reference = |inputs: &[f32]| products(inputs, pairwise);
        let bounds = measured(&inputs, reference).unwrap();
        let expected = reference(&inputs);
        let serial = products(&inputs, |terms| terms.fold(0.0, |sum, term| sum + term));
        assert!(passes(bounds, &serial, &expected), "{bounds:?}");
        let shortened: Vec<f32> =
            inputs.iter().map(|x| f32::from_bits(x.to_bits() & 0xFFFF_E000)).collect();
        assert!(!passes(bounds, &reference(&shortened), &expected), "tf32: {bounds:?}");
        let scaled: Vec<f32> = expected.iter().map(|x| x * 1.005).collect();
        assert!(!passes(bounds, &scaled, &expected), "{bounds:?}");
        let larger: Vec<f32> = expected.iter().map(|x| x + 1.0).collect();
        assert!(!passes(bounds, &larger, &expected), "{bounds:?}");
    }

    #[test]
    fn a_product_in_tf32_beside_a_term_that_is_not_rounded_is_inner_rounding() {
        let inputs = random(257 * 4096, "x");
        let short = |x: f32| f32::from_bits((x.to_bits() + 0x1000) & 0xFFFF_E000);
        let reference = |rounded: bool| {
            move |inputs: &[f32]| -> Vec<f32> {
                let (factors, added) = inputs.split_at(256 * 4096);
                let of = |x: f32| if rounded { short(x) } else { x };
                let sum = |factors: &[f32]| factors.iter().map(|x| of(*x) * 0.01).sum::<f32>();
                added.iter().zip(factors.chunks_exact(256)).map(|(x, row)| x + sum(row)).collect()
            }
        };
        let basis = |rounded: bool| {
            let reference = reference(rounded);
            let planned = nudges(std::iter::once(Dtype::Float32), Some(4096));
            let moved = Moved::by(planned, &inputs, reference);
            let base = bytes(&reference(&inputs));
            crate::resolve_by_noise(None, Dtype::Float32, &base, (&moved.runs(), None)).basis
        };
        assert_eq!(basis(true), ToleranceBasis::InnerRounding);
        assert_eq!(basis(false), ToleranceBasis::ReferenceNoise);
    }

    #[test]
    fn small_values_have_a_small_tolerance() {
        let inputs = random(4096, "x");
        let reference = |inputs: &[f32]| {
            let sum: f64 = inputs.iter().map(|x| f64::from(*x).exp()).sum();
            inputs.iter().map(|x| (f64::from(*x).exp() / sum) as f32).collect::<Vec<f32>>()
        };
        let bounds = measured(&inputs, reference).unwrap();
        let expected = reference(&inputs);
        assert!(!passes(bounds, &vec![0.0; 4096], &expected), "{bounds:?}");
        assert!(!passes(bounds, &vec![1.0 / 4096.0; 4096], &expected), "{bounds:?}");
    }

    #[test]
    fn a_reference_that_varies_says_nothing_of_rounding() {
        let base = bytes(&random(64, "x"));
        let (other, far) = (bytes(&random(64, "y")), bytes(&[90.0; 64]));
        let run = |steps, output| NudgedRun { inputs: Dtype::Float32, steps, output };
        let runs = [run(1, &other[..]), run(LARGE_STEPS, &far[..])];
        let measured = crate::resolve_by_noise(None, Dtype::Float32, &base, (&runs, None));
        assert!(is_doubtful(Dtype::Float32, &base, &measured));
        assert!(tolerance_by_noise(Dtype::Float32, &base, &runs, None).is_some());
        let again = [runs[0], runs[1], run(0, &other[..])];
        assert_eq!(tolerance_by_noise(Dtype::Float32, &base, &again, None), None);
        let same = [runs[0], runs[1], run(0, &base[..])];
        assert!(tolerance_by_noise(Dtype::Float32, &base, &same, None).is_some());
    }

    #[test]
    fn jumps_are_no_rounding() {
        let whole: Vec<f32> = (0..4096).map(|n| (n % 7) as f32 - 3.0).collect();
        assert_eq!(measured(&whole, |x| x.iter().map(|x| x.floor()).collect()), None);
        // Almost no normally distributed number is near an integer.
        let bounds = measured(&random(4096, "x"), |x| x.iter().map(|x| x.floor()).collect());
        assert!(bounds.unwrap().atol < 1e-4, "{bounds:?}");
        let bounds = measured(&random(1 << 17, "x"), |x| x.iter().map(|x| x.floor()).collect());
        assert!(bounds.unwrap().atol < 1e-4, "{bounds:?}");
    }

    #[test]
    fn rounding_inside_to_fewer_bits_is_seen_and_allowed_for() {
        let inputs = random(64 * 256, "x");
        let short = |bits: u32| {
            move |x: f32| {
                let half = 1 << (bits - 1);
                f32::from_bits((x.to_bits() + half) & !((1 << bits) - 1))
            }
        };
        let sums = |inputs: &[f32], rounded: &dyn Fn(f32) -> f32| -> Vec<f32> {
            let (a, b) = inputs.split_at(inputs.len() / 2);
            let rows =
                a.chunks_exact(128).flat_map(|row| b.chunks_exact(128).map(move |col| (row, col)));
            rows.map(|(row, col)| row.iter().zip(col).map(|(a, b)| rounded(*a) * rounded(*b)).sum())
                .collect()
        };
        let exact = sums(&inputs, &|x| x);
        let plain = measured(&inputs, |x| sums(x, &|x| x)).unwrap();
        // TF32 has 13 bits less than binary32, and bfloat16 has 16 bits less.
        for (bits, useless) in [(13, 16), (16, 18)] {
            let expected = sums(&inputs, &short(bits));
            assert!(!passes(plain, &exact, &expected));
            let bounds = measured(&inputs, |x| sums(x, &short(bits))).unwrap();
            assert!(passes(bounds, &exact, &expected), "{bits}: {bounds:?}");
            assert!(
                !passes(bounds, &sums(&inputs, &short(useless)), &expected),
                "{bits}: {bounds:?}"
            );
        }
    }

    #[test]
    fn rounding_to_steps_of_one_size_is_no_shorter_type() {
        let inputs = random(4096, "x");
        let most = inputs.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        let scale = most / 127.0;
        let products = |inputs: &[f32]| -> Vec<f32> {
            let rows = inputs.chunks_exact(64);
            let sum = |row: &[f32]| row.iter().map(|x| (x / scale).round()).sum::<f32>() * scale;
            rows.map(sum).collect()
        };
        let bounds = measured(&inputs, products).unwrap();
        let plain: Vec<f32> = inputs.chunks_exact(64).map(|row| row.iter().sum()).collect();
        assert!(!passes(bounds, &plain, &products(&inputs)), "{bounds:?}");
    }

    #[test]
    fn noise_that_grows_with_the_elements_is_relative() {
        let inputs = random(4096, "x");
        let reference =
            |inputs: &[f32]| inputs.iter().map(|x| (8.0 * x).exp()).collect::<Vec<f32>>();
        let bounds = measured(&inputs, reference).unwrap();
        let expected = reference(&inputs);
        let zeros: Vec<f32> = expected.iter().map(|x| if *x < 1.0 { 0.0 } else { *x }).collect();
        assert!(!passes(bounds, &zeros, &expected), "{bounds:?}");
        let double: Vec<f32> = inputs.iter().map(|x| (8.0 * f64::from(*x)).exp() as f32).collect();
        assert!(passes(bounds, &double, &expected), "{bounds:?}");
        // One element of 4000 is not zero.
        let rare = |inputs: &[f32]| {
            let product = |index: usize| inputs[index] * inputs[index + 1] + inputs[index + 2];
            (0..4000)
                .map(|index| if index == 7 { product(index) } else { 0.0 })
                .collect::<Vec<f32>>()
        };
        let bounds = measured(&inputs, rare).unwrap();
        let mut fused = rare(&inputs);
        fused[7] = inputs[7].mul_add(inputs[8], inputs[9]);
        assert!(passes(bounds, &fused, &rare(&inputs)), "{bounds:?}");
        assert!(!passes(bounds, &[0.0; 4000], &rare(&inputs)), "{bounds:?}");
    }

    #[test]
    fn numbers_of_64_bits_that_binary32_computed_are_no_more_precise() {
        let values: Vec<f64> = random(64, "x").into_iter().map(f64::from).collect();
        let bytes =
            |values: &[f64]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        assert!(is_widened(Dtype::Float64, &bytes(&values)));
        assert!(!is_widened(Dtype::Float64, &bytes(&[0.1])));
        assert!(!is_widened(Dtype::Float64, &bytes(&[1e6, f64::INFINITY, 0.0])));
        assert!(!is_widened(Dtype::Float32, &[0; 8]));
    }

    #[test]
    fn values_of_bfloat16_are_seen() {
        let is = |values: &[f32]| is_bfloat16(Dtype::Float32, &bytes(values));
        assert!(is(&[1.0, -0.0078125, 0.0]));
        assert!(!is(&[1.0, 0.1]) && !is(&[0.0]));
    }

    #[test]
    fn what_cannot_be_moved_tells_nothing() {
        assert_eq!(tolerance_by_noise(Dtype::Float32, &bytes(&[1.0, 2.0]), &[], None), None);
        let of_size =
            tolerance_by_size(Dtype::Float32, &bytes(&[3.0, 4.0, f32::INFINITY]), false).unwrap();
        assert!((of_size.atol - 1e-4 * 12.5f64.sqrt()).abs() < 1e-12, "{of_size:?}");
        assert_eq!(tolerance_by_size(Dtype::Int32, &[0; 4], false), None);
        assert_eq!(tolerance_by_size(Dtype::Float8E4m3, &[0; 4], false), None);
        let huge = tolerance_by_size(Dtype::Float64, &1e300f64.to_le_bytes(), false).unwrap();
        assert!((huge.atol / 1e291 - 1.0).abs() < 1e-9, "{huge:?}");
        // A copy that is off by one half is wrong for the small numbers of a range.
        let ramp: Vec<f32> = (0..1 << 20).map(|n| n as f32 + 0.5).collect();
        let bounds = tolerance_by_size(Dtype::Float32, &bytes(&ramp), true).unwrap();
        assert_eq!(bounds.atol, 1e-3);
    }
}
