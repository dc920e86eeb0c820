//! Errors of a comparison: extremes, moments, and their distribution in units in the last place.

use crate::UlpDistribution;
use warpgauge_tensor::element::Element;

/// Number of bins. Bin 0 counts equal pairs; bin k counts pairs that are 2^(k−1) to 2^k − 1 units
/// apart.
pub(super) const BINS: usize = 65;

/// Largest distance that is reported. Readers of reports may support only signed integers.
const FARTHEST: u64 = i64::MAX as u64;

/// Returns the position of a floating-point number among all of its type, in steps between neighbours. Zeros are 0,
/// the smallest positive number is 1, and its negative is −1. It uses the bytes, because every format here consists
/// of a sign and a magnitude, and magnitudes are ordered.
#[inline(always)]
pub(crate) fn ordinal<T: Element>(bytes: &[u8]) -> i64 {
    let magnitude = magnitude::<T>(bytes) as i64;
    let negative = bytes[T::SIZE - 1] & 0x80 != 0;
    if negative { -magnitude } else { magnitude }
}

/// Returns the bits of an element without its sign.
#[inline(always)]
pub(super) fn magnitude<T: Element>(bytes: &[u8]) -> u64 {
    let mut raw = [0; 8];
    raw[..T::SIZE].copy_from_slice(&bytes[..T::SIZE]);
    u64::from_le_bytes(raw) & (u64::MAX >> (65 - 8 * T::SIZE))
}

/// Returns the histogram bin of a distance in units in the last place.
#[inline(always)]
pub(super) fn bin(ulps: u64) -> usize {
    (u64::BITS - ulps.leading_zeros()) as usize
}

/// Errors of the finite pairs seen so far.
#[derive(Debug, Clone)]
pub(crate) struct Errors {
    pairs: u64,
    max_abs: f64,
    max_rel: f64,
    sum: f64,
    sum_of_squares: f64,
    max_ulp: u64,
    bins: [u64; BINS],
}

impl Default for Errors {
    fn default() -> Self {
        let (max_abs, max_rel, sum, sum_of_squares) = (0.0, 0.0, 0.0, 0.0);
        Self { pairs: 0, max_abs, max_rel, sum, sum_of_squares, max_ulp: 0, bins: [0; BINS] }
    }
}

impl Errors {
    /// Returns the errors of `pairs` pairs of equal finite elements.
    pub(super) fn none(pairs: u64) -> Self {
        let mut errors = Self { pairs, ..Self::default() };
        errors.bins[0] = pairs;
        errors
    }

    /// Creates errors from sums. `max_abs` and `max_rel` must be finite.
    pub(super) fn summed(pairs: u64, max_abs: f64, max_rel: f64, sums: (f64, f64)) -> Self {
        let (sum, sum_of_squares) = sums;
        Self { pairs, max_abs, max_rel, sum, sum_of_squares, ..Self::default() }
    }

    /// Adds a pair of finite elements. `error` is |actual − expected|.
    pub(super) fn add(&mut self, error: f64, expected: f64) {
        self.pairs += 1;
        self.max_abs = self.max_abs.max(error);
        if expected != 0.0 {
            self.max_rel = self.max_rel.max((error / expected.abs()).min(f64::MAX));
        }
        self.sum += error;
        self.sum_of_squares += error * error;
    }

    /// Adds a pair's distance in units in the last place.
    pub(super) fn add_ulp(&mut self, ulps: u64) {
        self.max_ulp = self.max_ulp.max(ulps);
        self.bins[bin(ulps)] += 1;
    }

    /// Adds a histogram of distances and the largest of these distances.
    pub(super) fn add_bins(&mut self, counts: &[u32; BINS], max_ulp: u64) {
        self.max_ulp = self.max_ulp.max(max_ulp);
        self.bins.iter_mut().zip(counts).for_each(|(bin, count)| *bin += u64::from(*count));
    }

    /// Adds another part of the same tensor. The order in which parts are added must not depend on
    /// threads.
    pub(super) fn merge(&mut self, other: &Self) {
        self.pairs += other.pairs;
        self.max_abs = self.max_abs.max(other.max_abs);
        self.max_rel = self.max_rel.max(other.max_rel);
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
        self.max_ulp = self.max_ulp.max(other.max_ulp);
        self.bins.iter_mut().zip(&other.bins).for_each(|(bin, count)| *bin += count);
    }

    pub(super) fn max_abs(&self) -> f64 {
        self.max_abs
    }

    pub(super) fn max_rel(&self) -> f64 {
        self.max_rel
    }

    /// Returns the mean error, or the largest error if the sum overflows binary64.
    pub(super) fn mean_abs(&self) -> f64 {
        (self.sum / self.pairs.max(1) as f64).min(self.max_abs)
    }

    /// Returns the root of the mean square. Squares of errors below 1e-154 or above 1e154 exceed the range of
    /// binary64. The result is therefore clamped to the range from the mean to the largest error, in which it always
    /// lies.
    pub(super) fn rms(&self) -> f64 {
        let root = (self.sum_of_squares / self.pairs.max(1) as f64).sqrt();
        root.clamp(self.mean_abs(), self.max_abs)
    }

    /// Returns the distribution of the errors, in units in the last place. `None` if no pair of elements is finite.
    pub(super) fn ulp_distribution(&self) -> Option<UlpDistribution> {
        let farthest = self.max_ulp.min(FARTHEST);
        let used = self.bins.iter().rposition(|&count| count > 0)? + 1;
        // The result is the largest distance that the quantile's bin can hold.
        let quantile = |share: f64| {
            let wanted = (share * self.pairs as f64).ceil() as u64;
            let mut seen = 0;
            let holds = |count: &u64| {
                seen += count;
                seen >= wanted
            };
            let bin = self.bins.iter().position(holds).unwrap_or(BINS - 1);
            let largest = if bin == 0 { 0 } else { u64::MAX >> (64 - bin) };
            largest.min(farthest)
        };
        Some(UlpDistribution {
            max: farthest,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            histogram: self.bins[..used].to_vec(),
        })
    }
}
