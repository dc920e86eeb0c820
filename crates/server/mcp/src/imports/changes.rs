//! Converts the differences of two reports to an answer.

use serde_json::{Value, json};

use super::draft::{Draft, Reading, counted, name, seconds};
use warpgauge_metrics::BoundBy;
use warpgauge_metrics::import::{Changes, KernelChange, MetricChange};
use warpgauge_report::readable::{percent, quantity};

/// Maximum number of kernels in the structured content, in the text, and of those whose metrics
/// are in the text.
const MAX_KERNELS: usize = 8;
const TEXT_KERNELS: usize = 6;
const DESCRIBED: usize = 3;

/// Maximum number of metrics of a kernel, in the text and in the structured content.
const TEXT_METRICS: usize = 5;
const MAX_METRICS: usize = 8;

/// Maximum number of kernels that only one report has, in the text and in the structured content.
const TEXT_NAMES: usize = 5;
const MAX_NAMES: usize = 8;

/// Minimum share of a change in time that a metric must explain to be in the text.
const EXPLAINS_FROM: f64 = 0.05;

/// Returns the answer. The kernels whose time changed most come first.
pub(super) fn reading(changes: &Changes) -> Reading {
    let mut draft = Draft::new("changes", "CHANGES", &summary(changes));
    for (index, kernel) in changes.kernels.iter().enumerate().take(TEXT_KERNELS) {
        draft.fact(&line(kernel));
        let explaining = kernel.changes.iter().filter(|change| change.explains >= EXPLAINS_FROM);
        let metrics: Vec<String> = explaining.take(TEXT_METRICS).map(metric).collect();
        if index < DESCRIBED && !metrics.is_empty() {
            draft.detail(&format!("explained by {}", metrics.join("; ")));
        }
    }
    for (title, field, names) in [
        ("only in the earlier report", "gone", &changes.gone),
        ("only in the later report", "new", &changes.new),
    ] {
        if !names.is_empty() {
            let shown: Vec<String> = names.iter().take(TEXT_NAMES).map(|one| name(one)).collect();
            let more = match names.len() - shown.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            draft.fact(&format!("{title}: {}{more}", shown.join(", ")));
        }
        draft.list(field, names, MAX_NAMES, |one| name(one).into());
    }
    draft.list("kernels", &changes.kernels, MAX_KERNELS, entry);
    draft.notes(&changes.notes);
    draft.finish()
}

fn summary(changes: &Changes) -> String {
    let Some(first) = changes.kernels.first() else {
        return "no kernel is in both reports".to_owned();
    };
    let kernels = counted(changes.kernels.len() as u64, "kernel is", "kernels are");
    let [before, after] = first.total_seconds.map(|time| seconds(Some(time)));
    let name = name(&first.kernel);
    format!("{kernels} in both reports; {name} changed most, from {before} to {after}")
}

/// Formats the times of a kernel before and after.
fn line(kernel: &KernelChange) -> String {
    let [before, after] = kernel.total_seconds.map(|time| seconds(Some(time)));
    let [old, new] = kernel.launches;
    let launches = match (old, new) {
        (1, 1) => String::new(),
        (old, new) => format!(", launches {old} → {new}"),
    };
    let name = name(&kernel.kernel);
    let bounds = match bounds(kernel).map(|bound| bound.map(|bound| bound.sentence())) {
        [None, None] => String::new(),
        [a, b] if a == b => format!(", {}", a.unwrap_or_default()),
        [a, b] => {
            let word = |bound: Option<&'static str>| bound.unwrap_or("bound by what is not known");
            format!(", {} before and {} after", word(a), word(b))
        }
    };
    format!(
        "{name}: {before} → {after}{launches}, {:.3} × for each launch{bounds}",
        kernel.time_ratio
    )
}

fn bounds(kernel: &KernelChange) -> [Option<BoundBy>; 2] {
    [kernel.bound_by_before, kernel.bound_by_after]
}

/// Formats a metric before and after, with the share of the change of the time that it explains.
fn metric(change: &MetricChange) -> String {
    let [before, after] = [change.before, change.after].map(|value| quantity(value, change.unit));
    format!("{} {before} → {after} ({})", change.metric, percent(change.explains))
}

fn entry(kernel: &KernelChange) -> Value {
    let changes: Vec<Value> =
        kernel.changes.iter().take(MAX_METRICS).map(|one| json!(one)).collect();
    json!({
        "kernel": name(&kernel.kernel),
        "launches": kernel.launches,
        "total_seconds": kernel.total_seconds,
        "time_ratio": kernel.time_ratio,
        "bound_by_before": kernel.bound_by_before.map(|bound| bound.name()),
        "bound_by_after": kernel.bound_by_after.map(|bound| bound.name()),
        "changes": changes,
    })
}
