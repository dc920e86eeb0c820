//! Statistics of samples, without a clock and without I/O. The main types are [`RuntimeStats`] and
//! [`Sorted`].
//!
//! Samples are finite; times are in milliseconds. A value that requires more samples is `None`.

use super::parted::{RankedBy, ranked_by};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, DiscreteCDF};

/// Statistics of launch times, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuntimeStats {
    /// Arithmetic mean of the times.
    pub mean: f64,
    /// Sample standard deviation (n − 1); 0 for one sample.
    pub std: f64,
    /// Shortest of the launch times, milliseconds.
    pub min: f64,
    /// Longest of the launch times, milliseconds.
    pub max: f64,
    /// Median of the launch times, milliseconds.
    pub median: f64,
    /// 95th percentile, linear interpolation (Hyndman–Fan type 7).
    pub percentile_95: f64,
    /// 99th percentile, linear interpolation (Hyndman–Fan type 7).
    pub percentile_99: f64,
    /// Number of samples.
    pub samples: u32,
    /// Lower end of the order-statistic 95 % confidence interval of the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ci_low: Option<f64>,
    /// Upper end of the order-statistic 95 % confidence interval of the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ci_high: Option<f64>,
    /// Statistic by which the kernel is ranked. Absent if it is the median.
    #[serde(default, skip_serializing_if = "RankedBy::is_median")]
    pub ranked_by: RankedBy,
}

impl RuntimeStats {
    /// Returns the time that ranks the kernel, in milliseconds.
    pub fn ranked_ms(&self) -> f64 {
        match self.ranked_by {
            RankedBy::Median => self.median,
            RankedBy::Mean => self.mean,
        }
    }
}

/// Returns the arithmetic mean, or `None` if there are no samples.
///
/// It is summed with Neumaier's compensation ("Rundungsfehleranalyse einiger Verfahren zur
/// Summation endlicher Summen", ZAMM 54, 1974): the error does not grow with the number of samples.
pub fn mean(samples: &[f64]) -> Option<f64> {
    let n = samples.len();
    (n > 0).then(|| compensated_sum(samples.iter().copied()) / n as f64)
}

/// Returns the sample standard deviation (divisor n − 1, Bessel's correction), or `None` for fewer
/// than 2 samples.
///
/// It takes two passes and sums squares of differences from the mean, to avoid cancellation.
pub fn sample_std(samples: &[f64]) -> Option<f64> {
    if samples.len() < 2 {
        return None;
    }
    let centre = mean(samples)?;
    let squares = compensated_sum(samples.iter().map(|x| (x - centre) * (x - centre)));
    Some((squares / (samples.len() - 1) as f64).sqrt())
}

/// Returns the coefficient of variation, standard deviation over mean. Returns `None` for fewer
/// than 2 samples, or if the mean is not positive, because the ratio is then meaningless.
pub fn coefficient_of_variation(samples: &[f64]) -> Option<f64> {
    let centre = mean(samples).filter(|centre| *centre > 0.0)?;
    Some(sample_std(samples)? / centre)
}

/// Returns the autocorrelation at lag 1, r₁ = Σ(xₜ − m)(xₜ₊₁ − m) / Σ(xₜ − m)² (Box, Jenkins,
/// Reinsel, *Time Series Analysis*, §2.1.5), in [−1, 1]. Returns `None` for fewer than 3 samples,
/// or if all are equal.
///
/// `samples` are in the order in which they were taken.
pub fn lag1_autocorrelation(samples: &[f64]) -> Option<f64> {
    if samples.len() < 3 {
        return None;
    }
    let centre = mean(samples)?;
    let total = compensated_sum(samples.iter().map(|x| (x - centre) * (x - centre)));
    let products = samples.windows(2).map(|pair| (pair[0] - centre) * (pair[1] - centre));
    (total > 0.0).then(|| compensated_sum(products) / total)
}

/// Samples in ascending order: at least one, all finite.
#[derive(Debug, Clone, PartialEq)]
pub struct Sorted(Vec<f64>);

impl Sorted {
    /// Sorts a copy of the samples. Returns `None` if there are no samples, or if one is NaN or
    /// infinite.
    pub fn new(samples: &[f64]) -> Option<Self> {
        if samples.is_empty() || !samples.iter().all(|x| x.is_finite()) {
            return None;
        }
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Some(Self(sorted))
    }

    pub fn min(&self) -> f64 {
        self.0[0]
    }

