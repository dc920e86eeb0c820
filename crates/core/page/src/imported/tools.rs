//! Creates the pages of Nsight Systems, of compute-sanitizer, and of source pages of Nsight
//! Compute.

use maud::{Markup, html};
use warpgauge_metrics::import::DeviceTimeline;
use warpgauge_metrics::ncu::{SourceLine, SourcePage, SourcePageKernel};
use warpgauge_metrics::nsys::{NsysLaunch, NsysReport, NsysRow};
use warpgauge_metrics::sanitizer::{SanitizerFinding, SanitizerLog};

use super::{notes, opening, seconds};
use crate::evaluation::metrics::with_unit;
use crate::parts::{self, Figure, Section, Tone, Value};
use crate::text;

/// Maximum number of rows of a table, of kernels of a source page, and of findings.
const MAX_ROWS: usize = 100;
const MAX_SOURCES: usize = 20;
const MAX_FINDINGS: usize = 100;
/// Maximum number of devices whose busy time is shown.
const MAX_DEVICES: usize = 4;

pub(super) fn timeline(report: &NsysReport, timelines: &[DeviceTimeline]) -> Markup {
    let all = report.trace.len() as u64 + report.trace_left_out.unwrap_or(0);
    let word = text::counted(report.kernels.len(), "kernel");
    let sentence = html! {
        @if all > 0 { (text::grouped(all)) " activities on " (text::counted(timelines.len(), "device")) "." }
        @else { "Summaries without single activities." }
    };
    let time = |title, id, rows: &[NsysRow]| summary(title, id, rows, seconds);
    html! {
        (opening(Tone::Plain, &word, html! { "Report of Nsight Systems" }, &[sentence]))
        (parts::figures(&busy(timelines)))
        (notes(&report.notes))
        @if !report.problems.is_empty() {
            (Section::new("problems", "Problems").open(true).tone(Tone::Doubt).with(html! {
                ul.plain { @for problem in report.problems.iter().take(MAX_ROWS) {
                    li { (text::message(&problem.reason)) ". " (text::message(&problem.remedy)) }
                } }
            }))
        }
        (time("Kernels", "kernels", &report.kernels))
        (time("Copies by time", "copies", &report.memory_time))
        (summary("Copies by size", "copied", &report.memory_size, |bytes| {
            bytes.map_or_else(|| "?".to_owned(), |bytes| with_unit(bytes, Some("bytes")))
        }))
        (time("Calls", "calls", &report.api))
        (time("Ranges (NVTX)", "ranges", &report.ranges))
        (launches(&report.launches))
    }
}

/// Returns a figure with the busy time for each of the first [`MAX_DEVICES`] devices.
fn busy(timelines: &[DeviceTimeline]) -> Vec<Figure> {
    let figure = |device: &DeviceTimeline| {
        let time = &device.timeline;
        let busy = device.utilisation_pct.map(|pct| text::percent(pct / 100.0));
        Figure {
            title: "Busy",
            value: busy.map_or_else(|| Value::Words("at one moment".to_owned()), Value::Number),
            below: html! {
                p { (text::name(&device.device)) }
                p.small {
                    (seconds(Some(time.busy))) " of " (seconds(Some(time.span))) ", kernels "
                    (seconds(Some(time.kernels))) ", " (text::counted(time.gaps, "gap")) ", the longest "
                    (seconds(Some(time.longest_gap)))
                }
            },
        }
    };
    timelines.iter().take(MAX_DEVICES).map(figure).collect()
}

fn summary(
    title: &str,
    id: &str,
    rows: &[NsysRow],
    quantity: impl Fn(Option<f64>) -> String,
) -> Markup {
    if rows.is_empty() {
        return html! {};
    }
    let head = [
        ("name", false),
        ("count", true),
        ("total", true),
        ("mean", true),
        ("median", true),
        ("least", true),
        ("most", true),
        ("", false),
    ];
    let all: f64 = rows.iter().map(|row| row.total).sum();
    let lines = rows.iter().take(MAX_ROWS).map(|row| {
        html! { tr {
            td.wide { (text::code(&row.name)) }
            td.num { (text::grouped(row.count)) }
            td.num { (quantity(Some(row.total))) }
            @for value in [row.mean, row.median, row.min, row.max] {
                td.num { @if value.is_some() { (quantity(value)) } }
            }
            td.bar-cell { (parts::bar(0.0, row.total / all)) }
        } }
    });
    Section::new(id, title)
        .open(id == "kernels")
        .note(html! { (text::counted(rows.len(), "row")) })
        .with(html! {
            (parts::table(title, &head, lines))
            (parts::more(rows.len(), MAX_ROWS, "rows"))
        })
}

