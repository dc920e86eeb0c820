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
    // Squares grow twice as fast.
    let growth = |small: f64, from: u32, large: f64, to: u32| {
        (large / small).ln() / 2.0 / (f64::from(to) / f64::from(from)).ln()
    };
    let grows = growth(small, few, large, many);
    let is_inner = INNER_GROWTH.contains(&grows)
        && GROWTH_BEYOND.contains(&growth(large, many, largest, most));
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