    pub fn max(&self) -> f64 {
        self.0[self.0.len() - 1]
    }

    /// Returns the median: the middle sample, or the mean of the two middle ones.
    pub fn median(&self) -> f64 {
        self.percentile(50.0)
    }

    /// Returns percentile `p`, limited to 0–100, by linear interpolation between order statistics:
    /// type 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages", The American
    /// Statistician 50(4), 1996. This is the default of numpy and R.
    pub fn percentile(&self, p: f64) -> f64 {
        let position = (self.0.len() - 1) as f64 * p.clamp(0.0, 100.0) / 100.0;
        let below = position.floor() as usize;
        let above = (below + 1).min(self.0.len() - 1);
        let (low, high) = (self.0[below], self.0[above]);
        low + (position - below as f64) * (high - low)
    }

    /// Returns a distribution-free confidence interval of the median with at least 95 % coverage.
    /// Returns `None` for fewer than 6 samples, because even their whole range has less coverage.
    /// The samples must be independent; see [`Sorted::median_ci`].
    pub fn median_ci95(&self) -> Option<(f64, f64)> {
        self.median_ci(0.05, 1.0)
    }

    /// Returns a distribution-free confidence interval that misses the median with probability at
    /// most `alpha`. Returns `None` if even the whole range of the samples misses it more often.
    ///
    /// The interval extends from the l-th smallest to the l-th largest sample, for the largest l
    /// whose coverage 1 − 2·P(B ≤ l − 1), with B binomial (n, ½), is at least 1 − `alpha` (Conover,
    /// *Practical Nonparametric Statistics*, 3rd ed., §3.2). This holds for independent samples.
    /// `inflation` ≥ 1 is the factor by which dependence inflates the variance of the median. The
    /// ranks are then those of n / `inflation` samples (rounded down), stretched outwards to n
    /// samples.
    pub fn median_ci(&self, alpha: f64, inflation: f64) -> Option<(f64, f64)> {
        let n = self.0.len();
        let effective = ((n as f64 / inflation.max(1.0)).floor() as usize).clamp(1, n);
        let rank = median_ci_rank(effective, alpha)?;
        // Ranks are stretched in positions 0..=n−1; the lower end is rounded down, so the interval
        // only grows.
        let stretch = if effective > 1 { (n - 1) as f64 / (effective - 1) as f64 } else { 0.0 };
        let low = ((rank - 1) as f64 * stretch).floor() as usize;
        Some((self.0[low], self.0[n - 1 - low]))
    }

    /// Returns the samples in ascending order.
    pub fn as_slice(&self) -> &[f64] {
        &self.0
    }
}

/// Returns the rank, from 1, of the lower end of the interval of [`Sorted::median_ci`] among `n`
/// independent samples, or `None` if there is no interval.
fn median_ci_rank(n: usize, alpha: f64) -> Option<usize> {
    let binomial = Binomial::new(0.5, n as u64).ok()?;
    // The tail grows with l, so bisection finds the largest l that fits: `fits` holds up to `low`
    // and fails from `high` on.
    let fits = |l: usize| l == 0 || binomial.cdf(l as u64 - 1) <= alpha / 2.0;
    let (mut low, mut high) = (0, n / 2 + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low > 0).then_some(low)
}

/// Returns the statistics of a report from launch times in milliseconds. Returns `None` if there
/// are no samples, or if one is NaN or infinite. The standard deviation of one sample is reported
/// as 0. For fewer than 6 samples there is no confidence interval.
pub fn runtime_stats(samples: &[f32]) -> Option<RuntimeStats> {
    let ranked_by = ranked_by(samples);
    let samples: Vec<f64> = samples.iter().map(|x| f64::from(*x)).collect();
    let sorted = Sorted::new(&samples)?;
    let interval = sorted.median_ci95();
    Some(RuntimeStats {
        mean: mean(&samples)?,
        std: sample_std(&samples).unwrap_or(0.0),
        min: sorted.min(),
        max: sorted.max(),
        median: sorted.median(),
        percentile_95: sorted.percentile(95.0),
        percentile_99: sorted.percentile(99.0),
        samples: u32::try_from(samples.len()).ok()?,
        median_ci_low: interval.map(|(low, _)| low),
        median_ci_high: interval.map(|(_, high)| high),
        ranked_by,
    })
}

