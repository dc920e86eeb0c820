//! Noise of a few elements. Such elements belong to rows that are far larger than others, or are close to a boundary
//! that they cross if the inputs change by one unit.

use super::elements::{changes, quantile};
use super::noise::NOISE_FACTOR;
use super::{NudgedRun, OutlierTolerance};
use warpgauge_tensor::Dtype;

/// Allowed share of outliers, as a multiple of the observed share. A correct kernel has outliers at other elements.
const SHARE_FACTOR: f64 = 4.0;

/// Allowed share of outliers that only a step of many units shows, as a multiple of the observed share. Such a step
/// moves more values across a boundary than rounding does.
const JUMP_SHARE_FACTOR: f64 = 3.0;

/// Largest share of elements that may be observed as outliers, and largest share that may be allowed. A larger share
/// is the reference's regular behaviour.
const MOST_SEEN: f64 = 0.5;
const MOST_SHARE: f64 = 0.5;

/// Smallest noise of an outlier, as a multiple of the 90 % quantile of the noise.
const FAR: f64 = 300.0;

/// Smallest relative noise of an outlier (noise divided by the element's magnitude), as a multiple of the 90 %
/// quantile of the relative noise. Noise that grows with the elements does not make an outlier.
const FAR_RELATIVE: f64 = 3.0;

/// Smallest change per unit of a large step for a value that crosses a boundary, as a multiple of the 90 % quantile
/// of the noise.
const FAR_JUMP: f64 = 30.0;

/// Smallest ratio of an element's change to a change proportional to the inputs' change, for a value that crosses a
/// boundary.
const BEYOND_SMOOTH: f64 = 30.0;

/// If there are outliers, elements with this multiple of the noise also count as outliers, because in a row that
/// crosses a boundary a few elements hardly change.
const NEAR: f64 = 10.0;

/// Largest share of elements in rows whose noise is far above that of the others, and minimum number of elements with
/// such noise.
const MOST_IN_ROWS: f64 = 0.01;
const LEAST_IN_ROWS: usize = 16;

/// Largest exponent with which the noise of such a row grows with its elements, and smallest ratio of the larger
/// half's elements to the smaller half's that allows an estimate of the exponent. Of 150 matrix products with a row
/// that is 10⁴ times larger, 146 were below that exponent. Of 1,600 rows with noise that grows with the elements, 4
/// were below it.
const GROWTH_IN_ROWS: f64 = 2.0 / 3.0;
const UNLIKE: f64 = 2.0;

/// Allowed jump of a correct kernel, as a multiple of the observed jump.
const JUMP_FACTOR: f64 = 4.0;

/// Smallest change of an outlier, as a share of the typical magnitude.
const LARGE: f64 = 1e-3;

/// Share of integer elements that may be off by one, if a small step of the inputs changes the rounding of
/// some. A value midway between two integers may be rounded either way.
const TIES: f64 = 5e-4;

/// Largest share of integers that fused multiply-add may change, for the change to count as rounding.
const MOST_TIES: f64 = 0.01;

/// Largest step of the inputs, in units in the last place, for which changes of integers count as rounding.
const MOST_STEPS: u32 = 256;

