//! Mean and confidence interval of block log-ratios. The main type is [`Estimate`].

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::dependence::{DEPENDENT_ABOVE, mean_variance_inflation};
use crate::stats::{lag1_autocorrelation, mean, sample_std};

/// Minimum number of groups that merging of dependent blocks must leave.
const MIN_GROUPS: usize = 8;

/// Inflation of the variance above which the groups contain too little information about the mean:
/// that of a first-order autoregression with ρ = 0.6.
const MAX_INFLATION: f64 = 4.0;

/// Estimate of the true log-ratio from block log-ratios in time order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub mean: f64,
    /// Standard deviation of the groups' means.
    pub sd: f64,
    pub groups: u32,
    /// Number of blocks per group. It is 1 unless successive blocks depend on one another.
    pub merged: u32,
    /// Autocorrelation of successive groups after merging.
    pub lag1: Option<f64>,
    /// Factor by which the remaining dependence of groups increases the variance of the mean.
    pub inflation: f64,
    /// Hodges–Lehmann estimate of the centre of the log-ratios.
    pub hodges_lehmann: f64,
}

impl Estimate {
    /// Estimates from block log-ratios. Returns `None` for fewer than 2 blocks.
    ///
    /// While the lag-1 autocorrelation exceeds 0.2, adjacent groups are merged into their mean,
    /// provided that at least 8 groups remain (method of batch means: Law, *Simulation Modeling and
    /// Analysis*, 5th ed., §9.5.3). An odd last block joins the group before it. Remaining
    /// dependence widens the interval ([`mean_variance_inflation`]). In 4 % of comparisons with 16
    /// independent blocks, the blocks look dependent however they are merged, so a refusal of a
    /// verdict would only cost time.
    pub fn new(ln_ratios: &[f64]) -> Option<Self> {
        let mut merged = 1;
        let mut groups = ln_ratios.to_vec();
        let mut lag1 = lag1_autocorrelation(&groups);
        while lag1.is_some_and(|r| r > DEPENDENT_ABOVE)
            && ln_ratios.len() / (2 * merged) >= MIN_GROUPS
        {
            merged *= 2;
            groups = merge(ln_ratios, merged);
            lag1 = lag1_autocorrelation(&groups);
        }
        Some(Self {
            mean: mean(&groups)?,
            sd: sample_std(&groups)?,
            groups: u32::try_from(groups.len()).ok()?,
            merged: u32::try_from(merged).ok()?,
            lag1,
            inflation: mean_variance_inflation(&groups),
            hodges_lehmann: hodges_lehmann(ln_ratios)?,
        })
    }

    /// Returns whether successive groups depend on one another so much that no interval is
    /// reliable.
    pub fn dependent(&self) -> bool {
        self.inflation > MAX_INFLATION
    }

    /// Returns the standard error of the mean.
    fn error(&self) -> f64 {
        self.sd * (self.inflation / f64::from(self.groups)).sqrt()
    }

    fn freedom(&self) -> f64 {
        f64::from(self.groups) - 1.0
    }

    /// Returns the lower and upper confidence bound, each missed with probability `alpha`
    /// (Student's t).
    pub fn bounds(&self, alpha: f64) -> (f64, f64) {
        let half = if self.sd > 0.0 {
            t_quantile(1.0 - alpha, self.freedom()) * self.error()
        } else {
            0.0
        };
        (self.mean - half, self.mean + half)
    }

    /// Returns the one-sided p-value of the hypothesis "the true value is at most `limit`".
    pub fn p_above(&self, limit: f64) -> f64 {
        if self.sd <= 0.0 {
            return if self.mean > limit { 0.0 } else { 1.0 };
        }
        let t = (self.mean - limit) / self.error();
        // The survival function preserves small p-values, which cancellation in 1 − cdf would lose.
        StudentsT::new(0.0, 1.0, self.freedom()).map_or(1.0, |d| d.sf(t))
    }

    /// Returns the one-sided p-value of the hypothesis "the true value is at least `limit`".
    pub fn p_below(&self, limit: f64) -> f64 {
        Self { mean: -self.mean, ..*self }.p_above(-limit)
    }

    /// Returns the least true relative difference that is detected with probability 95 %:
    /// τ + (t₁₋α + t₀.₉₅)·s/√n. The formula follows the sample size of the one-sided t-test (Cohen,
    /// *Statistical Power Analysis*, 2nd ed., §2.4, with t for the normal quantiles).
    pub fn detectable(&self, margin: f64, alpha: f64) -> f64 {
        if self.sd <= 0.0 {
            return margin;
        }
        let quantiles = t_quantile(1.0 - alpha, self.freedom()) + t_quantile(0.95, self.freedom());
        margin + quantiles * self.error()
    }
}

/// Returns the means of groups of `size` adjacent values; the remainder joins the last group.
fn merge(values: &[f64], size: usize) -> Vec<f64> {
    let groups = values.len() / size;
    (0..groups)
        .map(|g| {
            let end = if g + 1 == groups { values.len() } else { (g + 1) * size };
            let group = &values[g * size..end];
            group.iter().sum::<f64>() / group.len() as f64
        })
        .collect()
}

