//! Detection of samples from two states of the machine. The main function is [`two_modes`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stats::Sorted;

/// Minimum number of samples that are analysed.
const MIN_SAMPLES: usize = 20;
/// Share of samples trimmed at either end, so that spikes do not count as a mode.
const TRIM: f64 = 0.05;
/// Smallest share of the trimmed samples that counts as a mode.
const MIN_SHARE: f64 = 0.05;
/// Smallest relevant distance between modes, as a share of the lower one.
const MIN_SEPARATION: f64 = 0.005;
/// Smallest distance between modes in clock ticks; modes that are closer may be one mode, rounded
/// by the clock.
const MIN_TICKS: f64 = 4.0;
/// Relative difference below which two samples differ by rounding and not by a tick of the clock.
const ROUNDING: f64 = 1e-6;
/// Minimum value of Ashman's D. Its value is 2.65 for a single normal distribution that is cut at
/// its mean, and 3.46 for a single uniform distribution.
const MIN_ASHMAN: f64 = 3.5;
/// Significance level for the valley between two modes.
const VALLEY_P: f64 = 0.001;

/// Two modes of the distribution of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TwoModes {
    /// Mean of the faster mode, milliseconds.
    pub fast_ms: f64,
    /// Mean of the slower mode, milliseconds.
    pub slow_ms: f64,
    /// Share of the samples in the slower mode, 0–1.
    pub slow_share: f64,
}

/// Returns the two modes of the samples, or `None` if they do not have two modes or are fewer than
/// 20.
///
/// The usual coefficients do not work here. Sarle's exceeds its threshold for any skewed sample,
/// and launch times are skewed. Ashman's D of a sample cut in two exceeds 2 even for one normal
/// distribution. Therefore there must also be a valley. The function trims 5 % at either end and
/// finds the best split into two means (least sum of squares, exact in one dimension). It then
/// counts the samples in three intervals of equal length: around the lower mean, half-way, and
/// around the upper mean. With a unimodal density, the middle interval has at least as many as the
/// emptier of the others.
///
/// Two modes are reported if all of these conditions hold: both sides have at least 5 % of the
/// samples; the means differ by at least 0.5 % and 4 clock ticks; Ashman's
/// D = √2·|μ₁ − μ₂| / √(σ₁² + σ₂²) (Ashman, Bird, Zepf, AJ 108, 1994) is at least 3.5; the middle has fewer than half the
/// samples of the emptier side; and a fair coin would give so few with a probability below 1 in
/// 1,000.
pub fn two_modes(sorted: &Sorted) -> Option<TwoModes> {
    let all = sorted.as_slice();
    if all.len() < MIN_SAMPLES {
        return None;
    }
    let cut = (all.len() as f64 * TRIM).ceil() as usize;
    let kept = &all[cut..all.len() - cut];
    let split = best_split(kept)?;
    let (low, high) = (moments(&kept[..split]), moments(&kept[split..]));
    let distance = high.0 - low.0;
    let share = split.min(kept.len() - split) as f64 / kept.len() as f64;
    let spread = (low.1 + high.1).sqrt();
    let separated = share >= MIN_SHARE
        && distance >= MIN_SEPARATION * low.0.abs()
        && distance >= MIN_TICKS * tick(kept)
        && std::f64::consts::SQRT_2 * distance >= MIN_ASHMAN * spread;
    (separated && valley(kept, low.0, high.0)).then(|| {
        let slower = all.len() - all.partition_point(|x| *x < kept[split]);
        TwoModes { fast_ms: low.0, slow_ms: high.0, slow_share: slower as f64 / all.len() as f64 }
    })
}

/// Returns the index at which to split ascending samples in two with the least sum of squares.
fn best_split(sorted: &[f64]) -> Option<usize> {
    // Differences from the middle sample prevent cancellation in the sums of squares.
    let origin = sorted[sorted.len() / 2];
    let n = sorted.len() as f64;
    let total: f64 = sorted.iter().map(|x| x - origin).sum();
    let (mut left, mut best) = (0.0, (0.0, None));
    for (index, pair) in sorted.windows(2).enumerate() {
        left += pair[0] - origin;
        if pair[0] == pair[1] {
            continue;
        }
        // The least squares within the parts are the most squares between them: n₁·n₂/n·(μ₁ − μ₂)².
        let count = (index + 1) as f64;
        let gap = left / count - (total - left) / (n - count);
        let between = count * (n - count) * gap * gap;
        if between > best.0 {
            best = (between, Some(index + 1));
        }
    }
    best.1
}

/// Returns the mean and the population variance of at least one sample.
fn moments(samples: &[f64]) -> (f64, f64) {
    let n = samples.len() as f64;
    let mean = samples[0] + samples.iter().map(|x| x - samples[0]).sum::<f64>() / n;
    (mean, samples.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n)
}

