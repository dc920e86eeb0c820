//! Formats imported files as tables.

use super::format::{duration_ms, quantity};
use super::import_verdict;
use super::terminal::plain;
use warpgauge_compile::readable;
use warpgauge_metrics::catalogue::CATALOGUE;
use warpgauge_metrics::import::{DeviceTimeline, Imported};
use warpgauge_metrics::ncu::{SourceLine, SourcePageKernel};
use warpgauge_metrics::nsys::{NsysLaunch, NsysReport, NsysRow};
use warpgauge_metrics::sanitizer::{SanitizerFinding, SanitizerLog};
use warpgauge_metrics::{DeviceMetrics, Metric};

/// Maximum number of rows in a table. `--json` prints all rows.
const MAX_ROWS: usize = 30;
/// Maximum length of a shown name, characters.
const MAX_NAME: usize = 70;

pub(super) fn table(imported: &Imported) -> String {
    match imported {
        Imported::Ncu { device_metrics, verdicts, rules, notes: told } => {
            notes(told) + &import_verdict::verdicts(verdicts, rules) + &metrics(device_metrics)
        }
        Imported::NcuSource(page) => notes(&page.notes) + &rows(&page.kernels, source),
        Imported::Nsys { report, timelines } => notes(&report.notes) + &timeline(report, timelines),
        Imported::Sanitizer(log) => notes(&log.notes) + &findings(log),
    }
}

/// Returns the notes of an imported file as lines.
fn notes(notes: &[String]) -> String {
    rows(notes, |note| format!("note: {}\n", plain(note)))
}