/// Removes the noise of outliers from `noise`, and returns their tolerance. `jumps` is the change of each element if
/// the inputs move by `units`; `typical` is the typical size of the magnitudes.
pub(super) fn part_outliers(
    noise: &mut [f64],
    (units, jumps): (u32, &[f64]),
    (magnitudes, typical): (&[f64], f64),
) -> Option<OutlierTolerance> {
    let most = quantile(noise.to_vec(), 0.9);
    let relative = |noise: f64, magnitude: f64| noise / magnitude.max(f64::MIN_POSITIVE);
    let of_elements = noise.iter().zip(magnitudes).map(|(noise, size)| relative(*noise, *size));
    let most_relative = FAR_RELATIVE * quantile(of_elements.collect(), 0.9);
    let in_rows = are_rows(noise, most, magnitudes);
    // The change for one unit, if an input crosses a boundary.
    let per_unit = |jump: f64| jump / f64::from(units);
    let elements = || noise.iter().zip(jumps).zip(magnitudes);
    let further = |far: f64, far_jump: f64, large: f64| {
        move |((noise, jump), size): ((&f64, &f64), &f64)| {
            let is_far =
                *noise > far * most && (in_rows || relative(*noise, *size) > most_relative);
            let jumps = per_unit(*jump) > f64::max(far_jump * most, BEYOND_SMOOTH * noise)
                && *jump > large
                && relative(per_unit(*jump), *size) > most_relative;
            let of_noise = if is_far { NOISE_FACTOR * noise } else { 0.0 };
            let atol = of_noise.max(if jumps { JUMP_FACTOR * jump } else { 0.0 });
            let factor = if is_far { SHARE_FACTOR } else { JUMP_SHARE_FACTOR };
            (atol > 0.0).then_some((atol, factor))
        }
    };
    let are_some = elements().filter_map(further(FAR, FAR_JUMP, LARGE * typical)).next().is_some();
    if most == 0.0 || !are_some {
        return None;
    }
    let all: Vec<Option<(f64, f64)>> = elements().map(further(NEAR, NEAR, 0.0)).collect();
    let elements = all.len().max(1) as f64;
    let seen = all.iter().flatten().count() as f64 / elements;
    if seen > MOST_SEEN {
        return None;
    }
    let outliers = noise.iter_mut().zip(&all).filter(|(_, further)| further.is_some());
    outliers.for_each(|(noise, _)| *noise = noise.min(most));
    let share = all.iter().flatten().map(|(_, factor)| factor / elements).sum::<f64>();
    let atol = all.iter().flatten().fold(0.0, |most: f64, (atol, _)| most.max(*atol));
    Some(OutlierTolerance { share: share.min(MOST_SHARE), atol })
}

/// Returns whether the elements with large noise belong to few rows with the same noise for all elements, such as one
/// large row of a matrix product. The errors of small elements in such a row are large relative to their size, and a
/// sample may contain none of these elements.
fn are_rows(noise: &[f64], most: f64, magnitudes: &[f64]) -> bool {
    let mut rows: Vec<(f64, f64)> = magnitudes
        .iter()
        .copied()
        .zip(noise.iter().copied())
        .filter(|(_, noise)| *noise > NEAR * most)
        .collect();
    let far = rows.iter().filter(|(_, noise)| *noise > FAR * most).count();
    if far < LEAST_IN_ROWS || rows.len() as f64 > MOST_IN_ROWS * noise.len() as f64 {
        return false;
    }
    rows.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (small, large) = rows.split_at(rows.len() / 2);
    let median = |half: &[(f64, f64)], pick: fn(&(f64, f64)) -> f64| {
        quantile(half.iter().map(pick).collect(), 0.5)
    };
    let sizes = median(large, |row| row.0) / median(small, |row| row.0);
    let noises = median(large, |row| row.1) / median(small, |row| row.1);
    sizes > UNLIKE && noises < sizes.powf(GROWTH_IN_ROWS)
}

impl OutlierTolerance {
    /// Returns a tolerance that allows everything that either tolerance allows.
    pub(super) fn and(self, other: Self) -> Self {
        Self { share: self.share.max(other.share), atol: self.atol.max(other.atol) }
    }
}