/// Returns the smallest difference between distinct samples, which is the tick of a coarse clock.
fn tick(sorted: &[f64]) -> f64 {
    let steps = sorted.windows(2).map(|pair| pair[1] - pair[0]);
    let least = ROUNDING * sorted[sorted.len() / 2].abs();
    let tick = steps.filter(|step| *step > least).fold(f64::INFINITY, f64::min);
    if tick.is_finite() { tick } else { 0.0 }
}

/// Returns whether the density between two means is lower than at both. It tries two widths of the
/// intervals: wider ones contain more samples, narrower ones exclude the tails of the modes from
/// the middle.
fn valley(sorted: &[f64], low: f64, high: f64) -> bool {
    [6.0, 8.0].into_iter().any(|part| {
        let half = (high - low) / part;
        let count = |centre: f64| {
            let from = sorted.partition_point(|x| *x < centre - half);
            let to = sorted.partition_point(|x| *x < centre + half);
            to.saturating_sub(from)
        };
        let poorer = count(low).min(count(high));
        let middle = count((low + high) / 2.0);
        2 * middle < poorer && coin_tail(middle, middle + poorer) < VALLEY_P
    })
}

/// Returns the probability of at most `heads` heads in `tosses` of a fair coin.
fn coin_tail(heads: usize, tosses: usize) -> f64 {
    use statrs::distribution::{Binomial, DiscreteCDF};
    Binomial::new(0.5, tosses as u64).map_or(1.0, |coin| coin.cdf(heads as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    fn found(mut draw: impl FnMut(&mut RandomStream) -> f64, n: usize, seed: u64) -> bool {
        let mut random = RandomStream::new(seed);
        let samples: Vec<f64> = (0..n).map(|_| draw(&mut random)).collect();
        two_modes(&Sorted::new(&samples).expect("finite")).is_some()
    }

    fn rate(draw: impl Fn(&mut RandomStream) -> f64 + Copy, n: usize) -> f64 {
        let runs = 1000;
        (0..runs).filter(|seed| found(draw, n, *seed)).count() as f64 / runs as f64
    }

    #[test]
    fn one_mode_is_not_called_two() {
        for n in [20, 100, 400] {
            for sigma in [0.005, 0.03, 0.3] {
                let lognormal = rate(|r| (sigma * r.normal()).exp(), n);
                assert!(lognormal < 0.01, "lognormal {sigma} {n}: {lognormal}");
            }
            let spiky = rate(
                |r| {
                    let spike = if r.uniform() < 0.02 { 1.0 + r.uniform() } else { 0.0 };
                    1.0 + 0.005 * r.normal() + spike
                },
                n,
            );
            assert!(spiky < 0.01, "spiky {n}: {spiky}");
            let skewed = rate(|r| 1.0 - 0.02 * r.uniform().ln() + 0.002 * r.normal(), n);
            assert!(skewed < 0.01, "skewed {n}: {skewed}");
            let flat = rate(|r| 1.0 + 0.05 * r.uniform(), n);
            assert!(flat < 0.01, "flat {n}: {flat}");
            // A clock of 32 ns with a kernel of 2.66 µs gives two or three values, but one mode.
            let coarse = rate(|r| ((2660.0 + 15.0 * r.normal()) / 32.0).round() * 32e-6, n);
            assert!(coarse < 0.01, "coarse {n}: {coarse}");
        }
    }

    #[test]
    fn two_states_four_percent_apart_are_found() {
        for (n, share, least) in [(50, 0.5, 0.97), (100, 0.25, 0.97), (400, 0.15, 0.99)] {
            let rate = rate(
                |r| {
                    let slow = if r.uniform() < share { 1.04 } else { 1.0 };
                    let spike = if r.uniform() < 0.01 { 0.7 } else { 0.0 };
                    slow + spike + 0.005 * r.normal()
                },
                n,
            );
            assert!(rate >= least, "{n} samples, {share}: {rate}");
        }
    }

    #[test]
    fn the_modes_are_told() {
        let mut random = RandomStream::new(3);
        let samples: Vec<f64> = (0..300)
            .map(|i| 2.0 * (1.0 + if i % 3 == 0 { 0.04 } else { 0.0 } + 0.004 * random.normal()))
            .collect();
        let modes = two_modes(&Sorted::new(&samples).unwrap()).expect("two modes");
        assert!((modes.fast_ms - 2.0).abs() < 0.003, "{modes:?}");
        assert!((modes.slow_ms - 2.08).abs() < 0.003, "{modes:?}");
        assert!((modes.slow_share - 1.0 / 3.0).abs() < 0.02, "{modes:?}");
        assert_eq!(two_modes(&Sorted::new(&[1.0; 40]).unwrap()), None);
    }
}
