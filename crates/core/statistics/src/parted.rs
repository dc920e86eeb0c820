//! Detection of kernels in which a few launches do the work of the others. The main function is [`ranked_by`].
//!
//! A median does not change if one launch in ten does the work of all ten. A mean does not decrease
//! if work moves between launches. If the two differ by more than noise explains, the mean is used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stats::{Sorted, mean};

/// Gap between mean and median, relative to the median, that counts as noise even for quiet
/// samples. Devices occasionally delay a launch.
pub(crate) const GAP: f64 = 0.03;

/// Largest gap between mean and median that noise explains, in standard errors.
const ERRORS: f64 = 6.0;

/// Standard error of mean minus median of n normal samples, in σ / √n: √(π/2 − 1), because both
/// estimate the same centre with a correlation of √(2/π).
const NORMAL_ERROR: f64 = 0.755_5;

/// Statistic by which a kernel is ranked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RankedBy {
    /// Median, which a single slow launch does not affect.
    #[default]
    Median,
    /// Mean, because it exceeds the median by more than noise explains: some launches may do the work of others.
    Mean,
}

impl RankedBy {
    /// Returns whether the statistic is the median, which is the default.
    pub fn is_median(&self) -> bool {
        *self == Self::Median
    }
}

/// Returns the statistic that ranks samples in milliseconds. The spread is estimated from the
/// quartiles, which are 1.349 σ apart in a normal distribution. A few launches that do the work do
/// not widen it.
pub fn ranked_by(samples_ms: &[f32]) -> RankedBy {
    if parted_by(samples_ms) > 0.0 { RankedBy::Mean } else { RankedBy::Median }
}

/// Returns the gap between mean and median, relative to the median, or 0 if noise explains it.
pub(crate) fn parted_by(samples: &[f32]) -> f64 {
    let samples = samples.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
    let gap = || {
        let sorted = Sorted::new(&samples)?;
        let median = sorted.median();
        let sigma = (sorted.percentile(75.0) - sorted.percentile(25.0)) / 1.349;
        let noise = ERRORS * NORMAL_ERROR * sigma / (samples.len() as f64).sqrt();
        let gap = mean(&samples)? - median;
        (gap > noise.max(GAP * median)).then(|| gap / median)
    };
    gap().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    fn noisy(n: usize, sd: f64, seed: u64) -> Vec<f32> {
        let mut random = RandomStream::new(seed);
        (0..n).map(|_| (1.0 + sd * random.normal()) as f32).collect()
    }

    #[test]
    fn work_that_a_few_launches_bear_counts() {
        // One launch in ten, and one in fifty, does the work of all.
        for (n, every) in [(20, 10), (100, 10), (1000, 50)] {
            let mut samples = noisy(n, 0.02, 1);
            for (index, sample) in samples.iter_mut().enumerate() {
                *sample *= if index % every == 0 { every as f32 } else { 0.05 };
            }
            assert_eq!(ranked_by(&samples), RankedBy::Mean, "{n}, one in {every}");
        }
    }

    #[test]
    fn noise_does_not() {
        let parted = (0..2000).filter(|&seed| {
            let n = [6, 20, 100, 1000][seed as usize % 4];
            let sd = [0.001, 0.02, 0.1, 0.3][seed as usize / 4 % 4];
            ranked_by(&noisy(n, sd, seed)) == RankedBy::Mean
        });
        assert!(parted.count() <= 2);
        // One late launch among many, and samples too few to rank.
        let mut late = noisy(1000, 0.01, 3);
        late[7] = 20.0;
        assert_eq!(ranked_by(&late), RankedBy::Median);
        assert_eq!(ranked_by(&[]), RankedBy::Median);
        assert_eq!(ranked_by(&[1.0]), RankedBy::Median);
    }

    #[test]
    fn launches_that_are_shorter_than_most_do_not_help() {
        let mut samples = noisy(100, 0.01, 5);
        samples.iter_mut().take(30).for_each(|sample| *sample = 0.01);
        assert_eq!(ranked_by(&samples), RankedBy::Median);
    }
}
