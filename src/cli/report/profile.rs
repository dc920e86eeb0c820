//! Device metrics at length: every value by group, the roofline, what stands out.

use std::collections::BTreeMap;

use super::super::format::{device, duration_ms, percent};
use super::super::terminal::Style;
use super::page::{Page, Tone};
use super::{failed_checks, measured, metrics, opening, timings};
use warpgauge_compile::readable;
use warpgauge_metrics::catalogue::CATALOGUE;
use warpgauge_metrics::{DeviceMetrics, Metric, Roofline, RooflinePoint, si};
use warpgauge_report::EvaluateResponse;

/// Reasons for missing metrics that are shown.
const MAX_REASONS: usize = 8;

/// The report of an evaluation for its metrics.
pub(in super::super) fn profile(response: &EvaluateResponse, style: Style) -> String {
    let mut page = opening(response, style);
    if let Some(report) = &response.device {
        page.row("device", &device(report));
    }
    measured::reasons(&mut page, response);
    failed_checks(&mut page, response);
    match &response.kernel_exec_result.metadata.device_metrics {
        Some(metrics) => all(&mut page, metrics),
        None => {
            let reason = response.profile.as_ref().and_then(|profile| profile.reason.as_deref());
            let word = page.paint(Tone::Doubt, "none");
            page.row_painted("metrics", &word);
            page.more(reason.unwrap_or("the service says no more"));
        }
    }
    timings(&mut page, &response.timings);
    page.row("job", &response.job_id);
    page.text
}

fn all(page: &mut Page, metrics: &DeviceMetrics) {
    page.row(
        "metrics",
        &format!("of one launch of {}, by {}", readable(&metrics.kernel), metrics.tool),
    );
    if let Some(unavailable) = &metrics.unavailable {
        page.more(&format!("{} [{}]", unavailable.reason, unavailable.code));
        page.more(&unavailable.remedy);
    }
    table(page, metrics);
    missing(page, metrics);
    analyses(page, metrics);
}

/// Roofline, cross-check and advice: what an evaluation's report shows too.
pub(super) fn analyses(page: &mut Page, metrics: &DeviceMetrics) {
    if let Some(roofline) = &metrics.roofline {
        roof(page, roofline);
    }
    if let Some(check) = metrics.cross_check.as_ref().filter(|check| !check.agrees) {
        page.row(
            "profiled",
            &format!(
                "the profiled launch took {}, a timed one {}: the metrics describe another \
                 situation",
                duration_ms(check.profiled_seconds * 1e3),
                duration_ms(check.unprofiled_seconds * 1e3)
            ),
        );
        for explanation in &check.explanations {
            page.more(explanation);
        }
    }
    for (index, advice) in metrics.advice.iter().enumerate() {
        let label = if index == 0 { "advice" } else { "" };
        let of = measured::word(&advice.share_of);
        page.row(label, &format!("{}. {}", index + 1, advice.message));
        page.more(&format!(
            "   at most {} of its {of} [{}]",
            percent(advice.share),
            measured::word(&advice.code)
        ));
    }
}

/// The values, by the catalogue's groups, in its order.
fn table(page: &mut Page, metrics: &DeviceMetrics) {
    // The catalogue's order is that of its parts, and a group has metrics in several of them.
    let mut groups: Vec<&str> = Vec::new();
    for info in CATALOGUE {
        if !groups.contains(&info.group.name()) {
            groups.push(info.group.name());
        }
    }
    for group in groups {
        let of_group = CATALOGUE.iter().filter(|info| info.group.name() == group);
        let rows: Vec<String> = of_group
            .filter_map(|info| {
                let metric = metrics.metrics.get(info.id)?;
                Some(row(info.id, metric.value?, metric))
            })
            .collect();
        if !rows.is_empty() {
            page.line(group);
            rows.iter().for_each(|row| page.line(row));
        }
    }
    // A newer server may know more.
    let known = |id: &str| CATALOGUE.iter().any(|info| info.id == id);
    for (id, metric) in metrics.metrics.iter().filter(|(id, _)| !known(id)) {
        if let Some(value) = metric.value {
            page.line(&row(id, value, metric));
        }
    }
}

fn row(id: &str, value: f64, metric: &Metric) -> String {
    let text = with_unit(value, metric.unit.as_deref().unwrap_or_default());
    let note = metric.note.as_ref().map_or(String::new(), |note| format!("  ({note})"));
    format!("  {id:<32}{text:>22}{note}")
}

/// Rates with a prefix, everything else as it is.
fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "bytes/s" => si(value, "B/s"),
        "operations/s" => si(value, "OP/s"),
        "Hz" => si(value, "Hz"),
        "s" => duration_ms(value * 1e3),
        unit => format!("{} {unit}", metrics::number(value)),
    }
}

/// What has no value: how much of it, for each reason.
fn missing(page: &mut Page, metrics: &DeviceMetrics) {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (id, metric) in &metrics.metrics {
        if let (None, Some(reason)) = (metric.value, metric.reason.as_deref()) {
            reasons.entry(reason).or_default().push(id);
        }
    }
    for (index, (reason, ids)) in reasons.iter().enumerate().take(MAX_REASONS) {
        let label = if index == 0 { "missing" } else { "" };
        let what = match ids.as_slice() {
            [one] => (*one).to_owned(),
            many => format!("{} metrics", many.len()),
        };
        page.row(label, &format!("{what}: {reason}"));
    }
    if reasons.len() > MAX_REASONS {
        page.more(&format!("… and {} more reasons (all with --json)", reasons.len() - MAX_REASONS));
    }
}

fn roof(page: &mut Page, roofline: &Roofline) {
    let bound = roofline.bound_by.map_or("what limits it is not known", |bound| bound.sentence());
    page.row("roofline", &format!("{bound}: {}", roofline.bound_reason));
    for point in &roofline.points {
        page.more(&describe(point));
    }
    for note in &roofline.notes {
        page.more(&format!("note: {note}"));
    }
}

fn describe(point: &RooflinePoint) -> String {
    let mut text = format!(
        "{} on {}: {} operations/byte",
        point.precision.label(),
        point.level.label(),
        metrics::number(point.intensity)
    );
    if let Some(rate) = point.rate {
        text.push_str(&format!(", {}", si(rate, "OP/s")));
    }
    if let (Some(fraction), Some(attainable)) = (point.fraction, point.attainable) {
        let attainable = si(attainable, "OP/s");
        text.push_str(&format!(", {} of the {attainable} attainable", percent(fraction)));
    }
    text
}
