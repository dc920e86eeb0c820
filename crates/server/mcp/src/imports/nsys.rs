//! Converts tables of Nsight Systems to an answer.

use std::collections::BTreeMap;

use serde_json::json;

use super::draft::{Draft, Reading, counted, message, name, seconds};
use warpgauge_metrics::import::DeviceTimeline;
use warpgauge_metrics::nsys::{NsysLaunch, NsysReport, NsysRow};
use warpgauge_report::readable::quantity;

/// Maximum number of kernels in the structured content and in the text.
const MAX_KERNELS: usize = 20;
const TEXT_KERNELS: usize = 8;

/// Maximum number of other rows of a table in the structured content and in the text.
const MAX_ROWS: usize = 8;
const TEXT_ROWS: usize = 3;

/// All kernels with the same name.
struct KernelTime<'a> {
    name: &'a str,
    total: f64,
    launches: u64,
}

/// Returns the answer. The kernels with the longest total time come first.
pub(super) fn reading(report: &NsysReport, timelines: &[DeviceTimeline]) -> Reading {
    let kernels = kernels(report);
    let all: f64 = kernels.iter().map(|kernel| kernel.total).sum();
    let share = |kernel: &KernelTime<'_>| (all > 0.0).then(|| 100.0 * kernel.total / all);
    let mut draft = Draft::new("nsys", "NSIGHT SYSTEMS", &summary(report, &kernels, all));
    for kernel in kernels.iter().take(TEXT_KERNELS) {
        let share = share(kernel).map_or_else(String::new, |pct| format!(" ({pct:.1} %)"));
        let (name, total) = (name(kernel.name), seconds(Some(kernel.total)));
        let mean = seconds(Some(mean(kernel)));
        let launches = counted(kernel.launches, "launch", "launches");
        draft.fact(&format!("{name}: {total}{share} in {launches}, mean {mean}"));
    }
    if let (true, Some(left_out)) = (report.kernels.is_empty(), report.trace_left_out) {
        // The busy times are of all activities.
        let listed = report.trace.len();
        draft.fact(&format!(
            "times of kernels are of the first {listed} activities, without {left_out} more; for all of them \
             add `--report cuda_gpu_kern_sum`"
        ));
    }
    for device in timelines.iter().take(TEXT_ROWS) {
        draft.fact(&busy(device));
    }
    for (title, rows) in
        [("copies", sorted(&report.memory_time)), ("calls of CUDA", sorted(&report.api))]
    {
        if !rows.is_empty() {
            let rows = rows.iter().take(TEXT_ROWS).map(|row| {
                format!("{} {} in {}", name(&row.name), seconds(Some(row.total)), row.count)
            });
            draft.fact(&format!("{title}: {}", rows.collect::<Vec<String>>().join(", ")));
        }
    }
    if !report.memory_size.is_empty() {
        let rows = sorted(&report.memory_size).into_iter().take(TEXT_ROWS).map(|row| {
            format!("{} {} in {}", name(&row.name), quantity(row.total, "bytes"), row.count)
        });
        draft.fact(&format!("copied: {}", rows.collect::<Vec<String>>().join(", ")));
    }
    for launch in report.launches.iter().take(TEXT_ROWS) {
        let [call, queue, kernel] =
            [launch.api_time, launch.queue_time, launch.kernel_time].map(seconds);
        let name = name(&launch.kernel);
        draft.fact(&format!("launches of {name}: call {call}, queue {queue}, kernel {kernel}"));
    }
    for problem in report.problems.iter().take(TEXT_ROWS) {
        draft.fact(&format!("{} ({})", problem.reason, problem.remedy));
    }
    draft.list("kernels", &kernels, MAX_KERNELS, |kernel| {
        json!({
            "kernel": name(kernel.name), "total_seconds": kernel.total, "share_pct": share(kernel),
            "launches": kernel.launches, "mean_seconds": mean(kernel),
        })
    });
    rest(&mut draft, report, timelines);
    draft.notes(&report.notes);
    draft.finish()
}

