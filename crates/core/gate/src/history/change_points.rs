//! Finds changes of level in a series by E-divisive means. The main function is [`splits`].
//!
//! Matteson and James, "A nonparametric approach for multiple change point analysis of multivariate
//! data", JASA 109 (2014). The score of a split is the energy distance of its two sides, Q =
//! mn/(m+n)·Ê with exponent 1. The best split of all segments is kept if random permutations within
//! the segments have an equally good split with a probability below [`SIGNIFICANCE`]. This is
//! repeated until a split is not kept. As in other uses of the method on performance histories, a
//! segment is split into two parts, not three. Permutations come from a fixed seed, so the same
//! series always has the same result.
//!
//! The test assumes that the points of a segment are exchangeable. If successive runs on a machine
//! drift together, the points are not exchangeable, and the test finds too many changes.

use warpgauge_statistics::random::RandomStream;

/// Number of latest points that are analysed; the work grows with its square.
pub const WINDOW: usize = 200;

/// Minimum number of points on each side of a change. It determines how late the newest change is
/// detected.
pub const MIN_SEGMENT: usize = 4;

/// Number of permutations per split.
pub const PERMUTATIONS: usize = 499;

/// A split is kept if its p-value is below this value.
pub const SIGNIFICANCE: f64 = 0.01;

/// Seed of the permutations.
const SEED: u64 = 20_140_301;

/// A change of level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesSplit {
    /// Index of the first value at the new level.
    pub at: usize,
    /// p-value of the split: share of the permutations, including the series itself, whose best
    /// split is at least as good.
    pub p_value: f64,
}

/// The best split of a segment.
#[derive(Debug, Clone, Copy)]
struct Best {
    score: f64,
    at: usize,
}

/// Returns the changes of level in a series, by position. Only the last [`WINDOW`] values are
/// analysed. All values must be finite.
pub fn splits(values: &[f64]) -> Vec<SeriesSplit> {
    let offset = values.len().saturating_sub(WINDOW);
    let values = &values[offset..];
    let mut random = RandomStream::new(SEED);
    let mut bounds = vec![0, values.len()];
    let mut found = Vec::new();
    while let Some(best) = best_of(values, &bounds) {
        let Some(p_value) = permutation_p(values, &bounds, best.score, &mut random) else { break };
        found.push(SeriesSplit { at: offset + best.at, p_value });
        bounds.push(best.at);
        bounds.sort_unstable();
    }
    found.sort_by_key(|split| split.at);
    found
}

/// Returns the best split of all segments between bounds. Returns `None` if no segment is long
/// enough, or if the values of each segment are equal.
fn best_of(values: &[f64], bounds: &[usize]) -> Option<Best> {
    let segments = bounds.windows(2).filter_map(|ends| {
        let best = best_split(&values[ends[0]..ends[1]])?;
        Some(Best { at: ends[0] + best.at, ..best })
    });
    segments.max_by(|a, b| a.score.total_cmp(&b.score)).filter(|best| best.score > 0.0)
}

/// Returns the split of one segment with the largest scaled energy distance.
fn best_split(segment: &[f64]) -> Option<Best> {
    let n = segment.len();
    if n < 2 * MIN_SEGMENT {
        return None;
    }
    let distances = |index: usize, range: std::ops::Range<usize>| {
        segment[range].iter().map(|other| (other - segment[index]).abs()).sum::<f64>()
    };
    // The sums are over pairs of points: both left, both right, and one on each side. Each step
    // moves a point from right to left.
    let total = (0..n).map(|index| distances(index, index + 1..n)).sum::<f64>();
    let (mut left, mut right) = (0.0, total);
    let mut best: Option<Best> = None;
    for at in 1..=n - MIN_SEGMENT {
        left += distances(at - 1, 0..at - 1);
        right -= distances(at - 1, at..n);
        if at < MIN_SEGMENT {
            continue;
        }
        let between = total - left - right;
        let (m, k) = (at as f64, (n - at) as f64);
        let pairs = |size: f64| size * (size - 1.0) / 2.0;
        let energy = 2.0 * between / (m * k) - left / pairs(m) - right / pairs(k);
        let score = m * k / (m + k) * energy;
        if best.is_none_or(|best| score > best.score) {
            best = Some(Best { score, at });
        }
    }
    best
}

/// Returns the p-value of the best split if it is below [`SIGNIFICANCE`]. The test stops as soon as
/// the p-value cannot be below it.
fn permutation_p(
    values: &[f64],
    bounds: &[usize],
    score: f64,
    random: &mut RandomStream,
) -> Option<f64> {
    let p = |reached: usize| (reached + 1) as f64 / (PERMUTATIONS + 1) as f64;
    let mut shuffled = values.to_vec();
    let mut reached = 0;
    for _ in 0..PERMUTATIONS {
        for ends in bounds.windows(2) {
            shuffle(&mut shuffled[ends[0]..ends[1]], random);
        }
        // Sums in a different order differ in their last digits.
        let as_good = |best: Best| best.score >= score * (1.0 - 1e-9);
        reached += usize::from(best_of(&shuffled, bounds).is_some_and(as_good));
        if p(reached) >= SIGNIFICANCE {
            return None;
        }
    }
    Some(p(reached))
}

