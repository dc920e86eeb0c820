//! Joins the comparisons of a tensor's parts.

use super::super::{
    Comparison, MAX_LISTED_MISMATCHES, Mismatch, ResolvedTolerance, UlpDistribution,
};
use super::errors::Errors;
use super::{MismatchExtent, accepted};
use warpgauge_tensor::shape::unravel;

/// Differences that were counted on the device, over all elements of a tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CountedErrors {
    pub elements: u64,
    /// Number of pairs of finite elements.
    pub pairs: u64,
    /// Number of pairs of elements that match.
    pub matched: u64,
    /// Number of pairs that do not match, but are within the tolerance of outliers.
    pub near: u64,
    /// Number of pairs that do not match, and whose actual value is not finite.
    pub non_finite: u64,
    /// Number of pairs that match, and whose actual value is not finite.
    pub non_finite_matched: u64,
    /// Largest |actual − expected| over the finite pairs.
    pub max_abs: f64,
    /// Largest |actual − expected| / |expected| where expected ≠ 0.
    pub max_rel: f64,
    /// Sum of |actual − expected| over the finite pairs.
    pub sum: f64,
    /// Sum of |actual − expected|² over the finite pairs.
    pub sum_of_squares: f64,
}

impl CountedErrors {
    /// Creates a comparison, without distances in units in the last place. `examples` are some elements that do not
    /// match.
    pub fn compared(self, tolerance: &ResolvedTolerance, examples: Vec<Mismatch>) -> Comparison {
        let (passed, outliers) = accepted((self.matched, self.near), self.elements, tolerance);
        let sums = (self.sum, self.sum_of_squares);
        let errors = Errors::summed(self.pairs, self.max_abs, self.max_rel, sums);
        Comparison {
            passed,
            elements: self.elements,
            matched: self.matched,
            non_finite: self.non_finite,
            non_finite_matched: self.non_finite_matched,
            tied: 0,
            half_precision: false,
            outliers,
            near: self.near,
            extent: MismatchExtent::default(),
            pattern: None,
            mismatch_map: None,
            unwritten: 0,
            max_abs_error: self.max_abs,
            max_rel_error: self.max_rel,
            mean_abs_error: errors.mean_abs(),
            rms_error: errors.rms(),
            ulp: None,
            tolerance: *tolerance,
            first_mismatches: examples,
        }
    }
}

/// Converts mismatches of a part that begins at element `first` to indices of the whole tensor.
pub fn placed(mismatches: &[Mismatch], first: u64, shape: &[u64]) -> Vec<Mismatch> {
    let placed = |mismatch: &Mismatch| Mismatch {
        index: unravel(first + mismatch.index.first().copied().unwrap_or(0), shape),
        ..mismatch.clone()
    };
    mismatches.iter().map(placed).collect()
}

/// The joined comparison of a tensor's parts. Each part has one dimension, and parts are added in the order of the
/// elements.
#[derive(Debug)]
pub struct JoinedComparison<'a> {
    shape: &'a [u64],
    joined: Option<Comparison>,
}

impl<'a> JoinedComparison<'a> {
    /// Creates a comparison for a tensor of this shape, to which no part has been added.
    pub fn new(shape: &'a [u64]) -> Self {
        Self { shape, joined: None }
    }

    /// Adds the comparison of the next part.
    pub fn add(&mut self, part: Comparison) {
        let before = self.joined.as_ref().map_or(0, |joined| joined.elements);
        let mut mismatches = placed(&part.first_mismatches, before, self.shape);
        let Some(joined) = &mut self.joined else {
            // A part in half precision says nothing about the other parts. `refuse_half` decides for the whole
            // tensor.
            let part = Comparison { half_precision: false, ..part };
            let extent = part.extent.clone().flat();
            // The map of a part is not one of the whole.
            let (first_mismatches, mismatch_map) = (mismatches, None);
            self.joined = Some(Comparison { first_mismatches, mismatch_map, extent, ..part });
            return;
        };
        let weights = [joined.elements as f64, part.elements as f64];
        let mean = |a: f64, b: f64| (a * weights[0] + b * weights[1]) / (weights[0] + weights[1]);
        joined.mean_abs_error = mean(joined.mean_abs_error, part.mean_abs_error);
        joined.rms_error = mean(joined.rms_error.powi(2), part.rms_error.powi(2)).sqrt();
        joined.max_abs_error = joined.max_abs_error.max(part.max_abs_error);
        joined.max_rel_error = joined.max_rel_error.max(part.max_rel_error);
        joined.elements += part.elements;
        joined.matched += part.matched;
        joined.non_finite += part.non_finite;
        joined.non_finite_matched += part.non_finite_matched;
        joined.near += part.near;
        joined.extent.join(&part.extent.flat(), before);
        joined.ulp = match (joined.ulp.take(), part.ulp) {
            (Some(one), Some(other)) => Some(one.and(other)),
            (one, other) => one.or(other),
        };
        let room = MAX_LISTED_MISMATCHES.saturating_sub(joined.first_mismatches.len());
        mismatches.truncate(room);
        joined.first_mismatches.append(&mut mismatches);
    }