pub(super) fn name(text: &str) -> String {
    let text = plain(&readable(text).replace(['\n', '\t'], " "));
    match text.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Returns at most [`MAX_ROWS`] lines, followed by a line with the number of omitted ones.
pub(super) fn rows<T>(items: &[T], line: impl Fn(&T) -> String) -> String {
    let mut text: String = items.iter().take(MAX_ROWS).map(line).collect();
    if items.len() > MAX_ROWS {
        let more = items.len() - MAX_ROWS;
        text.push_str(&format!("  … and {more} more (all with --json)\n"));
    }
    text
}

fn metrics(metrics: &DeviceMetrics) -> String {
    let mut text = format!("{}, by {}\n", name(&metrics.kernel), plain(&metrics.tool));
    if !metrics.kernels.is_empty() {
        text.push_str("  times and counts are sums; percentages are averages weighted by time\n");
    }
    text.push('\n');
    for info in CATALOGUE {
        if let Some(Metric { value: Some(value), .. }) = metrics.metrics.get(info.id) {
            let value = quantity(*value, info.unit.name());
            text.push_str(&format!("  {:<34} {value}\n", info.id));
        }
    }
    let absent = metrics.metrics.values().filter(|metric| metric.value.is_none()).count();
    if absent > 0 {
        text.push_str(&format!(
            "\n  {absent} metrics have no value; --json gives the reason for each\n"
        ));
    }
    text
}

/// Returns the source lines of a kernel that have the most samples. If there are no samples,
/// returns lines in the order of the page.
fn source(kernel: &SourcePageKernel) -> String {
    let of = |line: &SourceLine| {
        let samples = line.counters.iter().find(|(name, _)| name.contains("Sampl"));
        samples.map(|(name, count)| (name.clone(), *count))
    };
    let title = kernel.lines.iter().find_map(of).map_or_else(String::new, |(name, _)| name);
    let mut lines: Vec<(f64, &SourceLine)> =
        kernel.lines.iter().map(|line| (of(line).map_or(0.0, |(_, count)| count), line)).collect();
    lines.sort_by(|a, b| b.0.total_cmp(&a.0));
    let line = |(count, line): &(f64, &SourceLine)| {
        let place = line
            .number
            .map_or_else(|| line.address.clone().unwrap_or_default(), |number| number.to_string());
        format!("  {count:>12.0}  {:>16}  {}\n", plain(&place), name(&line.source))
    };
    format!("{}: {} lines, by {}\n", name(&kernel.kernel), lines.len(), plain(&title))
        + &rows(&lines, line)
}

pub(super) fn seconds(value: Option<f64>) -> String {
    value.map_or_else(|| "?".to_owned(), |value| duration_ms(value * 1e3))
}

fn timeline(report: &NsysReport, timelines: &[DeviceTimeline]) -> String {
    let mut text = String::new();
    for device in timelines {
        let time = &device.timeline;
        let busy = device.utilisation_pct.map_or_else(String::new, |pct| format!(" ({pct:.1} %)"));
        text.push_str(&format!(
            "{}: {} from the first activity to the last, busy {}{busy}, kernels {}, {} gaps, the \
             longest {}\n",
            name(&device.device),
            seconds(Some(time.span)),
            seconds(Some(time.busy)),
            seconds(Some(time.kernels)),
            time.gaps,
            seconds(Some(time.longest_gap)),
        ));
    }
    let times = |row: &NsysRow| summary(row, seconds);
    let sizes = |row: &NsysRow| {
        summary(row, |size| size.map_or_else(|| "?".to_owned(), |b| quantity(b, "bytes")))
    };
    if !report.trace.is_empty() {
        let all = report.trace.len() as u64 + report.trace_left_out.unwrap_or(0);
        text.push_str(&format!("{all} activities of the GPU\n"));
    }
    let mut section = |title: &str, lines: String| {
        if !lines.is_empty() {
            text.push_str(&format!("{title}\n{lines}"));
        }
    };
    section("kernels: total, count, mean", rows(&report.kernels, times));
    section("copies: total, count, mean", rows(&report.memory_time, times));
    section("copied: total, count, mean", rows(&report.memory_size, sizes));
    section("calls: total, count, mean", rows(&report.api, times));
    section("ranges (NVTX): total, count, mean", rows(&report.ranges, times));
    section("launches: call, queue, kernel", rows(&report.launches, launch));
    for problem in &report.problems {
        text.push_str(&format!("{} ({})\n", plain(&problem.reason), plain(&problem.remedy)));
    }
    text
}

fn summary(row: &NsysRow, quantity: impl Fn(Option<f64>) -> String) -> String {
    let (total, mean) = (quantity(Some(row.total)), quantity(row.mean));
    format!("  {total:>12} {:>8} ×  {mean:>12}  {}\n", row.count, name(&row.name))
}

fn launch(row: &NsysLaunch) -> String {
    let [call, queue, kernel] = [row.api_time, row.queue_time, row.kernel_time].map(seconds);
    format!("  {call:>12} {queue:>12} {kernel:>12}  {}\n", name(&row.kernel))
}

fn findings(log: &SanitizerLog) -> String {
    let errors = match log.errors {
        Some(errors) => format!("{errors} errors as counted by the tool"),
        None => "the tool did not finish".to_owned(),
    };
    let mut text = format!("{} findings; {errors}\n", log.findings.len());
    text.push_str(&rows(&log.findings, finding));
    if let Some(left_out) = log.left_out {
        text.push_str(&format!("  {left_out} more were omitted\n"));
    }
    if let Some([bytes, allocations]) = log.leaked {
        text.push_str(&format!("  {bytes} bytes in {allocations} allocations were not freed\n"));
    }
    text
}

fn finding(found: &SanitizerFinding) -> String {
    let mut place = name(&found.kernel);
    if let Some(source) = &found.source {
        place.push_str(&format!(" at {}", plain(source)));
    }
    if let Some(other) = &found.other {
        place.push_str(&format!(", against {}", plain(other)));
    }
    if let (Some(thread), Some(block)) = (found.thread, found.block) {
        place.push_str(&format!(", thread {thread:?} of block {block:?}"));
    }
    let message = plain(&found.message);
    format!("  {} × {}: {place}\n    {message}\n", found.count, found.check)
}
