//! Shows the most important device metrics in a few rows: memory use and computation.

use super::page::Page;
use warpgauge_compile::readable;
use warpgauge_metrics::DeviceMetrics;

/// A row of metrics: its label, and the ids and labels of its metrics.
const ROWS: [(&str, &[(&str, &str)]); 5] = [
    (
        "global memory",
        &[
            ("sectors_per_global_load", "sectors/load"),
            ("sectors_per_global_store", "sectors/store"),
            ("ideal_read_bytes", "bytes read"),
            ("ideal_write_bytes", "bytes written"),
        ],
    ),
    (
        "shared memory",
        &[
            ("shared_load_conflicts", "load conflicts"),
            ("shared_store_conflicts", "store conflicts"),
        ],
    ),
    (
        "operations",
        &[
            ("flop_count_single", "f32"),
            ("flop_count_double", "f64"),
            ("flop_count_half", "f16"),
            ("flop_count_tensor", "tensor"),
        ],
    ),
    (
        "instructions",
        &[("warp_instructions", "by warps"), ("threads_per_instruction", "threads each")],
    ),
    ("occupancy", &[("theoretical_occupancy", "% theoretical"), ("waves_per_sm", "waves")]),
];

/// Adds the rows with those metrics of a kernel that have values.
pub(super) fn rows(page: &mut Page, metrics: &DeviceMetrics) {
    let launches = match metrics.kernels.iter().map(|kernel| kernel.launches).sum::<u32>() {
        0 | 1 => "one launch".to_owned(),
        several => format!("{several} launches"),
    };
    page.row(
        "metrics",
        &format!("of {launches} of {}, by {}", readable(&metrics.kernel), metrics.tool),
    );
    for (name, parts) in ROWS {
        let part = |(id, word): &(&str, &str)| {
            let value = metrics.metrics.get(*id)?.value?;
            Some(format!("{} {word}", number(value)))
        };
        let parts: Vec<String> = parts.iter().filter_map(part).collect();
        if !parts.is_empty() {
            page.more(&format!("{name}: {}", parts.join(", ")));
        }
    }
}

/// Formats a number: integers without decimals, small numbers with an exponent, other numbers with
/// two decimals.
pub(super) fn number(value: f64) -> String {
    match value {
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        _ if value.abs() < 0.1 => format!("{value:.2e}"),
        _ => format!("{value:.2}"),
    }
}
