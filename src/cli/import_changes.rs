//! Formats the changes between two imported reports as text.

use super::format::{percent, quantity};
use super::import_table::{name, rows, seconds};
use super::terminal::plain;
use warpgauge_metrics::BoundBy;
use warpgauge_metrics::import::{Changes, KernelChange, MetricChange};

/// Maximum number of kernels whose metrics are shown. The kernels whose time changed most are
/// chosen.
const MAX_DESCRIBED: usize = 5;
/// Minimum share of a change in time that a metric must explain to be listed.
const EXPLAINS_FROM: f64 = 0.05;

/// Returns the kernels sorted by the change of their time, with the metrics that explain the
/// change.
pub(super) fn changes(changes: &Changes) -> String {
    let mut text: String =
        changes.notes.iter().map(|note| format!("note: {}\n", plain(note))).collect();
    text.push_str("kernels by change of time: before, after, launch by launch\n");
    text.push_str(&rows(&changes.kernels, kernel));
    for kernel in changes.kernels.iter().take(MAX_DESCRIBED) {
        if !kernel.changes.is_empty() {
            text.push_str(&format!("\n{}\n", name(&kernel.kernel)));
            text.push_str(&rows(&kernel.changes, metric));
        }
    }
    for (title, names) in [("gone", &changes.gone), ("new", &changes.new)] {
        if !names.is_empty() {
            text.push_str(&format!("\n{title}\n"));
            text.push_str(&rows(names, |one| format!("  {}\n", name(one))));
        }
    }
    text
}

fn kernel(kernel: &KernelChange) -> String {
    let [before, after] = kernel.total_seconds.map(|time| seconds(Some(time)));
    let bound = |bound: Option<BoundBy>| bound.map_or("?", |bound| bound.name());
    let bounds = match [kernel.bound_by_before, kernel.bound_by_after] {
        [None, None] => String::new(),
        [a, b] if a == b => format!(", bound by {}", bound(a)),
        [a, b] => format!(", bound by {} and then {}", bound(a), bound(b)),
    };
    format!(
        "  {before:>12} {after:>12} {:>8.3} ×  {}{bounds}\n",
        kernel.time_ratio,
        name(&kernel.kernel)
    )
}

fn metric(change: &MetricChange) -> String {
    let [before, after] = [change.before, change.after].map(|value| quantity(value, change.unit));
    let ratio = change.ratio.map_or_else(String::new, |ratio| format!("{ratio:.3} ×"));
    let explains = match change.explains >= EXPLAINS_FROM {
        true => format!("  explains {}", percent(change.explains)),
        false => String::new(),
    };
    format!("  {:<32} {before:>20} {after:>20} {ratio:>10}{explains}\n", change.metric)
}
