//! The page of a sweep.

use std::collections::BTreeMap;

use maud::{Markup, html};
use warpgauge_contract::{AxisValue, SweepAxis};
use warpgauge_model::DeviceKind;
use warpgauge_report::{BestPoint, KernelVerdict, SweepPoint, SweepResponse, SweepStatus};

use crate::chart::{self, HeatCell};
use crate::document::Content;
use crate::parts::{self, Figure, Section, Tone, Value};
use crate::text;

/// The maximum number of points in the table.
const MAX_POINTS: usize = 500;

/// Creates the page of a sweep.
pub(crate) fn content(report: &SweepResponse) -> Content {
    let word = report.verdict.map_or("error", |verdict| verdict.words());
    let names = report.axes.iter().map(|axis| axis.name.as_str()).collect::<Vec<_>>().join(", ");
    Content {
        title: format!("{}: sweep over {names}", word.to_lowercase()),
        about: html! { "sweep " span.mono { (text::name(&report.job_id)) } },
        refresh: None,
        main: html! {
            (headline(report, word, &names))
            (parts::figures(&best(report)))
            (map(report))
            (points(report))
            (reasons(report))
        },
    }
}

fn headline(report: &SweepResponse, word: &str, names: &str) -> Markup {
    let tone = report.verdict.map_or(Tone::Doubt, Tone::of_verdict);
    let right = report.points.iter().filter(|point| point.status == SweepStatus::Correct).count();
    let all = report.points.len();
    let sentence = html! {
        @if right == all { "Every one of " (text::counted(all, "point")) " is correct." }
        @else {
            (text::grouped(right as u64)) " of " (text::counted(all, "point")) " are correct: "
            @for (index, (status, count)) in report.counts.iter().enumerate() {
                @if index > 0 { ", " } (count) " " (text::shown(&status.replace('_', " "), 40))
            }
            "."
        }
    };
    let devices = html! { span.dim.small {
        @for (index, device) in report.devices.iter().enumerate() {
            @if index > 0 { ", " } (text::name(&device.name))
        }
        " in " (text::time(report.total_ms))
    } };
    parts::verdict(tone, word, html! { "Sweep over " (text::code(names)) }, &[sentence, devices])
}

/// Returns the best point for each measure.
fn best(report: &SweepResponse) -> Vec<Figure> {
    let best = &report.best;
    let figure = |title, point: Option<&BestPoint>, value: fn(f64) -> String| {
        let point = point?;
        Some(Figure {
            title,
            value: Value::Number(value(point.value)),
            below: html! { p { (values(&point.values)) } },
        })
    };
    let whole = |value: f64| text::grouped(value as u64);
    let mut figures: Vec<Figure> = [
        figure("Shortest median", best.median_ms.as_ref(), text::time),
        figure("Most bytes per second", best.gbps.as_ref(), |value| {
            format!("{}\u{202f}GB/s", text::number(value))
        }),
        figure("Most operations per second", best.gflops.as_ref(), |value| {
            format!("{}\u{202f}GFLOP/s", text::number(value))
        }),
        figure("Fewest warp instructions", best.warp_instructions.as_ref(), whole),
        figure("Fewest sectors", best.global_sectors.as_ref(), whole),
    ]
    .into_iter()
    .flatten()
    .collect();
    if let Some(why) = &best.not_ranked {
        let value = Value::Words("Not ranked by time".to_owned());
        figures.push(Figure { title: "Times", value, below: html! { p { (text::message(why)) } } });
    }
    figures
}

fn values(values: &BTreeMap<String, AxisValue>) -> Markup {
    html! {
        @for (index, (name, value)) in values.iter().enumerate() {
            @if index > 0 { ", " } (text::code(&format!("{name} = {}", plain(&value.to_json()))))
        }
    }
}

fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the measure of a point: its median on a GPU, or its warp instructions on the emulated
/// device.
fn measure(report: &SweepResponse, point: &SweepPoint) -> Option<(f64, String)> {
    let emulated = report.devices.iter().any(|device| device.kind == DeviceKind::Emulator);
    if emulated {
        let counted = point.counted?.warp_instructions;
        return Some((counted as f64, text::grouped(counted)));
    }
    let median = point.runtime_stats.as_ref()?.median;
    Some((median, text::time(median)))
}