/// Returns the sum of the values, with Neumaier's compensation of rounding errors.
pub(super) fn compensated_sum(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
    for value in values {
        let next = sum + value;
        lost += if sum.abs() >= value.abs() { (sum - next) + value } else { (value - next) + sum };
        sum = next;
    }
    sum + lost
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEN: [f64; 10] = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0];

    fn close(actual: f64, expected: f64) {
        assert!(
            (actual - expected).abs() <= 1e-12 * expected.abs().max(1.0),
            "{actual} {expected}"
        );
    }

    fn sorted(samples: &[f64]) -> Sorted {
        Sorted::new(samples).expect("finite samples")
    }

    #[test]
    fn fixed_values() {
        // Σ = 39; Σ(x − 3.9)² = 207 − 10·3.9² = 54.9.
        close(mean(&TEN).unwrap(), 3.9);
        close(sample_std(&TEN).unwrap(), (54.9_f64 / 9.0).sqrt());
        close(coefficient_of_variation(&TEN).unwrap(), (54.9_f64 / 9.0).sqrt() / 3.9);
        let s = sorted(&TEN);
        assert_eq!((s.min(), s.max()), (1.0, 9.0));
        // Sorted: 1 1 2 3 3 4 5 5 6 9; numpy.percentile gives the same.
        close(s.median(), 3.5);
        close(s.percentile(25.0), 2.25);
        close(s.percentile(95.0), 6.0 + 0.55 * 3.0);
        close(s.percentile(99.0), 6.0 + 0.91 * 3.0);
        assert_eq!(s.percentile(0.0), 1.0);
        assert_eq!(s.percentile(100.0), 9.0);
    }

    #[test]
    fn lag1_of_known_series() {
        // Differences −2 −1 0 1 2: products 2 0 0 2, squares 10.
        close(lag1_autocorrelation(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap(), 0.4);
        // Alternating ±1: three products of −1, squares 4.
        close(lag1_autocorrelation(&[1.0, -1.0, 1.0, -1.0]).unwrap(), -0.75);
        assert_eq!(lag1_autocorrelation(&[2.0; 5]), None);
        assert_eq!(lag1_autocorrelation(&[1.0, 2.0]), None);
    }

    #[test]
    fn compensation_keeps_what_naive_summation_loses() {
        assert_eq!(compensated_sum([1.0, 1e100, 1.0, -1e100].into_iter()), 2.0);
        // A naive variance would lose all its digits at such a large offset.
        let shifted: Vec<f64> = [4.0, 7.0, 13.0, 16.0].iter().map(|x| x + 1e9).collect();
        close(sample_std(&shifted).unwrap(), 30.0_f64.sqrt());
    }

    #[test]
    fn too_few_samples_are_said_to_be_too_few() {
        assert_eq!(mean(&[]), None);
        assert_eq!(sample_std(&[1.0]), None);
        assert_eq!(coefficient_of_variation(&[-1.0, 1.0]), None);
        assert_eq!(Sorted::new(&[]), None);
        assert_eq!(Sorted::new(&[1.0, f64::NAN]), None);
        assert_eq!(sorted(&[1.0, 2.0, 3.0, 4.0, 5.0]).median_ci95(), None);
        assert_eq!(runtime_stats(&[]), None);
        assert_eq!(runtime_stats(&[1.0, f32::INFINITY]), None);
    }

    #[test]
    fn ranks_of_the_median_interval() {
        // Ranks (from 1) of the published tables of order-statistic intervals at 95 %.
        let table = [
            (6, 1),
            (8, 1),
            (9, 2),
            (10, 2),
            (12, 3),
            (15, 4),
            (20, 6),
            (25, 8),
            (50, 18),
            (100, 40),
        ];
        for (n, rank) in table {
            let ranks: Vec<f64> = (1..=n).map(f64::from).collect();
            let (low, high) = sorted(&ranks).median_ci95().expect("enough samples");
            assert_eq!((low, high), (f64::from(rank), f64::from(n + 1 - rank)), "n = {n}");
        }
    }

    #[test]
    fn a_stricter_level_or_dependence_widens_the_interval() {
        let ranks: Vec<f64> = (1..=100).map(f64::from).collect();
        let s = sorted(&ranks);
        // 1 − 2·P(B ≤ 36) ≥ 0.99 > 1 − 2·P(B ≤ 37) for B binomial (100, ½).
        assert_eq!(s.median_ci(0.01, 1.0), Some((37.0, 64.0)));
        // Half as informative: rank 18 of 50, stretched: ⌊17 · 99/49⌋ = 34.
        assert_eq!(s.median_ci(0.05, 2.0), Some((35.0, 66.0)));
        assert_eq!(s.median_ci(0.05, 1e9), None);
        assert_eq!(s.median_ci(0.0, 1.0), None);
    }

    #[test]
    fn the_report_of_one_and_of_six_samples() {
        let one = runtime_stats(&[0.5]).unwrap();
        assert_eq!((one.mean, one.std, one.median, one.samples), (0.5, 0.0, 0.5, 1));
        assert_eq!((one.percentile_99, one.median_ci_low), (0.5, None));
        let six = runtime_stats(&[6.0, 5.0, 4.0, 3.0, 2.0, 1.0]).unwrap();
        assert_eq!((six.median_ci_low, six.median_ci_high), (Some(1.0), Some(6.0)));
        assert_eq!((six.min, six.max, six.median, six.samples), (1.0, 6.0, 3.5, 6));
    }

    /// Returns the exact coverage of ranks `low..=high` among `n`, summed term by term in
    /// logarithms.
    fn coverage(n: usize, low: usize) -> f64 {
        let ln_choose =
            |k: usize| -> f64 { (1..=k).map(|i| ((n - k + i) as f64 / i as f64).ln()).sum() };
        let tail: f64 = (0..low).map(|k| (ln_choose(k) - n as f64 * 2.0_f64.ln()).exp()).sum();
        1.0 - 2.0 * tail
    }

    proptest! {
        #[test]
        fn order_and_bounds(samples in prop::collection::vec(1e-4..1e4_f64, 1..200)) {
            let s = sorted(&samples);
            prop_assert!(s.min() <= s.median() && s.median() <= s.max());
            prop_assert!(s.percentile(95.0) <= s.percentile(99.0));
            prop_assert!(s.percentile(99.0) <= s.max());
            let m = mean(&samples).unwrap();
            prop_assert!(m >= s.min() * (1.0 - 1e-12) && m <= s.max() * (1.0 + 1e-12));
            if let Some(r) = lag1_autocorrelation(&samples) {
                prop_assert!(r.abs() <= 1.0);
            }
        }

        #[test]
        fn percentiles_are_monotone_in_p(
            samples in prop::collection::vec(-1e3..1e3_f64, 1..50),
            a in 0.0..100.0_f64,
            b in 0.0..100.0_f64,
        ) {
            let s = sorted(&samples);
            prop_assert!(s.percentile(f64::min(a, b)) <= s.percentile(f64::max(a, b)) + 1e-9);
        }

        #[test]
        fn shift_and_scale(
            samples in prop::collection::vec(0.0..100.0_f64, 2..100),
            by in 0.0..100.0_f64,
            times in 0.5..4.0_f64,
        ) {
            let moved: Vec<f64> = samples.iter().map(|x| x * times + by).collect();
            let (s, t) = (sample_std(&samples).unwrap(), sample_std(&moved).unwrap());
            prop_assert!((t - s * times).abs() <= 1e-9 * (1.0 + t));
            let (m, k) = (sorted(&samples).median(), sorted(&moved).median());
            prop_assert!((k - (m * times + by)).abs() <= 1e-9 * (1.0 + k.abs()));
        }

        #[test]
        fn the_interval_covers_95_percent_and_is_the_narrowest_that_does(n in 1..3000_usize) {
            let ranks: Vec<f64> = (1..=n).map(|i| i as f64).collect();
            match sorted(&ranks).median_ci95() {
                None => prop_assert!(n < 6),
                Some((low, high)) => {
                    let rank = low as usize;
                    prop_assert_eq!(high as usize, n + 1 - rank);
                    prop_assert!(coverage(n, rank) >= 0.95 - 1e-9);
                    prop_assert!(rank + 1 > n / 2 || coverage(n, rank + 1) < 0.95 + 1e-9);
                }
            }
        }

        #[test]
        fn a_report_of_any_samples_is_consistent(
            samples in prop::collection::vec(1e-3..1e3_f32, 1..120)
        ) {
            let stats = runtime_stats(&samples).unwrap();
            prop_assert_eq!(stats.samples as usize, samples.len());
            prop_assert!(stats.std >= 0.0);
            prop_assert_eq!(stats.median_ci_low.is_some(), samples.len() >= 6);
            if let (Some(low), Some(high)) = (stats.median_ci_low, stats.median_ci_high) {
                prop_assert!(low <= stats.median && stats.median <= high);
            }
        }
    }
}