/// Returns a quantile of Student's t. It is infinite if `p` is not inside (0, 1) or `freedom` is
/// not positive. An interval from an unknown quantile then excludes nothing.
pub fn t_quantile(p: f64, freedom: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, freedom) {
        Ok(t) if p > 0.0 && p < 1.0 => t.inverse_cdf(p),
        _ => f64::INFINITY,
    }
}

/// Returns the median of the means of all pairs, including each value with itself (Hodges, Lehmann,
/// "Estimates of location based on rank tests", Ann. Math. Statist. 34, 1963), or `None` without
/// values. Unlike the mean, it is robust against outliers. The running time is quadratic in the
/// number of values, which callers bound.
pub fn hodges_lehmann(values: &[f64]) -> Option<f64> {
    let mut means: Vec<f64> = values
        .iter()
        .enumerate()
        .flat_map(|(i, x)| values[i..].iter().map(move |y| (x + y) / 2.0))
        .collect();
    if means.is_empty() {
        return None;
    }
    let middle = means.len() / 2;
    let even = means.len().is_multiple_of(2);
    let (below, upper, _) = means.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    let lower = if even { below.iter().copied().fold(f64::NEG_INFINITY, f64::max) } else { upper };
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_student() {
        // Published tables of Student's t.
        for (p, freedom, expected) in [
            (0.95, 15.0, 1.75305),
            (0.99, 15.0, 2.60248),
            (0.9975, 15.0, 3.28604),
            (0.995, 7.0, 3.49948),
            (0.9975, 120.0, 2.85986),
            (0.975, 1.0, 12.7062),
        ] {
            let actual = t_quantile(p, freedom);
            assert!((actual - expected).abs() < 2e-5 * expected, "{p} {freedom}: {actual}");
        }
        assert_eq!(t_quantile(1.0, 5.0), f64::INFINITY);
        assert_eq!(t_quantile(0.9, 0.0), f64::INFINITY);
    }

    fn of(sd: f64, groups: u32) -> Estimate {
        Estimate {
            mean: 0.0,
            sd,
            groups,
            merged: 1,
            lag1: None,
            inflation: 1.0,
            hodges_lehmann: 0.0,
        }
    }

    #[test]
    fn the_table_of_detectable_effects() {
        // Margin 0.5 %, α = 1 % at one look: in percent, for s = 0.5, 1, 2 %.
        for (s, row) in [
            (0.5, [1.04, 0.87, 0.75, 0.68]),
            (1.0, [1.59, 1.23, 1.01, 0.85]),
            (2.0, [2.68, 1.97, 1.51, 1.21]),
        ] {
            for (n, expected) in [16, 32, 64, 128].into_iter().zip(row) {
                let actual = 100.0 * of(s / 100.0, n).detectable(0.005, 0.01);
                assert!((actual - expected).abs() < 0.0075, "{s} {n}: {actual}");
            }
        }
    }

    #[test]
    fn bounds_and_p_values_agree() {
        let estimate = Estimate { mean: 0.02, ..of(0.01, 16) };
        let (low, high) = estimate.bounds(0.0025);
        assert!((low - (0.02 - 3.28604 * 0.0025)).abs() < 1e-6, "{low}");
        assert!((high - (0.02 + 3.28604 * 0.0025)).abs() < 1e-6, "{high}");
        assert!((estimate.p_above(low) - 0.0025).abs() < 1e-8);
        assert!((estimate.p_below(high) - 0.0025).abs() < 1e-8);
        let exact = Estimate { mean: 0.02, ..of(0.0, 16) };
        assert_eq!((exact.bounds(0.01), exact.p_above(0.01)), ((0.02, 0.02), 0.0));
        assert_eq!((exact.p_above(0.03), exact.p_below(0.03)), (1.0, 0.0));
    }

    #[test]
    fn dependent_blocks_are_merged() {
        // Runs of eight equal values; with groups of 4, every other group equals the one before.
        let values: Vec<f64> = (0..49).map(|i| if (i / 8) % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let estimate = Estimate::new(&values).expect("values");
        assert_eq!((estimate.merged, estimate.groups), (4, 12), "{estimate:?}");
        assert!(!estimate.dependent());
        assert_eq!(merge(&[1.0, 3.0, 5.0, 7.0, 9.0], 2), [2.0, 7.0]);
        assert_eq!(Estimate::new(&[1.0]), None);
        // A ramp stays dependent after merging.
        let ramp: Vec<f64> = (0..64).map(f64::from).collect();
        let estimate = Estimate::new(&ramp).expect("values");
        assert!(estimate.dependent() && estimate.groups == 8, "{estimate:?}");
    }

    #[test]
    fn hodges_lehmann_of_known_values() {
        // Walsh averages of 1, 2, 10: 1, 1.5, 2, 5.5, 6, 10.
        assert_eq!(hodges_lehmann(&[10.0, 1.0, 2.0]), Some(3.75));
        assert_eq!(hodges_lehmann(&[3.0]), Some(3.0));
        assert_eq!(hodges_lehmann(&[]), None);
    }
}
