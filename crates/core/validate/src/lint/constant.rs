//! Search for a constant that passes as the whole output.

use crate::ResolvedTolerance;
use crate::compare::{Comparable, judge};
use crate::pieces;

/// Number of elements that are sampled for a guess, if some mismatches are allowed.
const SAMPLE: usize = 4096;

/// Returns the number of elements of `expected` that the constant matches.
pub(super) fn matches_of_constant<T: Comparable>(
    value: T,
    expected: &[u8],
    tolerance: &ResolvedTolerance,
) -> u64 {
    let count = |chunk: &[u8]| {
        let matches = |bytes: &&[u8]| judge(value, T::read(bytes), tolerance).matches;
        chunk.chunks_exact(T::SIZE).filter(matches).count() as u64
    };
    pieces::of_one(expected, T::SIZE, &count).into_iter().sum()
}

/// Returns a constant that matches as many elements as possible. If no mismatch is allowed, it is within the
/// tolerance of all elements, or `None` if there is no such constant. Otherwise it matches as many elements of a
/// sample as possible. The caller must still count its matches.
pub(super) fn best_constant<T: Comparable>(
    seeds: &[&[u8]],
    tolerance: &ResolvedTolerance,
) -> Option<f64> {
    let interval = |bytes: &[u8]| {
        let value = T::read(bytes).to_f64();
        let reach = tolerance.atol + tolerance.rtol * value.abs();
        (value - reach, value + reach)
    };
    if tolerance.required_matched_ratio < 1.0 {
        return most_accepted(sample::<T>(seeds).map(interval).collect());
    }
    let everywhere = (f64::NEG_INFINITY, f64::INFINITY);
    let both = |a: (f64, f64), b: (f64, f64)| (a.0.max(b.0), a.1.min(b.1));
    let (low, high) = seeds
        .iter()
        .map(|expected| {
            let chunk =
                |chunk: &[u8]| chunk.chunks_exact(T::SIZE).map(interval).fold(everywhere, both);
            pieces::of_one(expected, T::SIZE, &chunk).into_iter().fold(everywhere, both)
        })
        .fold(everywhere, both);
    let fits = low <= high && low.is_finite() && high.is_finite();
    fits.then(|| low + (high - low) / 2.0)
}

/// Returns evenly spaced elements of all seeds.
fn sample<'a, T: Comparable>(seeds: &'a [&'a [u8]]) -> impl Iterator<Item = &'a [u8]> {
    let most = (SAMPLE / seeds.len().max(1)).max(1);
    seeds.iter().flat_map(move |expected| {
        let elements = expected.len() / T::SIZE;
        let step = elements.div_ceil(most).max(1);
        (0..elements).step_by(step).map(move |at| &expected[at * T::SIZE..(at + 1) * T::SIZE])
    })
}

/// Returns a number that lies in as many of the intervals as possible.
fn most_accepted(mut intervals: Vec<(f64, f64)>) -> Option<f64> {
    intervals.retain(|(low, high)| low.is_finite() && high.is_finite());
    // Starts are sorted before ends at the same value, because intervals are closed.
    let mut ends: Vec<(f64, bool)> =
        intervals.iter().flat_map(|(low, high)| [(*low, false), (*high, true)]).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut open, mut most, mut best) = (0i64, 0i64, None);
    for window in ends.windows(2) {
        open += if window[0].1 { -1 } else { 1 };
        if open > most {
            most = open;
            best = Some(window[0].0 + (window[1].0 - window[0].0) / 2.0);
        }
    }
    best
}
