//! Evaluation of the elements' changes: whether a reference rounds its inputs, and which absolute and
//! relative tolerances allow for the noise.

use std::ops::Range;

use super::elements::quantile;
use super::noise::{NOISE_FACTOR, QUANTILE, ToleranceBounds};

/// Upper bound on the size to which absolute rounding errors are relative, as a multiple of the median magnitude.
const TYPICAL: f64 = 8.0;

/// Quantiles of the relative noise that are tried as the relative tolerance.
const RELATIVE_PARTS: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Approximate number of elements whose logarithms are summed for each tolerance that is tried.
const LOGARITHMS: usize = 8192;

/// Largest relative tolerance that noise may add. A kernel with errors of half a percent must be rejected.
pub(super) const MOST_RELATIVE: f64 = 2e-3;

/// Minimum number of changes that count as evidence. In addition, half of the elements must change, because a step
/// function changes only a few.
const INNER_CHANGES: usize = 4;

/// Exponent with which the output's change grows with the inputs' change, if a reference rounds to fewer bits. It is
/// about 1/2, because more and more inputs cross a boundary, and less if sums are rounded, too. For a smooth function
/// it is 1.
const INNER_GROWTH: Range<f64> = 0.2..0.75;

/// Exponent with which the output's change grows for steps that carry every input across a boundary of bfloat16. For
/// rounding to 8-bit integers it is below 0.76.
const GROWTH_BEYOND: Range<f64> = 0.85..1.3;

/// Smallest ratio of the mean square change for the first large step to that for a small step, which moves hardly any
/// input across a boundary. Sums of many terms change by the same amount for each of these steps.
const RISE: f64 = 5.0;

/// Detects a reference that rounds its inputs to fewer bits, such as those of TF32 or bfloat16. Returns the change
/// per unit in the last place without that rounding, and the units between two boundaries. `moved` contains steps in
/// ascending order, each with the mean square of the elements' changes. `of_many` is the largest change of each
/// element for the second-largest step, in `runs` runs. `floor` is the mean square for a small step. The
/// second-largest step moves each input across a boundary of bfloat16. Rounding to wider steps, such as those of
/// 8-bit integers, is regular behaviour and not a shorter type.
pub(super) fn inner_rounding(
    moved: [(u32, f64); 3],
    (of_many, runs): (&[f64], usize),
    floor: f64,
) -> Option<(f64, f64)> {
    let [(few, small), (many, large), (most, largest)] = moved;
    let active = of_many.iter().filter(|change| **change > 0.0).count();
    if active * runs < INNER_CHANGES || 2 * active < of_many.len() || small <= RISE * floor {
        return None;
    }
    let is_inner = INNER_GROWTH.contains(&growth((few, small), (many, large)))
        && grows_beyond((many, large), (most, largest));
    // With a boundary every `width` units, a step changes the output as much as sqrt(step * width) units would.
    let of_active = large * of_many.len() as f64 / active as f64;
    let linear = of_active.sqrt() / f64::from(many);
    let width = small / large * f64::from(many) * f64::from(many) / f64::from(few);
    is_inner.then_some((linear, width))
}

/// Smallest ratio of the largest change to the median change at which a few elements count as changing far more than
/// the others.
const FAR_JUMP: f64 = 100.0;

/// Smallest jump, as a share of the largest change.
const JUMP_PART: f64 = 0.125;

/// Largest jump that the rounding of one input causes, as a share of the values' size.
const LARGE_JUMP: f64 = 1e-3;

/// Minimum number of jumping elements that count as evidence.
const JUMPS: usize = 4;

/// Detects a reference in which a few inputs change the output by crossing a boundary and others change it smoothly.
/// An example adds unrounded values to a product in TF32. `small` and `large` are the elements' changes if inputs
/// move by one unit and by four. For four units, jumps are more frequent, but not larger. Jumps that are large
/// relative to the values' size `typical` are the reference's regular behaviour.
pub(super) fn changes_in_jumps(small: &[f64], large: &[f64], typical: f64) -> bool {
    let most = |changes: &[f64]| changes.iter().copied().fold(0.0, f64::max);
    let largest = most(small);
    let jumps =
        |changes: &[f64]| changes.iter().filter(|change| **change > JUMP_PART * largest).count();
    let (few, many) = (jumps(small), jumps(large));
    largest > FAR_JUMP * quantile(small.to_vec(), 0.5)
        && largest < LARGE_JUMP * typical
        && most(large) < 2.0 * largest
        && few >= JUMPS
        && many >= 2 * few
}

/// Largest growth of the mean square change from a step of one unit to one of 256, if rounding inside causes
/// the changes. It is 256² for a smooth function in binary32, and 256 if only inputs are rounded.
const SATURATED: f64 = 400.0;

/// Range of the changes that rounding inside a reference causes, as shares of the values' size. Rounding only the
/// result to binary32 causes smaller changes, and a chaotic function larger ones.
const PART_SATURATED: Range<f64> = 4e-6..0.02;

/// Smallest ratio of the median change for one unit to that for 256 units. If there are only a few jumps, the
/// other changes grow with the step.
const DENSE: f64 = 0.05;

