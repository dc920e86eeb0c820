//! Decides whether the samples suffice. The main function is [`decide`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::dependence::median_variance_inflation;
use super::plan::StopRule;
use super::stats::Sorted;

/// Probability that the confidence interval misses the true median when a measurement stops.
const ALPHA: f64 = 0.05;

/// Reason why a measurement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The median has the requested precision.
    Precise,
    /// The requested number of trials is done.
    TrialsDone,
    /// The time limit is reached; the interval is wider than requested.
    TimeBudget,
    /// The maximum number of trials is done; the interval is wider than requested.
    MaxTrials,
}

/// Next step of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Take samples until their number is `next_look`, and decide again.
    Continue {
        /// Number of samples after which to decide again.
        next_look: u32,
    },
    /// End the measurement.
    Stop(StopReason),
}

/// Decides after `samples_ms`, in launch order, that took `elapsed_s` seconds.
///
/// Precision is checked only if the number of samples is one of the looks; time is always checked.
pub fn decide(rule: &StopRule, samples_ms: &[f32], elapsed_s: f64) -> Decision {
    let n = samples_ms.len();
    let at_look = rule.looks.iter().any(|look| *look as usize == n);
    if let Some(target) = rule.half_width
        && at_look
        && half_width(samples_ms, rule.looks.len()).is_some_and(|width| width <= target)
    {
        return Decision::Stop(StopReason::Precise);
    }
    match (rule.next_look(n), rule.half_width) {
        (None, None) => Decision::Stop(StopReason::TrialsDone),
        (None, Some(_)) => Decision::Stop(StopReason::MaxTrials),
        (Some(next_look), _) => match rule.max_time_s {
            Some(limit) if elapsed_s >= limit => Decision::Stop(StopReason::TimeBudget),
            _ => Decision::Continue { next_look },
        },
    }
}

/// Returns half the width of the median's confidence interval divided by the median, at one of
/// `looks` looks, or `None` if there is no such interval.
///
/// The interval at each look misses with probability at most 5 % / `looks` (Bonferroni). The
/// interval at the look that stops therefore misses with probability at most 5 %, however that look
/// is chosen. If successive samples depend on one another, the interval is that of their effective
/// sample size ([`median_variance_inflation`]).
pub fn half_width(samples_ms: &[f32], looks: usize) -> Option<f64> {
    let samples: Vec<f64> = samples_ms.iter().map(|x| f64::from(*x)).collect();
    let sorted = Sorted::new(&samples)?;
    let alpha = ALPHA / looks.max(1) as f64;
    let (low, high) = sorted.median_ci(alpha, median_variance_inflation(&samples))?;
    let median = sorted.median();
    (median > 0.0).then(|| (high - low) / 2.0 / median)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    fn samples(n: usize, sd: f64, phi: f64, seed: u64) -> Vec<f32> {
        let mut random = RandomStream::new(seed);
        let scale = sd * (1.0 - phi * phi).sqrt();
        let mut x = sd * random.normal();
        (0..n)
            .map(|_| {
                x = phi * x + scale * random.normal();
                (1.0 + x) as f32
            })
            .collect()
    }

    /// Takes samples until `decide` ends the measurement. Returns their number and the reason for
    /// stopping.
    fn run(rule: &StopRule, source: &[f32]) -> (usize, StopReason) {
        let mut n = 0;
        loop {
            match decide(rule, &source[..n], 0.0) {
                Decision::Continue { next_look } => n = next_look as usize,
                Decision::Stop(reason) => return (n, reason),
            }
        }
    }

    #[test]
    fn a_fixed_number_is_honoured() {
        for n in [1, 5, 10_000] {
            assert_eq!(
                run(&StopRule::fixed(n), &[1.0; 10_000]),
                (n as usize, StopReason::TrialsDone)
            );
        }
        let short = decide(&StopRule::fixed(10), &[1.0; 9], 1e9);
        assert_eq!(short, Decision::Continue { next_look: 10 });
    }

    #[test]
    fn quiet_samples_stop_at_the_first_look_and_noisy_ones_at_the_last() {
        let rule = StopRule::adaptive(0.005, 20, 1000, 10.0);
        assert_eq!(run(&rule, &samples(1000, 0.001, 0.0, 1)), (20, StopReason::Precise));
        assert_eq!(run(&rule, &samples(1000, 0.3, 0.0, 1)), (1000, StopReason::MaxTrials));
        let (n, reason) = run(&rule, &samples(1000, 0.02, 0.0, 1));
        assert!(reason == StopReason::Precise && n > 20 && n < 1000, "{n} {reason:?}");
    }

    #[test]
    fn dependence_costs_samples() {
        let rule = StopRule::adaptive(0.005, 20, 10_000, 10.0);
        let total = |phi| -> usize {
            (0..10).map(|seed| run(&rule, &samples(10_000, 0.02, phi, seed)).0).sum()
        };
        assert!(total(0.9) > 3 * total(0.0), "{} {}", total(0.9), total(0.0));
    }

    #[test]
    fn nothing_is_decided_between_looks_but_time() {
        let rule = StopRule::adaptive(0.005, 20, 1000, 10.0);
        assert_eq!(decide(&rule, &[1.0; 19], 0.0), Decision::Continue { next_look: 20 });
        assert_eq!(decide(&rule, &[1.0; 21], 0.0), Decision::Continue { next_look: 40 });
        assert_eq!(decide(&rule, &[1.0; 21], 10.0), Decision::Stop(StopReason::TimeBudget));
        assert_eq!(decide(&rule, &[], 0.0), Decision::Continue { next_look: 20 });
        assert_eq!(decide(&rule, &[f32::NAN; 20], 0.0), Decision::Continue { next_look: 40 });
    }

    #[test]
    fn the_interval_at_the_look_that_stops_covers_the_median() {
        let rule = StopRule::adaptive(0.005, 20, 2000, 10.0);
        let (runs, mut missed) = (300, 0);
        for seed in 0..runs {
            let source = samples(2000, 0.02, 0.0, seed);
            let (n, _) = run(&rule, &source);
            let taken: Vec<f64> = source[..n].iter().map(|x| f64::from(*x)).collect();
            let sorted = Sorted::new(&taken).expect("finite");
            let alpha = ALPHA / rule.looks.len() as f64;
            let (low, high) =
                sorted.median_ci(alpha, median_variance_inflation(&taken)).expect("enough");
            missed += i32::from(low > 1.0 || high < 1.0);
        }
        assert!(f64::from(missed) <= 0.05 * runs as f64, "{missed} of {runs}");
    }
}