fn launches(launches: &[NsysLaunch]) -> Markup {
    if launches.is_empty() {
        return html! {};
    }
    let head =
        [("kernel", false), ("count", true), ("call", true), ("queue", true), ("kernel", true)];
    let rows = launches.iter().take(MAX_ROWS).map(|launch| {
        html! { tr {
            td.wide { (text::code(&launch.kernel)) }
            td.num { (text::grouped(launch.count)) }
            @for time in [launch.api_time, launch.queue_time, launch.kernel_time] { td.num { (seconds(time)) } }
        } }
    });
    Section::new("launches", "Launches")
        .note(html! { (text::counted(launches.len(), "row")) })
        .with(html! {
            (parts::table("Launches", &head, rows))
            (parts::more(launches.len(), MAX_ROWS, "rows"))
        })
}

pub(super) fn sanitizer(log: &SanitizerLog) -> Markup {
    let count = log.findings.len();
    let (tone, word) = match (count, log.errors) {
        (0, Some(0)) => (Tone::Good, "no findings".to_owned()),
        (0, _) => (Tone::Doubt, "no findings".to_owned()),
        (count, _) => (Tone::Bad, text::counted(count, "finding")),
    };
    let errors = match log.errors {
        Some(errors) => html! { (text::grouped(errors)) " errors by the tool's own count." },
        None => html! { "The tool did not come to its end." },
    };
    let leaked = html! {
        @if let Some([bytes, allocations]) = log.leaked {
            (text::grouped(bytes)) " bytes in " (text::grouped(allocations)) " allocations were not freed."
        }
        @if let Some(left_out) = log.left_out { " " (text::grouped(left_out)) " findings are left out." }
    };
    html! {
        (opening(tone, &word, html! { "Log of compute-sanitizer" }, &[errors, leaked]))
        (notes(&log.notes))
        @if count > 0 {
            (Section::new("findings", "Findings").open(true).tone(Tone::Bad)
                .note(html! { (text::counted(count, "finding")) })
                .with(html! {
                    @for one in log.findings.iter().take(MAX_FINDINGS) { (finding(one)) }
                    (parts::more(count, MAX_FINDINGS, "findings"))
                }))
        }
    }
}

fn finding(finding: &SanitizerFinding) -> Markup {
    let at = |index: [u32; 3]| format!("({}, {}, {})", index[0], index[1], index[2]);
    html! {
        div.finding.bad {
            p {
                strong { (finding.check.replace('_', " ")) }
                @if let Some(source) = &finding.source { " at " (text::code(source)) }
                @if let Some(other) = &finding.other { ", against " (text::code(other)) }
                @if finding.count > 1 { ", " (text::grouped(finding.count)) " times" }
            }
            p { (text::message(&finding.message)) }
            @if !finding.kernel.is_empty() {
                p.small.dim {
                    "kernel " (text::code(&finding.kernel))
                    @if let (Some(thread), Some(block)) = (finding.thread, finding.block) {
                        ", thread " (at(thread)) " of block " (at(block))
                    }
                }
            }
        }
    }
}

pub(super) fn source(page: &SourcePage) -> Markup {
    let lines: usize = page.kernels.iter().map(|kernel| kernel.lines.len()).sum();
    let sentence = html! { (text::counted(lines, "line")) " of code with counters." };
    let word = text::counted(page.kernels.len(), "kernel");
    html! {
        (opening(Tone::Plain, &word, html! { "Source page of Nsight Compute" }, &[sentence]))
        (notes(&page.notes))
        @for (index, kernel) in page.kernels.iter().take(MAX_SOURCES).enumerate() { (lines_of(index, kernel)) }
        (parts::more(page.kernels.len(), MAX_SOURCES, "kernels"))
    }
}

/// Shows the lines of a kernel that have the most samples.
fn lines_of(index: usize, kernel: &SourcePageKernel) -> Markup {
    let samples = |line: &SourceLine| {
        let found = line.counters.iter().find(|(name, _)| name.contains("Sampl"));
        found.map_or(0.0, |(_, count)| *count)
    };
    let mut lines: Vec<&SourceLine> = kernel.lines.iter().collect();
    lines.sort_by(|a, b| samples(b).total_cmp(&samples(a)));
    let most = lines.first().map_or(0.0, |line| samples(line));
    let head = [("line", true), ("code", false), ("samples", true), ("", false)];
    let rows = lines.iter().take(MAX_ROWS).map(|line| {
        let place = line
            .number
            .map_or_else(|| line.address.clone().unwrap_or_default(), |number| number.to_string());
        html! { tr {
            td.num { (text::name(&place)) }
            td.wide { (text::code(&line.source)) }
            td.num { (text::number(samples(line))) }
            td.bar-cell { (parts::bar(0.0, samples(line) / most)) }
        } }
    });
    let title = text::shown(&kernel.kernel.replace('\n', " "), text::NAME);
    Section::new(format!("kernel-{index}"), &title)
        .open(index == 0)
        .note(html! { (text::counted(kernel.lines.len(), "line")) })
        .with(html! {
            (parts::table("Lines with most samples", &head, rows))
            (parts::more(lines.len(), MAX_ROWS, "lines"))
        })
}