/// Shows a heat map if there are two axes. Otherwise the table shows bars.
fn map(report: &SweepResponse) -> Markup {
    let [rows, columns] = &*report.axes else { return html! {} };
    let labels = |axis: &SweepAxis| {
        axis.values.iter().map(|value| plain(&value.to_json())).collect::<Vec<_>>()
    };
    let (row_labels, column_labels) = (labels(rows), labels(columns));
    let cells = report.points.iter().filter_map(|point| {
        let at = |axis: &SweepAxis| {
            let value = point.values.get(&axis.name)?;
            axis.values.iter().position(|one| one == value)
        };
        let (row, column) = (at(rows)?, at(columns)?);
        let measured = measure(report, point).filter(|_| point.status <= SweepStatus::Weak);
        Some(match measured {
            Some((value, label)) => HeatCell { column, row, value: Some(value), label },
            None => HeatCell { column, row, value: None, label: text::word(&point.status) },
        })
    });
    let emulated = report.devices.iter().any(|device| device.kind == DeviceKind::Emulator);
    let what = if emulated { "Warp instructions of one launch" } else { "Median time of a launch" };
    let drawn = chart::heat(what, &column_labels, &row_labels, &cells.collect::<Vec<_>>());
    html! {
        @if let Some(svg) = drawn {
            (Section::new("map", "Map").open(true)
                .note(html! { (text::code(&rows.name)) " down, " (text::code(&columns.name)) " across" })
                .with(parts::figure(svg, html! { (what) "; darker means more, grey means no value." })))
        }
    }
}

fn points(report: &SweepResponse) -> Markup {
    let most = report.points.iter().filter_map(|point| Some(measure(report, point)?.0));
    let most = most.max_by(f64::total_cmp).unwrap_or(0.0);
    let axes = report.axes.iter().map(|axis| (axis.name.as_str(), true));
    let any = |has: fn(&SweepPoint) -> bool| report.points.iter().any(has);
    let [bytes, flops] = [any(|point| point.gbps.is_some()), any(|point| point.gflops.is_some())];
    let counted = any(|point| point.counted.is_some());
    let measures = [
        (true, ("verdict", false)),
        (true, ("median", true)),
        (true, ("95\u{202f}% CI", true)),
        (bytes, ("GB/s", true)),
        (flops, ("GFLOP/s", true)),
        (counted, ("warp instructions", true)),
        (true, ("", false)),
    ];
    // A measure without values has no column.
    let measures = measures.into_iter().filter(|(has, _)| *has).map(|(_, column)| column);
    let head = axes.chain(measures).collect::<Vec<_>>();
    let rows = report.points.iter().take(MAX_POINTS).map(|point| {
        let stats = point.runtime_stats.as_ref();
        let interval = stats.and_then(|stats| stats.median_ci_low.zip(stats.median_ci_high));
        html! { tr {
            @for axis in &report.axes {
                td.num { @if let Some(value) = point.values.get(&axis.name) { (text::name(&plain(&value.to_json()))) } }
            }
            td { (parts::tag(tone(point), &text::word(&point.status))) }
            td.num { @if let Some(stats) = stats { (text::time(stats.median)) } }
            td.num { @if let Some((low, high)) = interval { (text::time(low)) " to " (text::time(high)) } }
            @if bytes { td.num { @if let Some(rate) = point.gbps { (text::number(rate)) } } }
            @if flops { td.num { @if let Some(rate) = point.gflops { (text::number(rate)) } } }
            @if counted {
                td.num { @if let Some(counted) = point.counted { (text::grouped(counted.warp_instructions)) } }
            }
            td.bar-cell { @if let Some((value, _)) = measure(report, point) { (parts::bar(0.0, value / most)) } }
        } }
    });
    Section::new("points", "Points")
        .open(true)
        .note(html! { (text::counted(report.points.len(), "point")) })
        .with(html! {
            (parts::table("Points", &head, rows))
            (parts::more(report.points.len(), MAX_POINTS, "points"))
        })
}

fn tone(point: &SweepPoint) -> Tone {
    match (point.verdict, point.status) {
        (Some(verdict), _) => Tone::of_verdict(verdict),
        (None, SweepStatus::Correct) => Tone::of_verdict(KernelVerdict::Correct),
        (None, _) => Tone::Bad,
    }
}

/// Shows the problems of each point.
fn reasons(report: &SweepResponse) -> Markup {
    let with = || report.points.iter().filter(|point| !point.reasons.is_empty());
    let count = with().count();
    html! {
        @if count > 0 {
            (Section::new("reasons", "Problems by point").tone(Tone::Bad).open(true)
                .note(html! { (text::counted(count, "point")) })
                .with(html! {
                    @for point in with().take(50) {
                        div.finding.bad {
                            p { (values(&point.values)) }
                            @for reason in point.reasons.iter().take(5) {
                                p {
                                    (text::message(&reason.message)) " " span.dim.mono { (reason.code) }
                                    @if let Some(path) = &reason.path { " at " (text::code(path)) }
                                }
                            }
                        }
                    }
                    (parts::more(count, 50, "points"))
                }))
        }
    }
}
