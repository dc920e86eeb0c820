//! The verdict on a candidate in one sentence with the names of both kernels.

use super::percent;
use warpgauge_statistics::CountedComparison;
use warpgauge_statistics::paired::{PairedComparison, PairedVerdict};

/// Returns the verdict on times, such as `b.cu is 1.31 × ± 0.02 faster than a.cu`. The number after
/// ± is half the width of the confidence interval.
pub fn of_times(comparison: &PairedComparison, name: &str, reference: &str) -> String {
    let interval = comparison.speedup_ci_low.zip(comparison.speedup_ci_high);
    let Some(speedup) = comparison.speedup else {
        return format!(
            "{name} compared with {reference}: no block is valid{}",
            unseen(comparison)
        );
    };
    let inverse = |(low, high): (f64, f64)| (1.0 / high, 1.0 / low);
    match comparison.verdict {
        PairedVerdict::Faster => {
            format!("{name} is {} faster than {reference}", times(speedup, interval))
        }
        PairedVerdict::Slower => {
            let slower = times(1.0 / speedup, interval.map(inverse));
            format!("{name} is {slower} slower than {reference}")
        }
        PairedVerdict::Same => format!(
            "{name} is as fast as {reference}: {}, within {}",
            times(speedup, interval),
            percent(comparison.equivalence)
        ),
        PairedVerdict::Inconclusive => format!(
            "{name} is {} as fast as {reference}{}",
            times(speedup, interval),
            unseen(comparison)
        ),
    }
}

fn unseen(comparison: &PairedComparison) -> String {
    comparison.minimum_detectable_effect.map_or(String::new(), |effect| {
        format!("; a difference below {} could not be seen", percent(effect))
    })
}

/// Returns a ratio and half the width of its interval, with as many decimals as the half width
/// needs.
fn times(ratio: f64, interval: Option<(f64, f64)>) -> String {
    let half = interval.map(|(low, high)| (high - low) / 2.0);
    let half = half.filter(|half| half.is_finite() && *half > 0.0);
    let Some(half) = half else { return format!("{ratio:.2} ×") };
    let decimals = (-half.log10()).ceil().clamp(2.0, 4.0) as usize;
    format!("{ratio:.decimals$} × ± {half:.decimals$}")
}

/// Returns the verdict on counts.
pub fn of_counts(counted: &CountedComparison, name: &str, reference: &str) -> String {
    let ratios = [
        (counted.warp_instructions, "warp instructions"),
        (counted.global_sectors, "sectors of global memory"),
    ];
    let ratios = ratios
        .iter()
        .filter_map(|(ratio, what)| ratio.map(|ratio| format!("{ratio:.3} × the {what}")));
    let ratios = ratios.collect::<Vec<_>>().join(" and ");
    format!("{name} takes {ratios} of {reference}; counted, not timed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_has_the_decimals_of_its_interval() {
        for (ratio, interval, expected) in [
            (1.31, Some((1.29, 1.33)), "1.31 × ± 0.02"),
            (1.231, Some((1.224, 1.238)), "1.231 × ± 0.007"),
            (1.000_04, Some((0.999_8, 1.000_2)), "1.0000 × ± 0.0002"),
            (41.0, Some((39.0, 44.0)), "41.00 × ± 2.50"),
            (2.0, None, "2.00 ×"),
            (2.0, Some((2.0, 2.0)), "2.00 ×"),
            (2.0, Some((1.0, f64::INFINITY)), "2.00 ×"),
        ] {
            assert_eq!(times(ratio, interval), expected);
        }
    }
}