/// Shuffles values (Fisher and Yates).
fn shuffle(values: &mut [f64], random: &mut RandomStream) {
    for last in (1..values.len()).rev() {
        let other = (random.uniform() * (last + 1) as f64) as usize;
        values.swap(last, other.min(last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns noise of standard deviation `sd` around levels, each with its length.
    fn stepped(levels: &[(f64, usize)], sd: f64, seed: u64) -> Vec<f64> {
        let mut random = RandomStream::new(seed);
        let level = |&(level, length): &(f64, usize)| std::iter::repeat_n(level, length);
        let levels = levels.iter().flat_map(level).collect::<Vec<_>>();
        levels.into_iter().map(|level| level + sd * random.normal()).collect()
    }

    fn places(values: &[f64]) -> Vec<usize> {
        splits(values).iter().map(|split| split.at).collect()
    }

    /// Computes Q of a split from its definition, as plain sums.
    fn score(segment: &[f64], at: usize) -> f64 {
        let mean = |a: &[f64], b: &[f64]| {
            let all = a.iter().flat_map(|x| b.iter().map(move |y| (x - y).abs()));
            all.sum::<f64>()
        };
        let (x, y) = segment.split_at(at);
        let (m, k) = (x.len() as f64, y.len() as f64);
        let within = |z: &[f64], n: f64| mean(z, z) / 2.0 / (n * (n - 1.0) / 2.0);
        m * k / (m + k) * (2.0 * mean(x, y) / (m * k) - within(x, m) - within(y, k))
    }

    #[test]
    fn the_running_sums_are_those_of_the_definition() {
        let values = stepped(&[(0.0, 9), (1.0, 14)], 0.7, 5);
        let best = best_split(&values).unwrap();
        let expected = (MIN_SEGMENT..=values.len() - MIN_SEGMENT)
            .map(|at| (score(&values, at), at))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap();
        assert_eq!(best.at, expected.1);
        assert!((best.score - expected.0).abs() < 1e-12 * expected.0.abs());
    }

    #[test]
    fn known_changes_are_found_where_they_are() {
        // The levels are five standard deviations apart, as 2.5 % if runs differ by 0.5 %.
        assert_eq!(places(&stepped(&[(0.0, 30), (5.0, 30)], 1.0, 1)), [30]);
        let three = stepped(&[(0.0, 25), (6.0, 20), (1.0, 30), (7.0, 10)], 1.0, 2);
        let found = places(&three);
        assert_eq!(found.len(), 3, "{found:?}");
        for (found, at) in found.iter().zip([25, 45, 75]) {
            assert!(found.abs_diff(at) <= 1, "{found} {at}");
        }
        // The newest change is detected after [`MIN_SEGMENT`] points.
        assert_eq!(places(&stepped(&[(0.0, 40), (8.0, MIN_SEGMENT)], 1.0, 3)), [40]);
        assert!(places(&stepped(&[(0.0, 40), (8.0, 2)], 1.0, 3)).is_empty());
        // A single outlier is not a change.
        let mut spike = stepped(&[(0.0, 60)], 1.0, 4);
        spike[30] += 50.0;
        assert!(places(&spike).is_empty());
    }

    #[test]
    fn changes_are_found_often_and_near() {
        let (mut found, mut near) = (0, 0);
        for seed in 0..60 {
            let values = stepped(&[(0.0, 20), (2.5, 20)], 1.0, 1000 + seed);
            let places = places(&values);
            found += usize::from(!places.is_empty());
            near += usize::from(places.iter().any(|at| at.abs_diff(20) <= 2));
        }
        assert!(found >= 57 && near >= 54, "found {found} of 60, near {near}");
    }

    #[test]
    fn few_false_alarms() {
        // Each of three shapes of noise has 150 series. At 1 %, 4.5 of 450 false alarms are
        // expected; 12 or more have a probability of 0.2 %.
        let mut alarms = 0;
        for seed in 0..150 {
            let mut random = RandomStream::new(50_000 + seed);
            let normal = (0..40).map(|_| random.normal()).collect::<Vec<_>>();
            let skewed = (0..40).map(|_| random.normal().exp()).collect::<Vec<_>>();
            let heavy = (0..40).map(|_| random.normal() / random.uniform()).collect::<Vec<_>>();
            for values in [normal, skewed, heavy] {
                alarms += usize::from(!splits(&values).is_empty());
            }
        }
        assert!(alarms < 12, "{alarms} of 450");
    }

    #[test]
    fn what_bears_no_change() {
        assert!(splits(&[]).is_empty());
        assert!(splits(&[1.0; 100]).is_empty());
        assert!(splits(&[1.0, 1.0, 1.0, 2.0, 2.0, 2.0]).is_empty(), "too short");
    }

    #[test]
    fn only_the_latest_values_are_looked_at() {
        let mut values = stepped(&[(0.0, 50), (9.0, WINDOW)], 1.0, 6);
        assert!(places(&values).is_empty());
        values.extend(stepped(&[(0.0, 20)], 1.0, 7));
        assert_eq!(places(&values), [50 + WINDOW]);
        assert_eq!(splits(&values), splits(&values));
    }
}
