//! Loss of information about the median when samples depend on one another. The main function is
//! [`median_variance_inflation`].

use super::stats::{Sorted, compensated_sum};

/// Lag-1 autocorrelation above which samples count as dependent.
pub const DEPENDENT_ABOVE: f64 = 0.2;

/// Window of Sokal's method: autocorrelations are summed up to a lag of this multiple of the sum so
/// far.
const WINDOW: f64 = 5.0;

/// Returns the factor by which dependence inflates the variance of the median of `samples`, in the
/// order in which they were taken. It is 1 unless the lag-1 autocorrelation exceeds
/// [`DEPENDENT_ABOVE`]. With a larger factor, n samples contain as much information as n / factor
/// independent samples.
///
/// The variance of the sample median of a stationary series is that of independent samples times τ
/// = 1 + 2·Σρₖ. Here ρₖ is not the autocorrelation of the samples, but that of the side of the
/// median on which they lie (Sen, "Asymptotic normality of sample quantiles for m-dependent
/// processes", Ann. Math. Statist. 39, 1968). This also makes the estimate robust, because a spike
/// changes only one sign. The sum ends at the first lag ≥ 5 τ (Sokal, "Monte Carlo Methods in
/// Statistical Mechanics", 1996, §3). It is at least (1 + ρ₁) / (1 − ρ₁), the value that ρ₁ implies
/// for a first-order autoregression, which a short series cannot disprove.
pub fn median_variance_inflation(samples: &[f64]) -> f64 {
    let Some(sorted) = Sorted::new(samples) else { return 1.0 };
    let median = sorted.median();
    let sides: Vec<f64> = samples
        .iter()
        .map(|x| match x.total_cmp(&median) {
            std::cmp::Ordering::Less => -1.0,
            std::cmp::Ordering::Equal => 0.0,
            std::cmp::Ordering::Greater => 1.0,
        })
        .collect();
    mean_variance_inflation(&sides)
}

/// Returns the factor by which dependence inflates the variance of the mean of a series, from the
/// autocorrelation of its values.
pub fn mean_variance_inflation(series: &[f64]) -> f64 {
    let n = series.len();
    let centre = compensated_sum(series.iter().copied()) / n as f64;
    let centred: Vec<f64> = series.iter().map(|x| x - centre).collect();
    let total: f64 = centred.iter().map(|x| x * x).sum();
    if n < 3 || total <= 0.0 {
        return 1.0;
    }
    let rho = |lag: usize| -> f64 {
        centred.iter().zip(&centred[lag..]).map(|(x, y)| x * y).sum::<f64>() / total
    };
    let first = rho(1);
    if first <= DEPENDENT_ABOVE {
        return 1.0;
    }
    let mut tau = 1.0 + 2.0 * first;
    for lag in 2..n / 2 {
        if lag as f64 >= WINDOW * tau {
            break;
        }
        tau += 2.0 * rho(lag);
    }
    // Every series that is not constant has ρ₁ < 1.
    tau.max((1.0 + first) / (1.0 - first)).clamp(1.0, n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    /// Returns the mean inflation over seeded first-order autoregressions.
    fn of_autoregression(phi: f64, n: usize) -> f64 {
        let runs = 40;
        let mut total = 0.0;
        for seed in 0..runs {
            let mut random = RandomStream::new(seed);
            let mut x = 0.0;
            let samples: Vec<f64> = (0..n)
                .map(|_| {
                    x = phi * x + random.normal();
                    x
                })
                .collect();
            total += median_variance_inflation(&samples);
        }
        total / runs as f64
    }

    #[test]
    fn independent_samples_are_not_inflated() {
        assert_eq!(of_autoregression(0.0, 1000), 1.0);
        assert_eq!(median_variance_inflation(&[]), 1.0);
        assert_eq!(median_variance_inflation(&[1.0; 50]), 1.0);
        assert_eq!(median_variance_inflation(&[1.0, f64::NAN]), 1.0);
    }

    #[test]
    fn dependence_is_measured() {
        // The sides have ρₖ = (2/π)·asin φᵏ, so τ = 2.31 for φ = 0.5 and 13.5 for φ = 0.9.
        let (half, strong) = (of_autoregression(0.5, 4000), of_autoregression(0.9, 4000));
        assert!((half - 2.31).abs() < 0.25, "{half}");
        assert!((strong - 13.5).abs() < 2.5, "{strong}");
    }

    #[test]
    fn spikes_do_not_hide_dependence() {
        let mut random = RandomStream::new(7);
        let mut x = 0.0;
        let samples: Vec<f64> = (0..2000)
            .map(|i| {
                x = 0.8 * x + random.normal();
                if i % 50 == 0 { 1e4 } else { 100.0 + x }
            })
            .collect();
        assert!(median_variance_inflation(&samples) > 3.0);
    }
}
