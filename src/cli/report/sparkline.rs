//! Draws a histogram of samples as a line of bars.

use super::super::format::duration_ms;
use warpgauge_report::RuntimeStats;

/// Maximum number of bars in the line.
const BARS: usize = 24;

/// Minimum number of samples for a histogram.
const LEAST: usize = 8;

/// Heights of a bar. If a bar has no samples, it is a space, so that a single sample is visible.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns a histogram of the launch times between the smallest and the largest that count: `12.10
/// µs ▂▇▅▁   ▁ 14.00 µs`. Returns `None` if there are too few samples, or if all are equal.
pub(super) fn of(samples_ms: &[f32], stats: &RuntimeStats) -> Option<String> {
    let (low, high) = (stats.min, stats.max);
    // Samples are stored in binary32, whereas statistics are stored in binary64.
    let slack = 1e-6 * high.abs();
    let counted = || {
        let samples = samples_ms.iter().map(|sample| f64::from(*sample));
        samples.filter(|sample| (low - slack..=high + slack).contains(sample))
    };
    let number = counted().count();
    if number < LEAST || low >= high {
        return None;
    }
    let bars = (number / 2).clamp(LEAST / 2, BARS);
    let mut counts = vec![0_usize; bars];
    for sample in counted() {
        let at = (sample - low) / (high - low) * bars as f64;
        counts[(at.max(0.0) as usize).min(bars - 1)] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    let bar = |count: &usize| match *count {
        0 => ' ',
        count => HEIGHTS[(count * HEIGHTS.len()).div_ceil(most) - 1],
    };
    let line = counts.iter().map(bar).collect::<String>();
    Some(format!("{} {line} {}", duration_ms(low), duration_ms(high)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stats(min: f64, max: f64) -> RuntimeStats {
        serde_json::from_value(json!({"mean": min, "std": 0.0, "min": min, "max": max,
            "median": min, "percentile_95": max, "percentile_99": max, "samples": 9}))
        .unwrap()
    }

    #[test]
    fn bars_are_as_high_as_samples_are_many() {
        let samples = [1.0, 1.0, 1.0, 1.0, 1.1, 1.1, 2.0, 1.0, 9.0];
        let line = of(&samples, &stats(1.0, 2.0)).unwrap();
        assert_eq!(line, "1.000 ms █  ▂ 2.000 ms", "the sample that does not count is left out");
        assert_eq!(of(&samples[..6], &stats(1.0, 1.1)), None);
        assert_eq!(of(&[1.0; 20], &stats(1.0, 1.0)), None);
        let many = (0..1000).map(|n| 1.0 + n as f32 / 1000.0).collect::<Vec<_>>();
        let line = of(&many, &stats(1.0, 1.999)).unwrap();
        assert_eq!(line.chars().filter(|c| HEIGHTS.contains(c)).count(), BARS, "{line}");
    }
}