/// Returns a tolerance for integers if moving the inputs by a few units changes some of them by one, and none by
/// more. Returns `None` if the integers are exact, or vary between equal runs.
pub(super) fn jumps_by_one(
    dtype: Dtype,
    base: &[u8],
    runs: &[NudgedRun<'_>],
) -> Option<OutlierTolerance> {
    let moved: Vec<&[u8]> = runs
        .iter()
        .filter(|run| (1..=MOST_STEPS).contains(&run.steps))
        .map(|run| run.output)
        .collect();
    let again: Vec<&[u8]> =
        runs.iter().filter(|run| run.steps == 0).map(|run| run.output).collect();
    if changes(dtype, base, &again).iter().any(|change| *change > 0.0) {
        return None;
    }
    let changes = changes(dtype, base, &moved);
    let by_one = changes.iter().all(|change| *change <= 1.0);
    (jumped(&changes) > 0 && by_one).then_some(OutlierTolerance { share: TIES, atol: 1.0 })
}

/// Largest probability that a correct kernel has more ties in one launch than are allowed.
const FALSE_ALARM: f64 = 1e-6;

/// Elements that differ between the results of a reference with and without fused multiply-add, over several
/// sets of inputs.
#[derive(Debug, Clone, Copy)]
pub struct FusionTies {
    compared: usize,
    changed: usize,
    /// Whether every element that differs does so by one.
    by_one: bool,
}

impl FusionTies {
    pub const NONE: Self = Self { compared: 0, changed: 0, by_one: true };

    /// Compares the results for one set of inputs.
    pub fn add(&mut self, dtype: Dtype, fused: &[u8], separate: &[u8]) {
        let changes = changes(dtype, fused, &[separate]);
        self.compared += changes.len();
        self.changed += jumped(&changes);
        self.by_one &= changes.iter().all(|change| *change <= 1.0);
    }

    /// Returns the number of elements that differ.
    pub fn count(self) -> usize {
        self.changed
    }

    /// Returns the tolerance of integers of which some change by one if products and sums are rounded separately.
    /// Returns `None` if the integers are exact, or if other changes occur. `elements` is the number of elements of
    /// one result.
    pub(super) fn tolerance(self, elements: usize) -> Option<OutlierTolerance> {
        let seen = self.changed as f64 / self.compared.max(1) as f64;
        let elements = elements.max(1) as f64;
        let rare = most_by_chance(SHARE_FACTOR * seen * elements) / elements;
        let share = TIES.max(SHARE_FACTOR * seen).max(rare).min(MOST_SHARE);
        let are_ties = seen > 0.0 && self.by_one && seen <= MOST_TIES;
        are_ties.then_some(OutlierTolerance { share, atol: 1.0 })
    }
}

fn jumped(changes: &[f64]) -> usize {
    changes.iter().filter(|change| **change > 0.0).count()
}

/// Returns the number that the count of independent rare events with this mean exceeds with probability
/// [`FALSE_ALARM`] at most (Poisson).
fn most_by_chance(mean: f64) -> f64 {
    let (mut number, mut exactly) = (0.0, (-mean).exp());
    let mut more = 1.0 - exactly;
    while more > FALSE_ALARM {
        number += 1.0;
        exactly *= mean / number;
        more -= exactly;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_elements_with_far_more_noise_are_parted() {
        // One row in fifty has elements that cancel.
        let size = |index: usize| if index.is_multiple_of(50) { 1e-3 } else { 1.0 };
        let magnitudes: Vec<f64> = (0..1000).map(size).collect();
        let quiet = |index: usize| if index.is_multiple_of(50) { 1e-3 } else { 1e-7 };
        let mut noise: Vec<f64> = (0..1000).map(quiet).collect();
        let none = vec![0.0; 1000];
        let found = part_outliers(&mut noise, (256, &none), (&magnitudes, 1.0)).unwrap();
        assert!(
            (found.share - 0.08).abs() < 1e-9 && (found.atol - 0.048).abs() < 1e-9,
            "{found:?}"
        );
        assert!(noise.iter().all(|noise| *noise <= 1e-7));
        // Elements that a step of 256 units carries across a boundary.
        let jumps: Vec<f64> =
            (0..1000).map(|index| if index < 20 { 0.01 } else { 2.4e-5 }).collect();
        let mut noise = vec![1e-7; 1000];
        let found = part_outliers(&mut noise, (256, &jumps), (&magnitudes, 1.0)).unwrap();
        assert!((found.atol - 0.04).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_row_with_far_more_noise_is_parted_whatever_the_size_of_its_elements() {
        let is_of_row = |index: usize| (300..350).contains(&index);
        let size = |index: usize| if is_of_row(index) { (index - 290) as f64 * 200.0 } else { 1.0 };
        let magnitudes: Vec<f64> = (0..10_000).map(size).collect();
        let found = |of_row: &dyn Fn(f64) -> f64| {
            let of = |index: usize| if is_of_row(index) { of_row(size(index)) } else { 1e-7 };
            let mut noise: Vec<f64> = (0..10_000).map(of).collect();
            let found = part_outliers(&mut noise, (256, &[0.0; 10_000]), (&magnitudes, 1.0));
            found.map(|found| (found, quantile(noise, 1.0)))
        };
        let (outliers, left) = found(&|_| 1e-3).unwrap();
        assert!((outliers.share - 0.02).abs() < 1e-9 && (outliers.atol - 0.048).abs() < 1e-9);
        assert!(left <= 1e-7);
        assert!(found(&|size| 1e-7 * size).is_none(), "noise that grows with the elements");
    }

    #[test]
    fn noise_that_grows_with_the_elements_or_is_everywhere_is_none_of_outliers() {
        let magnitudes: Vec<f64> =
            (0..1000).map(|index| f64::from(index).exp2().min(1e12)).collect();
        let mut noise: Vec<f64> = magnitudes.iter().map(|size| 1e-7 * size).collect();
        let jumps: Vec<f64> = magnitudes.iter().map(|size| 256e-7 * size).collect();
        assert!(part_outliers(&mut noise, (256, &jumps), (&magnitudes, 1.0)).is_none());
        let half = |index: usize| if index < 500 { 1e-3 } else { 1e-7 };
        let mut noise: Vec<f64> = (0..1000).map(half).collect();
        assert!(part_outliers(&mut noise, (256, &[0.0; 1000]), (&[1.0; 1000], 1.0)).is_none());
    }

    #[test]
    fn whole_numbers_that_fusion_changes_by_one_are_ties() {
        let base = vec![7u8; 1000];
        let with = |changed: &[(usize, u8)]| {
            let mut bytes = base.clone();
            changed.iter().for_each(|&(at, value)| bytes[at] = value);
            let mut ties = FusionTies::NONE;
            ties.add(Dtype::Uint8, &base, &bytes);
            ties.tolerance(base.len())
        };
        let one = with(&[(3, 8)]).unwrap();
        // Four ties are expected at most, and more than 17 occur less than once in a million times.
        assert_eq!((one.share, one.atol), (0.017, 1.0));
        assert_eq!(with(&[]), None, "no element changes");
        assert_eq!(with(&[(3, 9)]), None, "no tie");
        let many: Vec<(usize, u8)> = (0..11).map(|at| (at, 6)).collect();
        assert_eq!(with(&many), None, "more than ties");
    }

    #[test]
    fn whole_numbers_next_to_a_tie_may_be_off_by_one() {
        let bytes =
            |values: &[i32]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let base = bytes(&[1, 2, 3, 4]);
        let of = |steps: u32, values: &[i32]| (steps, bytes(values));
        let found = |runs: &[(u32, Vec<u8>)]| {
            let runs = runs.iter().map(|(steps, output)| NudgedRun {
                inputs: Dtype::Float32,
                steps: *steps,
                output,
            });
            jumps_by_one(Dtype::Int32, &base, &runs.collect::<Vec<_>>())
        };
        let still = of(1, &[1, 2, 3, 4]);
        let outliers = found(&[still.clone(), of(256, &[1, 2, 4, 4])]).unwrap();
        assert_eq!((outliers.share, outliers.atol), (TIES, 1.0));
        assert_eq!(found(std::slice::from_ref(&still)), None, "nothing moves");
        assert_eq!(found(&[of(256, &[1, 2, 9, 4])]), None, "an index");
        assert_eq!(found(&[still, of(1 << 16, &[2, 2, 3, 4])]), None, "a step that is no rounding");
        assert_eq!(
            found(&[of(256, &[1, 2, 4, 4]), of(0, &[2, 2, 3, 4])]),
            None,
            "it varies by itself"
        );
    }
}
