//! Spread of the expected values.

use crate::compare::Comparable;
use crate::pieces;

/// Moments of the finite values of all seeds together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    /// Population standard deviation (divisor n) of the values.
    pub(super) std: f64,
    /// Mean of the magnitudes.
    pub(super) mean_magnitude: f64,
}

impl Spread {
    /// Computes the moments in two passes: the mean, then the deviations from it. Values beyond 1e154, whose squares
    /// exceed the range of binary64, give an infinite deviation, which no tolerance reaches.
    pub(super) fn of<T: Comparable>(seeds: &[&[u8]]) -> Self {
        let [count, sum, magnitude] = sums::<T, 3>(seeds, |x| [1.0, x, x.abs()]);
        let count = count.max(1.0);
        let mean = sum / count;
        let [squares] = sums::<T, 1>(seeds, |x| [(x - mean) * (x - mean)]);
        let variance = squares / count;
        let std = if variance.is_nan() { f64::INFINITY } else { variance.sqrt() };
        Self { std, mean_magnitude: magnitude / count }
    }
}

/// Returns sums over all finite elements, in an order that does not depend on the number of threads.
fn sums<T: Comparable, const N: usize>(
    seeds: &[&[u8]],
    terms: impl Fn(f64) -> [f64; N] + Sync,
) -> [f64; N] {
    let add = |mut total: [f64; N], more: [f64; N]| {
        total.iter_mut().zip(more).for_each(|(total, more)| *total += more);
        total
    };
    let chunk = |chunk: &[u8]| {
        let values = chunk.chunks_exact(T::SIZE).map(|bytes| T::read(bytes).to_f64());
        values.filter(|x| x.is_finite()).map(&terms).fold([0.0; N], add)
    };
    seeds.iter().flat_map(|bytes| pieces::of_one(bytes, T::SIZE, &chunk)).fold([0.0; N], add)
}
