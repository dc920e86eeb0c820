//! The text report with all device metrics: every value by group, the roofline, and advice.

use std::collections::BTreeMap;

use super::super::format::{device, duration_ms, percent};
use super::super::terminal::Style;
use super::page::{Page, Tone};
use super::{failed_checks, measured, metrics, opening, reasons, timings};
use warpgauge_compile::readable;
use warpgauge_metrics::catalogue::CATALOGUE;
use warpgauge_metrics::{DeviceMetrics, Metric, Roofline, RooflinePoint, si};
use warpgauge_report::EvaluateResponse;

/// Maximum number of reasons for missing metrics that are shown.
const MAX_REASONS: usize = 8;

/// Returns the report of an evaluation with metrics. Advice and roofline come first, then every
/// value.
pub(in super::super) fn profile(response: &EvaluateResponse, style: Style) -> String {
    let mut page = opening(response, style);
    failed_checks(&mut page, response);
    let metrics = response.kernel_exec_result.metadata.device_metrics.as_ref();
    if let Some(metrics) = metrics {
        analyses(&mut page, metrics);
    }
    reasons(&mut page, response);
    match metrics {
        Some(metrics) => all(&mut page, metrics),
        None => {
            let reason = response.profile.as_ref().and_then(|profile| profile.reason.as_deref());
            let word = page.paint(Tone::Doubt, "none");
            page.row_painted("metrics", &word);
            page.more(reason.unwrap_or("the service gives no reason"));
        }
    }
    if let Some(report) = &response.device {
        page.row("device", &device(report));
    }
    if style.verbose {
        timings(&mut page, &response.timings);
        page.row("job", &response.job_id);
    }
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
}

/// Adds the advice, the roofline and the cross-check, which are also part of the report of an
/// evaluation.
pub(super) fn analyses(page: &mut Page, metrics: &DeviceMetrics) {
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
}

/// Adds the values, by the groups of the catalogue and in its order. Without `--verbose`, zeros are
/// omitted.
fn table(page: &mut Page, metrics: &DeviceMetrics) {
    // A group may have metrics in several parts of the catalogue.
    let mut groups: Vec<&str> = Vec::new();
    for info in CATALOGUE {
        if !groups.contains(&info.group.name()) {
            groups.push(info.group.name());
        }
    }
    let mut notes = Footnotes::default();
    let mut zeros = 0;
    let verbose = page.style.verbose;
    let mut shown = |id: &str, metric: &Metric| {
        let value = metric.value?;
        if value == 0.0 && !verbose {
            zeros += 1;
            return None;
        }
        Some(row(id, value, metric, &mut notes))
    };
    for group in groups {
        let of_group = CATALOGUE.iter().filter(|info| info.group.name() == group);
        let rows: Vec<String> =
            of_group.filter_map(|info| shown(info.id, metrics.metrics.get(info.id)?)).collect();
        if !rows.is_empty() {
            page.line(group);
            rows.iter().for_each(|row| page.line(row));
        }
    }
    // A newer server may return metrics that are not in this catalogue.
    let known = |id: &str| CATALOGUE.iter().any(|info| info.id == id);
    for (id, metric) in metrics.metrics.iter().filter(|(id, _)| !known(id)) {
        if let Some(row) = shown(id, metric) {
            page.line(&row);
        }
    }
    for (index, note) in notes.0.iter().enumerate() {
        page.line(&format!("[{}] {note}", index + 1));
    }
    match zeros {
        0 => {}
        1 => page.line("1 metric is zero (--verbose shows it)"),
        n => page.line(&format!("{n} metrics are zero (--verbose shows them)")),
    }
}

/// Notes on values. Each distinct note is printed once.
#[derive(Default)]
struct Footnotes(Vec<String>);

impl Footnotes {
    /// Returns the mark that refers to a note. If the note is new, it is added.
    fn mark(&mut self, note: &str) -> String {
        let at = self.0.iter().position(|known| known == note);
        let at = at.unwrap_or_else(|| {
            self.0.push(note.to_owned());
            self.0.len() - 1
        });
        format!("  [{}]", at + 1)
    }
}

fn row(id: &str, value: f64, metric: &Metric, notes: &mut Footnotes) -> String {
    let text = with_unit(value, metric.unit.as_deref().unwrap_or_default());
    let mark = metric.note.as_ref().map_or(String::new(), |note| notes.mark(note));
    format!("  {id:<32}{text:>22}{mark}")
}

/// Returns a value with its unit: rates with an SI prefix, times in a readable unit.
fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "bytes/s" => si(value, "B/s"),
        "operations/s" => si(value, "OP/s"),
        "Hz" => si(value, "Hz"),
        "s" => duration_ms(value * 1e3),
        unit => format!("{} {unit}", metrics::number(value)),
    }
}

/// Adds the reasons for missing values. Each reason is listed with the metrics to which it applies.
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