/// Sets the lists of the structured content that are not about kernels.
fn rest(draft: &mut Draft, report: &NsysReport, timelines: &[DeviceTimeline]) {
    let timed = |row: &&NsysRow| json!({"name": name(&row.name), "total_seconds": row.total, "count": row.count});
    draft.list("devices", timelines, MAX_ROWS, |device| {
        let mut entry = json!(device.timeline);
        entry["device"] = name(&device.device).into();
        entry["utilisation_pct"] = json!(device.utilisation_pct);
        entry
    });
    draft.list("copies", &sorted(&report.memory_time), MAX_ROWS, timed);
    draft.list(
        "copied",
        &sorted(&report.memory_size),
        MAX_ROWS,
        |row| json!({"name": name(&row.name), "total_bytes": row.total, "count": row.count}),
    );
    draft.list("calls", &sorted(&report.api), MAX_ROWS, timed);
    draft.list("launches", &report.launches, MAX_ROWS, |launch: &NsysLaunch| {
        json!({
            "kernel": name(&launch.kernel), "call_seconds": launch.api_time,
            "queue_seconds": launch.queue_time, "kernel_seconds": launch.kernel_time,
        })
    });
    draft.list("problems", &report.problems, MAX_ROWS, |problem| {
        message(&format!("{} ({})", problem.reason, problem.remedy)).into()
    });
}

/// Returns the kernels by total time: those of the tables of kernels, or else those of the trace.
fn kernels(report: &NsysReport) -> Vec<KernelTime<'_>> {
    let mut by_name: BTreeMap<&str, (f64, u64)> = BTreeMap::new();
    let mut add = |name, total, launches: u64| {
        let (time, count) = by_name.entry(name).or_insert((0.0, 0));
        *time += total;
        *count = count.saturating_add(launches);
    };
    for row in &report.kernels {
        add(&row.name, row.total, row.count);
    }
    if report.kernels.is_empty() {
        // Only kernels have a grid.
        for event in report.trace.iter().filter(|event| event.grid.is_some()) {
            add(&event.name, event.duration, 1);
        }
    }
    let kernels = by_name.into_iter();
    let mut kernels: Vec<KernelTime<'_>> =
        kernels.map(|(name, (total, launches))| KernelTime { name, total, launches }).collect();
    kernels.sort_by(|a, b| b.total.total_cmp(&a.total));
    kernels
}

/// Returns rows, the largest total first.
fn sorted(rows: &[NsysRow]) -> Vec<&NsysRow> {
    let mut rows: Vec<&NsysRow> = rows.iter().collect();
    rows.sort_by(|a, b| b.total.total_cmp(&a.total));
    rows
}

fn mean(kernel: &KernelTime<'_>) -> f64 {
    kernel.total / kernel.launches.max(1) as f64
}

fn summary(report: &NsysReport, kernels: &[KernelTime<'_>], all: f64) -> String {
    if let Some(first) = kernels.first() {
        let total: u64 = kernels.iter().fold(0, |sum, one| sum.saturating_add(one.launches));
        let launches = counted(total, "launch", "launches");
        let number = counted(kernels.len() as u64, "kernel", "kernels");
        let (time, longest) = (seconds(Some(all)), name(first.name));
        return format!("{number}, {launches}, {time} in all; {longest} takes the longest");
    }
    if let Some(problem) = report.problems.first() {
        return format!("{} ({})", problem.reason, problem.remedy);
    }
    let rows = report.memory_time.len() + report.memory_size.len() + report.api.len();
    match report.launches.len() {
        0 => {
            let rows = counted((rows + report.trace.len()) as u64, "row", "rows");
            format!("no table of kernels; {rows} of other tables")
        }
        launches => format!("launches of {}", counted(launches as u64, "kernel", "kernels")),
    }
}

fn busy(device: &DeviceTimeline) -> String {
    let time = &device.timeline;
    let busy = device.utilisation_pct.map_or_else(String::new, |pct| format!(" ({pct:.1} %)"));
    let [span, used, kernels, gap] =
        [time.span, time.busy, time.kernels, time.longest_gap].map(|time| seconds(Some(time)));
    format!(
        "{}: busy {used}{busy} of {span}, kernels {kernels}, {} gaps, the longest {gap}",
        name(&device.device),
        time.gaps
    )
}