/// Detects an output that changes about as much for small steps as for large ones. An example is a deep network in
/// TF32, in which a change of one unit moves some element across a boundary in every layer. The first argument
/// contains the mean squares for 1, 4 and 256 units. The others are the changes of the elements for one and for 256
/// units, and the size of the values.
pub(super) fn is_saturated(
    [one, four, many]: [f64; 3],
    (small, large): (&[f64], &[f64]),
    typical: f64,
) -> bool {
    let grows = four >= SATURATED.sqrt() * one || many >= SATURATED * one;
    let is_dense = quantile(small.to_vec(), 0.5) > DENSE * quantile(large.to_vec(), 0.5);
    let part = quantile(large.to_vec(), QUANTILE) / typical;
    one > 0.0 && !grows && is_dense && PART_SATURATED.contains(&part)
}

/// Returns whether changes grow with the step beyond 65,536 units. They do, unless a reference rounds to fewer bits
/// than bfloat16 has. Each argument is a step in units and the mean square of the changes.
pub(super) fn grows_beyond((many, large): (u32, f64), (most, largest): (u32, f64)) -> bool {
    GROWTH_BEYOND.contains(&growth((many, large), (most, largest)))
}

/// Returns the exponent with which changes grow with the step. Mean squares grow with twice that exponent.
pub(super) fn growth((from, small): (u32, f64), (to, large): (u32, f64)) -> f64 {
    (large / small).ln() / 2.0 / (f64::from(to) / f64::from(from)).ln()
}

/// Returns a size that a few large elements do not affect: a multiple of the median of the nonzero
/// magnitudes.
pub(super) fn typical(magnitudes: &[f64]) -> f64 {
    let nonzero = magnitudes.iter().copied().filter(|magnitude| *magnitude > 0.0).collect();
    TYPICAL * quantile(nonzero, 0.5)
}

/// Returns the absolute and relative tolerances that allow for the noise in addition to `rounding`. They are as tight
/// as possible: the mean logarithm of the elements' tolerances is minimal. If noise grows with the elements, as for
/// an exponential, an absolute tolerance alone would be too wide for small elements.
pub(super) fn fitted(
    magnitudes: &[f64],
    noise: &[f64],
    rounding: ToleranceBounds,
) -> ToleranceBounds {
    // Elements that stay 0 give no information about the other elements.
    let elements: Vec<(f64, f64)> = magnitudes
        .iter()
        .copied()
        .zip(noise.iter().copied())
        .filter(|(magnitude, noise)| *magnitude > 0.0 || *noise > 0.0)
        .collect();
    let relative = |part: f64| {
        let nonzero = elements.iter().filter(|(magnitude, _)| *magnitude > 0.0);
        quantile(nonzero.map(|(magnitude, noise)| noise / magnitude).collect(), part)
    };
    let with = |relative: f64| {
        let left =
            elements.iter().map(|(magnitude, noise)| (noise - relative * magnitude).max(0.0));
        ToleranceBounds {
            atol: rounding.atol + NOISE_FACTOR * quantile(left.collect(), QUANTILE),
            rtol: rounding.rtol + NOISE_FACTOR * relative,
        }
    };
    let allowed = |bounds: &ToleranceBounds| -> f64 {
        let of_element = |(magnitude, _): &(f64, f64)| {
            (bounds.atol + bounds.rtol * magnitude).max(f64::MIN_POSITIVE).ln()
        };
        elements.iter().step_by(elements.len().div_ceil(LOGARITHMS).max(1)).map(of_element).sum()
    };
    let parts = RELATIVE_PARTS.into_iter().map(relative);
    let others = parts.filter(|part| NOISE_FACTOR * part <= MOST_RELATIVE).map(with);
    let weighed = std::iter::once(with(0.0)).chain(others).map(|bounds| (allowed(&bounds), bounds));
    let least = weighed.min_by(|(one, _), (other, _)| one.total_cmp(other));
    least.map_or(rounding, |(_, bounds)| bounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_that_hardly_grow_are_rounding_inside() {
        let dense = (&[1e-4; 8][..], &[3e-4; 8][..]);
        let sparse = (&[1e-7; 8][..], &[3e-4; 8][..]);
        assert!(is_saturated([1e-8, 1.2e-8, 3e-8], dense, 0.3), "a deep network");
        assert!(!is_saturated([1e-8, 1.2e-8, 3e-8], sparse, 0.3), "jumps of a few");
        assert!(!is_saturated([1e-14, 1.6e-13, 6.5e-10], dense, 0.3), "a smooth function");
        assert!(!is_saturated([1e-8, 1.2e-8, 3e-8], dense, 1e-3), "a chaotic one");
        assert!(!is_saturated([1e-8, 1.2e-8, 3e-8], dense, 1e4), "the result is rounded");
        assert!(!is_saturated([0.0; 3], dense, 0.3));
    }

    #[test]
    fn rounding_to_integers_of_8_bits_does_not_grow_beyond() {
        assert!(grows_beyond((1 << 16, 1.0), (1 << 18, 16.0)));
        assert!(!grows_beyond((1 << 16, 1.0), (1 << 18, 6.0)));
        assert!(!grows_beyond((1 << 16, 0.0), (1 << 18, 0.0)));
    }
}