    /// Returns the joined comparison, or `None` if there was no part.
    pub fn joined(self) -> Option<Comparison> {
        let mut joined = self.joined?;
        (joined.passed, joined.outliers) =
            accepted((joined.matched, joined.near), joined.elements, &joined.tolerance);
        joined.pattern = joined.extent.pattern(self.shape, joined.elements);
        Some(joined)
    }
}

impl UlpDistribution {
    /// Returns the distribution of the distances of both parts together.
    fn and(mut self, other: Self) -> Self {
        self.max = self.max.max(other.max);
        self.histogram.resize(self.histogram.len().max(other.histogram.len()), 0);
        self.histogram.iter_mut().zip(other.histogram).for_each(|(count, more)| *count += more);
        let all: u64 = self.histogram.iter().sum();
        // The result is the largest distance that the quantile's bin can hold.
        let quantile = |share: f64| {
            let wanted = (share * all as f64).ceil() as u64;
            let mut seen = 0;
            let bin = self.histogram.iter().position(|count| {
                seen += count;
                seen >= wanted
            });
            let largest = |bin: usize| if bin == 0 { 0 } else { u64::MAX >> (64 - bin.min(64)) };
            bin.map_or(0, largest).min(self.max)
        };
        (self.p50, self.p90, self.p99) = (quantile(0.5), quantile(0.9), quantile(0.99));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::compare;
    use super::*;
    use crate::{OutlierTolerance, ToleranceBasis, resolve};
    use warpgauge_tensor::Dtype;

    #[test]
    fn parts_say_what_the_whole_does() {
        let values = |scale: f32| {
            let value =
                |index: u32| (index as f32).sin() * scale + (index % 7) as f32 * 1e-3 * scale;
            (0..6000).flat_map(|index| value(index).to_le_bytes()).collect::<Vec<u8>>()
        };
        let (expected, mut actual) = (values(1.0), values(1.00001));
        for wrong in [100, 2500, 5999] {
            actual[4 * wrong..][..4].copy_from_slice(&9f32.to_le_bytes());
        }
        for outliers in [None, Some(OutlierTolerance { share: 0.001, atol: 20.0 })] {
            let tolerance =
                ResolvedTolerance { outliers, ..resolve(None, Dtype::Float32, &expected) };
            let whole = compare(Dtype::Float32, &[60, 100], &actual, &expected, None, &tolerance);
            let mut parts = JoinedComparison::new(&[60, 100]);
            for (actual, expected) in actual.chunks(4 * 1024).zip(expected.chunks(4 * 1024)) {
                let count = [actual.len() as u64 / 4];
                parts.add(compare(Dtype::Float32, &count, actual, expected, None, &tolerance));
            }
            let mut joined = parts.joined().unwrap();
            assert!((joined.mean_abs_error / whole.mean_abs_error - 1.0).abs() < 1e-9);
            assert!((joined.rms_error / whole.rms_error - 1.0).abs() < 1e-9);
            (joined.mean_abs_error, joined.rms_error) = (whole.mean_abs_error, whole.rms_error);
            joined.extent = whole.extent.clone();
            assert_eq!(joined.mismatch_map, None);
            assert_eq!(joined, whole);
            assert_eq!(joined.passed, outliers.is_some());
            assert_eq!(joined.first_mismatches[1].index, [25, 0]);
        }
        assert!(JoinedComparison::new(&[0]).joined().is_none());
    }

    #[test]
    fn half_precision_is_decided_for_the_whole() {
        let expected: Vec<u8> =
            (0..64).flat_map(|at| (at as f32 * 0.37).sin().to_le_bytes()).collect();
        let in_half = |bytes: &[u8]| {
            let value = f32::from_le_bytes(bytes.try_into().unwrap());
            half::f16::from_f32(value).to_f32().to_le_bytes()
        };
        let actual: Vec<u8> = expected.chunks(4).flat_map(in_half).collect();
        let basis = ToleranceBasis::InnerRounding;
        let tolerance =
            ResolvedTolerance { basis, atol: 1e-3, ..resolve(None, Dtype::Float32, &expected) };
        // Only the first part is in half precision.
        let mut parts = JoinedComparison::new(&[128]);
        for part in [&actual, &expected] {
            parts.add(compare(Dtype::Float32, &[64], part, &expected, None, &tolerance));
        }
        let mut joined = parts.joined().unwrap();
        joined.refuse_half(Dtype::Float32, &expected, &expected);
        assert!(joined.passed && !joined.half_precision);
        joined.refuse_half(Dtype::Float32, &actual, &expected);
        assert!(!joined.passed && joined.half_precision);
    }
}
