//! What the changes of the elements say of a tolerance: whether inputs are rounded inside, and which absolute and
//! relative parts allow for the noise.

use std::ops::Range;

use super::elements::quantile;
use super::noise::{NOISE_FACTOR, QUANTILE, ToleranceBounds};

/// Median magnitudes that the absolute rounding error of a result is measured by, at most.
const TYPICAL: f64 = 8.0;

/// Parts of the elements whose noise, relative to them, is tried as that of all.
const RELATIVE_PARTS: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Elements whose logarithms are taken for each part, about.
const LOGARITHMS: usize = 8192;

/// Most that noise may add to the relative tolerance: a kernel that is off by half a percent is to be wrong.
const MOST_RELATIVE: f64 = 2e-3;

/// Changes of elements from which on that can be seen. Half of the elements must change: of a function that jumps few do.
const INNER_CHANGES: usize = 4;

/// How the change of the output grows with that of the inputs where a reference rounds to fewer bits: by its square root,
/// since more and more of them pass a boundary, and more slowly where sums are rounded, too. It is the exponent; that of
/// a smooth function is 1.
const INNER_GROWTH: Range<f64> = 0.2..0.75;

/// The same where each input passes a boundary of bfloat16, at least. That of rounding to 8-bit integers is below 0.76.
const GROWTH_BEYOND: Range<f64> = 0.85..1.3;

/// How many times larger the square of the change by the first of the large steps is than that by a step of few units,
/// which carries hardly an input over a boundary. Sums of many terms change as much by each of them.
const RISE: f64 = 5.0;

/// Where a reference rounds its inputs to fewer bits than they have, such as those of TF32 or bfloat16: what one unit in
/// the last place of these would change without, and how many units lie between two boundaries. Each of `moved`: the
/// units that inputs were moved by, and the mean square of the elements' changes; the units rise. `of_many`: the largest
/// change of each element for the last but one of them, in so many runs; `floor`: the mean square for a step of few
/// units. The last step but one carries each input over a boundary of bfloat16. Rounding to wider steps, such as those of
/// 8-bit integers, is what the reference does and not a shorter type.
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
    // For a boundary every `width` units, a step changes the output as sqrt(step * width) units would.
    let of_active = large * of_many.len() as f64 / active as f64;
    let linear = of_active.sqrt() / f64::from(many);
    let width = small / large * f64::from(many) * f64::from(many) / f64::from(few);
    is_inner.then_some((linear, width))
}

/// How many times the median change the largest is, at least, where few elements change by far more than the others.
const FAR_JUMP: f64 = 100.0;

/// Part of the largest change from which on a change is a jump.
const JUMP_PART: f64 = 0.125;

/// Part of the values' size that a jump by the rounding of one input stays below.
const LARGE_JUMP: f64 = 1e-3;

/// Fewest jumps that say something.
const JUMPS: usize = 4;

/// Whether a few inputs that pass a boundary change the output, beside others that change it smoothly: a reference that
/// adds to a product in TF32 what it does not round. `small` and `large`: the elements' changes where inputs are moved by
/// one unit and by four. Jumps come more often then, and are no larger. Those that are large beside the values, which
/// are of the size `typical`, are what the reference does.
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

/// Growth of the mean square of the changes from a step of one unit to one of 256, at most, where rounding inside makes
/// them: that of a smooth function in binary32 is 256², and 256 where inputs alone are rounded.
const SATURATED: f64 = 400.0;

/// Parts of the values' size that such changes lie between. Rounding the result to binary32 alone makes smaller ones, and
/// a function that is chaotic larger ones.
const PART_SATURATED: Range<f64> = 4e-6..0.02;

/// How many times the median of the changes for 256 units that for one unit is, at least: where jumps are few, the others
/// grow with the step.
const DENSE: f64 = 0.05;

/// Whether the output changes about as much for small steps as for large ones: a deep network in TF32, in which a change
/// of one unit carries some element over a boundary of every layer. Each of `changes`: the mean square for 1, 4 and 256
/// units; then the changes of the elements for one and for 256 units, and the size of the values.
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

/// Whether changes grow with the step beyond 65,536 units, as those of all but rounding to fewer bits than bfloat16 has do.
/// Each of both steps: its units, and the mean square of the changes.
pub(super) fn grows_beyond((many, large): (u32, f64), (most, largest): (u32, f64)) -> bool {
    GROWTH_BEYOND.contains(&growth((many, large), (most, largest)))
}

/// The exponent by which changes grow with the step. Squares grow twice as fast.
fn growth((from, small): (u32, f64), (to, large): (u32, f64)) -> f64 {
    (large / small).ln() / 2.0 / (f64::from(to) / f64::from(from)).ln()
}

/// A size that no few large elements set: some times the median of those that are not 0.
pub(super) fn typical(magnitudes: &[f64]) -> f64 {
    let nonzero = magnitudes.iter().copied().filter(|magnitude| *magnitude > 0.0).collect();
    TYPICAL * quantile(nonzero, 0.5)
}

/// The absolute and the relative tolerance that allow for the noise of the elements beside what rounding the results
/// does, and together allow as little as possible: the mean of the logarithm over all elements is the least. Where noise
/// grows with the elements, as that of an exponential does, small elements would else be hidden by large ones.
pub(super) fn fitted(
    magnitudes: &[f64],
    noise: &[f64],
    rounding: ToleranceBounds,
) -> ToleranceBounds {
    // Elements that are 0 and stay so tell nothing of the others.
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
    let less = |a: (f64, ToleranceBounds), b: (f64, _)| if b.0 < a.0 { b } else { a };
    weighed.reduce(less).map_or(rounding, |(_, bounds)| bounds)
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
