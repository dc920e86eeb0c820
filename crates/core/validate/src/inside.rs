//! References that compute internally in a shorter type, such as bfloat16 under autocast. Their results change as
//! irregularly as those of a quantised network, so the type must be known from another source.

use super::elements::{changes, mean_squared_change, root_mean_square};
use super::fit::growth;
use super::nudges::{INNER_STEPS, Nudge, NudgedRun};
use warpgauge_tensor::Dtype;

/// Allowed error, as a multiple of the root mean square of the changes when each input crosses a boundary of the
/// shorter type. Errors of 13 networks that compute in binary32 instead stay below 3.5 times that value.
const FACTOR: f64 = 5.0;

/// Number of roundings to the shorter type for which the relative tolerance allows.
const ROUNDINGS: f64 = 2.0;

/// Largest exponent with which the output's change grows with the inputs' change, if internal rounding causes the
/// change. It is 1 for a smooth function.
const MOST_GROWTH: f64 = 0.75;

/// Largest ratio of the number of elements that change for the small step to the number that change for the large
/// step, if internal rounding causes the changes. Nearly all elements of a smooth function change for both steps.
const MOST_ACTIVE: f64 = 0.9;

/// Largest change that rounding to a shorter type causes, as a share of the values' size. The changes of 13 networks
/// are below 0.015. Larger changes are steps of the function, such as those of `floor`.
const MOST_CHANGE: f64 = 0.05;

/// Tolerance of a reference that computes in a shorter type.
pub(super) struct ShorterType {
    /// Change per unit in the last place of an input.
    pub linear: f64,
    /// Absolute tolerance.
    pub atol: f64,
    /// Relative tolerance.
    pub rtol: f64,
}

/// Returns the distance of two neighbouring numbers of a shorter type in units in the last place of float32, and the
/// type's unit roundoff.
fn units(shorter: Dtype) -> Option<(u32, f64)> {
    match shorter {
        Dtype::Float16 => Some((1 << 13, 2f64.powi(-11))),
        Dtype::Bfloat16 => Some((1 << 16, 2f64.powi(-8))),
        _ => None,
    }
}

/// Returns the perturbation of the inputs that shows how much rounding to this type changes a
/// result.
pub fn nudge_across(shorter: Dtype) -> Option<Nudge> {
    let (steps, _) = units(shorter)?;
    Some(Nudge { dtype: Dtype::Float32, steps, seed: 1 << 38 })
}

