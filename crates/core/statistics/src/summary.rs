//! Summary of one series of samples for a report. The main type is [`Summary`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::dependence::median_variance_inflation;
use super::modes::{TwoModes, two_modes};
use super::stats::{Sorted, coefficient_of_variation, lag1_autocorrelation, mean, sample_std};

/// Statistics of the samples, milliseconds. No sample is dropped as an outlier: the median and its interval are
/// robust, and the tail is part of the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Number of samples.
    pub n: u32,
    /// Arithmetic mean of the samples.
    pub mean: f64,
    /// Sample standard deviation (n − 1). Absent if there are fewer than 2 samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub std: Option<f64>,
    /// Smallest of the samples, milliseconds.
    pub min: f64,
    /// Largest of the samples, milliseconds.
    pub max: f64,
    /// Median of the samples.
    pub median: f64,
    /// Lower end of the order-statistic 95 % confidence interval of the median. Absent if there are fewer than 6
    /// (effective) samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ci_low: Option<f64>,
    /// Upper end of the order-statistic 95 % confidence interval of the median. Absent if there are fewer than 6
    /// (effective) samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ci_high: Option<f64>,
    /// 5th percentile. All percentiles use linear interpolation (Hyndman–Fan type 7).
    pub p5: f64,
    /// 25th percentile of the samples.
    pub p25: f64,
    /// 75th percentile of the samples.
    pub p75: f64,
    /// 95th percentile of the samples.
    pub p95: f64,
    /// 99th percentile of the samples.
    pub p99: f64,
    /// Coefficient of variation: standard deviation divided by mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cv: Option<f64>,
    /// Autocorrelation of successive samples, −1 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag1_autocorrelation: Option<f64>,
    /// Effective sample size: number of independent samples that would contain the same information about the median.
    /// Absent unless successive samples depend on one another. The confidence interval accounts for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_n: Option<u32>,
    /// Two modes of the samples. Absent if their distribution has one mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modes: Option<TwoModes>,
}

impl Summary {
    /// Summarises samples, in milliseconds and in launch order. Returns `None` if there are no samples, or if one is
    /// NaN or infinite.
    pub fn new(samples_ms: &[f32]) -> Option<Self> {
        let samples: Vec<f64> = samples_ms.iter().map(|x| f64::from(*x)).collect();
        let sorted = Sorted::new(&samples)?;
        let inflation = median_variance_inflation(&samples);
        let interval = sorted.median_ci(0.05, inflation);
        let n = u32::try_from(samples.len()).ok()?;
        Some(Self {
            n,
            mean: mean(&samples)?,
            std: sample_std(&samples),
            min: sorted.min(),
            max: sorted.max(),
            median: sorted.median(),
            median_ci_low: interval.map(|(low, _)| low),
            median_ci_high: interval.map(|(_, high)| high),
            p5: sorted.percentile(5.0),
            p25: sorted.percentile(25.0),
            p75: sorted.percentile(75.0),
            p95: sorted.percentile(95.0),
            p99: sorted.percentile(99.0),
            cv: coefficient_of_variation(&samples),
            lag1_autocorrelation: lag1_autocorrelation(&samples),
            effective_n: (inflation > 1.0).then(|| (f64::from(n) / inflation).floor() as u32),
            modes: two_modes(&sorted),
        })
    }

    /// Returns half the width of the median's 95 % confidence interval, divided by the median.
    pub fn half_width(&self) -> Option<f64> {
        let width = self.median_ci_high? - self.median_ci_low?;
        (self.median > 0.0).then(|| width / 2.0 / self.median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    #[test]
    fn a_known_series() {
        let samples: Vec<f32> = (1..=100).map(|i| i as f32).collect();
        let summary = Summary::new(&samples).expect("samples");
        assert_eq!((summary.n, summary.min, summary.max), (100, 1.0, 100.0));
        assert_eq!((summary.mean, summary.median), (50.5, 50.5));
        assert!((summary.p5 - 5.95).abs() < 1e-9 && (summary.p99 - 99.01).abs() < 1e-9);
        assert!((summary.p25 - 25.75).abs() < 1e-9 && (summary.p75 - 75.25).abs() < 1e-9);
        // A ramp has the strongest dependence possible, so the interval is wide.
        assert!(summary.effective_n.expect("dependent") < 10, "{summary:?}");
        assert!(summary.lag1_autocorrelation.expect("a series") > 0.9);
        assert_eq!(summary.modes, None);
    }

    #[test]
    fn what_few_samples_cannot_tell_is_absent() {
        assert_eq!(Summary::new(&[]), None);
        assert_eq!(Summary::new(&[1.0, f32::NAN]), None);
        let one = Summary::new(&[2.0]).expect("a sample");
        assert_eq!(
            (one.std, one.cv, one.median_ci_low, one.half_width()),
            (None, None, None, None)
        );
        let json = serde_json::to_value(&one).expect("JSON");
        assert!(json.get("std").is_none() && json.get("modes").is_none(), "{json}");
    }

    #[test]
    fn the_interval_covers_a_dependent_median() {
        // First-order autoregression with φ = 0.7 around 1.0. An interval for independent samples
        // would miss the median in a third of the cases.
        let (runs, mut covered) = (300, 0);
        for seed in 0..runs {
            let mut random = RandomStream::new(seed);
            let mut x = random.normal() * 0.014;
            let samples: Vec<f32> = (0..500)
                .map(|_| {
                    x = 0.7 * x + 0.01 * random.normal();
                    (1.0 + x) as f32
                })
                .collect();
            let summary = Summary::new(&samples).expect("samples");
            let (low, high) = (summary.median_ci_low.unwrap(), summary.median_ci_high.unwrap());
            covered += i32::from(low <= 1.0 && 1.0 <= high);
        }
        assert!(f64::from(covered) >= 0.92 * runs as f64, "{covered} of {runs}");
    }
}
