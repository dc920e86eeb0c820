//! Device metrics: advice, the roofline, and all values by group.

use std::collections::BTreeMap;

use maud::{Markup, html};
use warpgauge_metrics::catalogue::{CATALOGUE, MetricInfo};
use warpgauge_metrics::{
    Advice, Caption, CrossCheck, DeviceMetrics, Metric, roofline_svg_in_page, si,
};
use warpgauge_report::EvaluateResponse;

use crate::parts::{self, Scope, Tone};
use crate::text;

/// The maximum numbers of reasons for missing metrics, and of metrics that are in no catalogue.
const MAX_REASONS: usize = 20;
const MAX_UNKNOWN: usize = 200;

/// Shows observations, those with the largest shares first.
pub(super) fn advice(scope: Scope<'_>, metrics: &DeviceMetrics) -> Markup {
    let check = metrics.cross_check.as_ref().filter(|check| !check.agrees);
    if metrics.advice.is_empty() && check.is_none() {
        return html! {};
    }
    let note = html! { (text::counted(metrics.advice.len(), "observation")) };
    scope.section("advice", "Advice").open(true).note(note).with(html! {
        (advice_list(&metrics.advice))
        @if let Some(check) = check { (disagreement(check)) }
    })
}

/// Observations with their evidence.
pub(crate) fn advice_list(advice: &[Advice]) -> Markup {
    html! {
        ol.advice {
            @for advice in advice {
                li {
                    p { (text::message(&advice.message)) }
                    p.small {
                        "At most " (text::percent(advice.share)) " of its " (text::word(&advice.share_of))
                        @if !advice.evidence.is_empty() {
                            ". Evidence: "
                            @for (index, one) in advice.evidence.iter().take(8).enumerate() {
                                @if index > 0 { ", " }
                                code { (text::name(&one.metric)) } " "
                                span.num { (with_unit(one.value, one.unit.as_deref())) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn disagreement(check: &CrossCheck) -> Markup {
    html! {
        div.finding.doubt {
            p {
                "The profiled launch took " (text::time(check.profiled_seconds * 1e3)) ", a timed one "
                (text::time(check.unprofiled_seconds * 1e3)) ": the metrics describe a different situation."
            }
            @for explanation in check.explanations.iter().take(MAX_REASONS) { p { (text::message(explanation)) } }
        }
    }
}

/// Shows the roofline, if there are times.
pub(super) fn roofline(scope: Scope<'_>, metrics: &DeviceMetrics) -> Markup {
    let Some(roofline) = metrics.roofline.as_ref() else { return html! {} };
    let has_rates = roofline.points.iter().any(|point| point.rate.is_some());
    if !has_rates {
        return html! {};
    }
    let caption = Caption { kernel: &metrics.kernel, device: "", tool: &metrics.tool };
    let bound = roofline.bound_by.map_or("what limits it is not known", |bound| bound.sentence());
    scope.section("roofline", "Roofline").note(html! { (bound) }).with(html! {
        (parts::figure(roofline_svg_in_page(roofline, caption), html! { (text::message(&roofline.bound_reason)) }))
        @if !roofline.notes.is_empty() {
            ul.plain { @for note in roofline.notes.iter().take(MAX_REASONS) { li { (text::message(note)) } } }
        }
    })
}

/// Shows all values by group, in the order of the catalogue.
pub(crate) fn groups(scope: Scope<'_>, metrics: &DeviceMetrics) -> Markup {
    let mut groups: Vec<&str> = Vec::new();
    for info in CATALOGUE {
        if !groups.contains(&info.group.name()) {
            groups.push(info.group.name());
        }
    }
    let known = |group: &str| {
        let of_group = CATALOGUE.iter().filter(|info| info.group.name() == group);
        let valued = of_group.filter_map(|info| {
            let metric = metrics.metrics.get(info.id)?;
            metric.value.map(|value| (Some(info), info.id, metric, value))
        });
        valued.collect::<Vec<_>>()
    };
    let is_known = |id: &str| CATALOGUE.iter().any(|info| info.id == id);
    let others = metrics.metrics.iter().filter(|(id, _)| !is_known(id));
    let others = others.filter_map(|(id, metric)| Some((None, id.as_str(), metric, metric.value?)));
    let others = others.take(MAX_UNKNOWN).collect::<Vec<_>>();
    let valued = metrics.metrics.values().filter(|metric| metric.value.is_some()).count();
    let mut notes = Footnotes::default();
    let tables = groups.iter().map(|group| (group.replace('_', " "), known(group)));
    let tables = tables.chain([("others".to_owned(), others)]).filter(|(_, rows)| !rows.is_empty());
    let rows = tables
        .flat_map(|(group, rows)| of_group(scope, &group, rows, &mut notes))
        .collect::<Vec<_>>();
    let head = [("metric", false), ("value", true), ("of 100\u{202f}%", false)];
    let note = html! {
        (text::counted(valued, "value")) " of "
        @if metrics.kernels.is_empty() { "one launch" } @else { "all launches" }
        " of " (text::code(&metrics.kernel)) ", by " (text::name(&metrics.tool))
    };
    scope.section("metrics", "Device metrics").note(note).with(html! {
        @if let Some(why) = &metrics.unavailable {
            p { "A better source is not available: " (text::message(&why.reason)) ". " (text::message(&why.remedy)) }
        }
        (parts::table("Device metrics", &head, rows.into_iter()))
        (notes.list(scope))
        (missing_values(metrics))
    })
}

type Row<'a> = (Option<&'a MetricInfo>, &'a str, &'a Metric, f64);

/// Returns the rows of a group below its name.
fn of_group(
    scope: Scope<'_>,
    group: &str,
    rows: Vec<Row<'_>>,
    notes: &mut Footnotes,
) -> Vec<Markup> {
    let heading = html! { tr { th.group colspan="3" scope="rowgroup" { (group) } } };
    let rows = rows.into_iter().map(|(info, id, metric, value)| {
        let unit = metric.unit.as_deref();
        let mark = metric.note.as_deref().map(|note| notes.mark(note));
        html! { tr {
            td.wide {
                code title=[info.map(|info| info.description)] { (text::name(id)) }
                @if let Some(mark) = mark {
                    " " sup { a href={ "#" (scope.id("note-")) (mark) } { (mark) } }
                }
            }
            td.num { (with_unit(value, unit)) }
            td.bar-cell { @if unit == Some("%") { (parts::bar(0.0, value / 100.0)) } }
        } }
    });
    [heading].into_iter().chain(rows).collect()
}

/// Notes on values. Each note is written only once.
#[derive(Default)]
struct Footnotes(Vec<String>);

impl Footnotes {
    fn mark(&mut self, note: &str) -> usize {
        let at = self.0.iter().position(|known| known == note);
        at.unwrap_or_else(|| {
            self.0.push(note.to_owned());
            self.0.len() - 1
        }) + 1
    }

    fn list(&self, scope: Scope<'_>) -> Markup {
        html! {
            @if !self.0.is_empty() {
                ol.plain.small {
                    @for (index, note) in self.0.iter().enumerate() {
                        li id={ (scope.id("note-")) (index + 1) } { (text::message(note)) }
                    }
                }
            }
        }
    }
}

/// Formats a value with its unit. Rates get a unit prefix.
pub(crate) fn with_unit(value: f64, unit: Option<&str>) -> String {
    match unit {
        Some("bytes/s") => text::tight(&si(value, "B/s")),
        Some("operations/s") => text::tight(&si(value, "OP/s")),
        Some("Hz") => text::tight(&si(value, "Hz")),
        Some("s") => text::time(value * 1e3),
        Some(unit) => format!("{}\u{202f}{}", text::number(value), text::shown(unit, 40)),
        None => text::number(value),
    }
}

/// Shows how many metrics have no value, for each reason.
fn missing_values(metrics: &DeviceMetrics) -> Markup {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (id, metric) in &metrics.metrics {
        if let (None, Some(reason)) = (metric.value, metric.reason.as_deref()) {
            reasons.entry(reason).or_default().push(id);
        }
    }
    html! {
        @if !reasons.is_empty() {
            h3 { "Without a value" }
            ul.plain.small {
                @for (reason, ids) in reasons.iter().take(MAX_REASONS) {
                    li {
                        @match ids.as_slice() {
                            [one] => (text::code(one)),
                            many => (text::counted(many.len(), "metric")),
                        }
                        ": " (text::message(reason))
                    }
                }
            }
            (parts::more(reasons.len(), MAX_REASONS, "reasons"))
        }
    }
}

/// Shows why there are no metrics, if they were requested.
pub(super) fn missing(scope: Scope<'_>, report: &EvaluateResponse) -> Markup {
    let has = report.kernel_exec_result.metadata.device_metrics.is_some();
    let why = report.profile.as_ref().and_then(|profile| profile.reason.as_deref());
    let why = why.filter(|_| !has);
    html! {
        @if let Some(why) = why {
            (scope.section("metrics", "Device metrics").tone(Tone::Doubt).open(true)
                .note(html! { "not available" })
                .with(html! { p { (text::message(why)) } }))
        }
    }
}