/// Returns whether internal rounding may affect a result: moving float32 inputs by 256 units changes it by far more
/// than 1/256 of the change for 65,536 units, or leaves more elements unchanged.
pub fn may_round_inside(dtype: Dtype, base: &[u8], runs: &[NudgedRun<'_>]) -> bool {
    let dtype = dtype.part();
    let [few, many, _] = INNER_STEPS;
    let (few_moved, many_moved) = (of(runs, few), of(runs, many));
    let square = |outputs: &[&[u8]]| mean_squared_change(dtype, base, outputs);
    let (small, large) = (square(&few_moved), square(&many_moved));
    if !matches!(dtype, Dtype::Float32 | Dtype::Float64) || large == 0.0 {
        return false;
    }
    // The growth exponent is uncertain for few changes, or for changes that differ much.
    let stays = active(dtype, base, &few_moved) < MOST_ACTIVE * active(dtype, base, &many_moved);
    stays || growth((few, small), (many, large)) < MOST_GROWTH
}

/// Returns the share of elements that change, over all elements of all runs.
fn active(dtype: Dtype, base: &[u8], outputs: &[&[u8]]) -> f64 {
    let changed = |run: &&[u8]| changes(dtype, base, &[run]).iter().filter(|x| **x > 0.0).count();
    let elements = outputs.len() * (base.len() / dtype.size());
    outputs.iter().map(changed).sum::<usize>() as f64 / elements.max(1) as f64
}

/// Returns the tolerance of a result for which [`may_round_inside`] is true, if the reference computes in `shorter`.
pub(super) fn tolerance_of_shorter_type(
    dtype: Dtype,
    base: &[u8],
    runs: &[NudgedRun<'_>],
    shorter: Dtype,
) -> Option<ShorterType> {
    let (steps, unit) = units(shorter)?;
    let outputs = of(runs, steps);
    let active = active(dtype, base, &outputs);
    if active == 0.0 || !may_round_inside(dtype, base, runs) {
        return None;
    }
    let change = (mean_squared_change(dtype, base, &outputs) / active).sqrt();
    (change < MOST_CHANGE * root_mean_square(dtype, base)).then(|| ShorterType {
        linear: change / f64::from(steps),
        atol: FACTOR * change,
        rtol: ROUNDINGS * unit,
    })
}

/// Returns the outputs for float32 inputs that moved by `steps`.
fn of<'a>(runs: &[NudgedRun<'a>], steps: u32) -> Vec<&'a [u8]> {
    let moved = |run: &&NudgedRun<'_>| run.inputs == Dtype::Float32 && run.steps == steps;
    runs.iter().filter(moved).map(|run| run.output).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moved_tests::{Moved, bytes, random};
    use crate::{ToleranceBasis, resolve_by_noise};

    /// Rounds to bfloat16.
    fn short(x: f32) -> f32 {
        half::bf16::from_f32(x).to_f32()
    }

    /// Rows of 32 elements, after 12 layers that add products of whole rows and round to `rounded`.
    fn network(inputs: &[f32], weights: &[f32], rounded: fn(f32) -> f32) -> Vec<f32> {
        let layer = |row: &[f32], weights: &[f32]| -> Vec<f32> {
            let product = |weights: &[f32]| -> f32 {
                row.iter().zip(weights).map(|(x, weight)| x * rounded(weight / 6.0)).sum()
            };
            let products = weights.chunks_exact(32).map(product);
            row.iter().zip(products).map(|(x, y)| rounded(x + rounded(y.tanh()))).collect()
        };
        let of_row = |row: &[f32]| {
            let first: Vec<f32> = row.iter().map(|x| rounded(*x)).collect();
            weights.chunks_exact(32 * 32).fold(first, |row, weights| layer(&row, weights))
        };
        inputs.chunks_exact(32).flat_map(of_row).collect()
    }

    #[test]
    fn a_deep_network_in_bfloat16_has_the_same_tolerance_for_all_inputs() {
        let weights = random(12 * 32 * 32, "weights");
        for name in ["a", "b", "c"] {
            let inputs = random(64 * 32, name);
            let reference = |inputs: &[f32]| network(inputs, &weights, short);
            let moved = Moved::of(&inputs, reference);
            let runs = moved.runs();
            let expected = reference(&inputs);
            let base = bytes(&expected);
            assert!(may_round_inside(Dtype::Float32, &base, &runs));
            let inside = (&runs[..], Some(Dtype::Bfloat16));
            let tolerance = resolve_by_noise(None, Dtype::Float32, &base, inside);
            assert_eq!(tolerance.basis, ToleranceBasis::InnerRounding);
            assert_eq!(tolerance.computes_in, Some(Dtype::Bfloat16));
            let allowed = |actual: f32, wanted: f32| {
                let most = tolerance.atol + tolerance.rtol * f64::from(wanted.abs());
                f64::from((actual - wanted).abs()) <= most
            };
            let passes =
                |actual: &[f32]| actual.iter().zip(&expected).all(|(x, y)| allowed(*x, *y));
            assert!(passes(&network(&inputs, &weights, |x| x)), "{name}: {tolerance:?}");
            let scaled: Vec<f32> = expected.iter().map(|x| x * 1.05).collect();
            assert!(!passes(&scaled), "{name}: {tolerance:?}");
        }
    }

    #[test]
    fn a_smooth_function_needs_no_shorter_type() {
        let inputs = random(2048, "x");
        let reference = |inputs: &[f32]| inputs.iter().map(|x| x * 3.0).collect::<Vec<f32>>();
        let moved = Moved::of(&inputs, reference);
        let runs = moved.runs();
        let base = bytes(&reference(&inputs));
        assert!(!may_round_inside(Dtype::Float32, &base, &runs));
        let of = |inside| resolve_by_noise(None, Dtype::Float32, &base, (&runs, inside));
        assert_eq!(of(Some(Dtype::Bfloat16)), of(None));
    }

    #[test]
    fn steps_of_the_function_are_no_rounding_inside() {
        let inputs = random(1 << 16, "x");
        let reference =
            |inputs: &[f32]| inputs.iter().map(|x| (x * 4.0).floor() / 4.0).collect::<Vec<f32>>();
        let moved = Moved::of(&inputs, reference);
        let base = bytes(&reference(&inputs));
        let inside = (&moved.runs()[..], Some(Dtype::Bfloat16));
        let tolerance = resolve_by_noise(None, Dtype::Float32, &base, inside);
        assert_eq!(tolerance.computes_in, None);
        assert!(tolerance.atol < 0.01, "{tolerance:?}");
    }

    #[test]
    fn few_changes_of_much_different_size_are_rounding_inside() {
        // Squares in float16 have far larger changes in a few elements.
        let half = |x: f32| half::f16::from_f32(x).to_f32();
        let reference =
            |inputs: &[f32]| inputs.iter().map(|x| half(half(*x) * half(*x))).collect::<Vec<f32>>();
        for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"] {
            let inputs = random(4096, name);
            let moved = Moved::of(&inputs, reference);
            let base = bytes(&reference(&inputs));
            assert!(may_round_inside(Dtype::Float32, &base, &moved.runs()), "{name}");
        }
    }
}
