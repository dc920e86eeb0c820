//! Extent of a measurement: warm-up, looks and stopping. The main type is [`StopRule`].

use serde::{Deserialize, Serialize};

/// Maximum number of samples of one measurement.
pub const MAX_TRIALS: u32 = 10_000;
/// Number of samples after which precision is first checked.
pub const FIRST_LOOK: u32 = 20;
/// Relative half-width of the median's interval at which a measurement is precise enough.
pub const HALF_WIDTH: f64 = 0.005;
/// Number of launches whose median is one point of the warm-up.
pub const WARMUP_BATCH: u32 = 5;
/// Number of medians of the warm-up that must agree.
const STABLE_MEDIANS: usize = 3;
/// Largest relative difference of the last medians in a settled warm-up.
const STABLE_WITHIN: f64 = 0.01;

/// Rule for the end of sampling.
///
/// Precision is checked only at fixed sample counts, the looks. A check after every sample would
/// stop at the first lucky run. (With block comparisons checked at 1 % after each of 5 to 60
/// blocks, 6.6 % found a difference that did not exist.)
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StopRule {
    /// Numbers of samples at which precision is checked (the looks), ascending. The last is the
    /// maximum number of samples.
    pub looks: Vec<u32>,
    /// Relative half-width of the median's confidence interval at which to stop. `None` means that
    /// all samples are taken.
    pub half_width: Option<f64>,
    /// Seconds of sampling after which to stop in any case; `None` means no limit.
    pub max_time_s: Option<f64>,
}

impl StopRule {
    /// Creates a rule for exactly `n` samples, 1 to [`MAX_TRIALS`], for callers that request a
    /// number.
    pub fn fixed(n: u32) -> Self {
        Self { looks: vec![n.clamp(1, MAX_TRIALS)], half_width: None, max_time_s: None }
    }

    /// Creates a rule that samples until the median is known to `half_width`, with `min_trials` to
    /// `max_trials` samples (both limited to 1..=[`MAX_TRIALS`]) and at most `max_time_s` seconds.
    pub fn adaptive(half_width: f64, min_trials: u32, max_trials: u32, max_time_s: f64) -> Self {
        Self {
            looks: geometric_looks(min_trials, max_trials),
            half_width: Some(half_width),
            max_time_s: Some(max_time_s),
        }
    }

    /// Returns the number of samples at the first look after `n` samples, or `None` if no look is
    /// left.
    pub fn next_look(&self, n: usize) -> Option<u32> {
        self.looks.iter().copied().find(|look| *look as usize > n)
    }
}

impl Default for StopRule {
    fn default() -> Self {
        Self::adaptive(HALF_WIDTH, FIRST_LOOK, MAX_TRIALS, 2.0)
    }
}

/// Returns looks at `first`, 2·`first`, 4·`first` …, ending with `last`. There are few looks,
/// because each uses part of the error probability.
pub fn geometric_looks(first: u32, last: u32) -> Vec<u32> {
    let last = last.clamp(1, MAX_TRIALS);
    let mut looks: Vec<u32> =
        std::iter::successors(Some(first.clamp(1, last)), |look| look.checked_mul(2))
            .take_while(|look| *look < last)
            .collect();
    looks.push(last);
    looks
}

/// Returns whether the warm-up has settled. The last three medians, of [`WARMUP_BATCH`] launches
/// each, must be within 1 % of their minimum, or within the expected range for a kernel with more
/// noise. It returns false if there are fewer medians, or if one is not positive.
///
/// `spread` is the relative standard deviation of single launches. The median of n normal samples
/// has the standard error 1.253·spread/√n. The range of three of them is below 3.3 standard errors
/// in 95 of 100 cases (the studentised range for three, with many degrees of freedom).
///
/// Callers should also require a minimum time, because times are also stable before the device
/// raises its clock.
pub fn is_stable(medians_ms: &[f64], spread: f64) -> bool {
    let Some(last) = medians_ms.last_chunk::<STABLE_MEDIANS>() else { return false };
    let least = last.iter().copied().fold(f64::INFINITY, f64::min);
    let most = last.iter().copied().fold(0.0, f64::max);
    let error = 1.253 * spread.max(0.0) / f64::from(WARMUP_BATCH).sqrt();
    let within = STABLE_WITHIN.max(3.3 * error);
    last.iter().all(|x| x.is_finite() && *x > 0.0) && most <= least * (1.0 + within)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_double_and_end_at_the_most() {
        assert_eq!(geometric_looks(20, 100), [20, 40, 80, 100]);
        assert_eq!(geometric_looks(20, 80), [20, 40, 80]);
        assert_eq!(geometric_looks(50, 10), [10]);
        assert_eq!(geometric_looks(0, 0), [1]);
        let all = geometric_looks(FIRST_LOOK, u32::MAX);
        assert_eq!((all.len(), all.last()), (10, Some(&MAX_TRIALS)));
        assert_eq!(StopRule::fixed(u32::MAX).looks, [MAX_TRIALS]);
        assert_eq!(StopRule::fixed(7).next_look(6), Some(7));
        assert_eq!(StopRule::fixed(7).next_look(7), None);
    }

    #[test]
    fn stability_is_of_the_last_three() {
        let is_stable = |medians: &[f64]| super::is_stable(medians, 0.001);
        assert!(!is_stable(&[1.0, 1.0]));
        assert!(is_stable(&[5.0, 1.0, 1.009, 1.005]));
        assert!(!is_stable(&[1.0, 1.0, 1.02]));
        assert!(!is_stable(&[0.0, 0.0, 0.0]));
        assert!(!is_stable(&[1.0, f64::NAN, 1.0]));
        // With single launches that vary by 5 %, medians of five may differ by 9 %.
        assert!(super::is_stable(&[1.0, 1.05, 1.0], 0.05));
        assert!(!super::is_stable(&[1.0, 1.1, 1.0], 0.05));
    }
}
