//! Formats measured values as text.

use warpgauge_model::PartialStatistics;
pub(super) use warpgauge_report::readable::{bytes, device, duration_ms, percent, quantity};

/// Returns the median of the timed launches so far, with its confidence interval.
pub(super) fn so_far(statistics: &PartialStatistics) -> String {
    let [median, lower, upper] =
        [statistics.median_ms, statistics.ci_lower_ms, statistics.ci_upper_ms].map(duration_ms);
    format!("median {median} ({lower} to {upper})")
}
