//! The timeline of a torch kernel's calls, from the device activity that its process records.

use std::collections::BTreeMap;

use super::gpu::traced::Traced;
use super::judge::Judged;
use crate::profiling::timeline::{MAX_ROWS, gpu_time, is_wanted, none};
use warpgauge_contract::EvaluateRequest;
use warpgauge_metrics::nsys::Timeline;
use warpgauge_model::Cause;
use warpgauge_report::{ExecutionSummary, TimelineReport, TimelineRow};
use warpgauge_statistics::{Sorted, mean, sample_std};
use warpgauge_torch::DeviceTrace;

/// Source of the timeline, as the report names it.
const TOOL: &str = "CUPTI, by PyTorch's profiler in the submission's process";

/// Prefixes of the names of memory copies and fills, which are not kernels.
const NO_KERNELS: [&str; 2] = ["Memcpy", "Memset"];

/// Returns the timeline, or the reason why there is none. Returns `None` if the request does not
/// ask for it.
pub(super) fn timeline_report(
    request: &EvaluateRequest,
    judged: &Judged,
    on_device: bool,
) -> Option<TimelineReport> {
    if !is_wanted(request) {
        return None;
    }
    Some(match &judged.observed.traced {
        Some(Ok(traced)) => match report(traced) {
            Some(report) => report,
            None => none(Cause::NoData.because("no activity of the device was recorded")),
        },
        Some(Err(why)) => {
            none(Cause::ApplicationFailed.because(format!("the calls cannot be traced: {why}")))
        }
        None if !on_device => {
            let text = "the torch kernel ran on the CPU, so there is no device to trace";
            none(Cause::UnsupportedDevice.because(text))
        }
        None => {
            none(Cause::NoKernel.because("the kernel did not run to its end, so it was not traced"))
        }
    })
}

fn report(traced: &Traced) -> Option<TimelineReport> {
    let Traced { trace, calls, hardware } = traced;
    let done = done(trace);
    let activities =
        done.iter().map(|done| (done.begin * 1e-6, done.took * 1e-6, done.is_kernel()));
    let gpu = Timeline::of(activities)?;
    let (kernels, copies) = done.iter().partition::<Vec<&Done<'_>>, _>(|done| done.is_kernel());
    let mut missing = BTreeMap::new();
    if trace.left > 0 {
        let left = trace.left;
        let text = format!("{left} further activities of the device, or calls, are omitted");
        missing.insert("events".to_owned(), Cause::Unknown.because(text));
    }
    Some(TimelineReport {
        available: true,
        unavailable: None,
        tool: Some(format!("{TOOL}, {calls} calls")),
        summary: Some(ExecutionSummary {
            status: "success".to_owned(),
            hardware: hardware.clone(),
            gpu_utilization_pct: gpu.utilisation_pct(),
            ..ExecutionSummary::default()
        }),
        gpu: Some(gpu_time(gpu)),
        kernels: rows(&kernels),
        copies: rows(&copies),
        calls: called(trace),
        launches: Vec::new(),
        missing,
    })
}

/// One activity of the device. Times are in microseconds.
struct Done<'a> {
    name: &'a str,
    begin: f64,
    took: f64,
}

impl Done<'_> {
    fn is_kernel(&self) -> bool {
        !NO_KERNELS.iter().any(|kind| self.name.starts_with(kind))
    }
}

/// Returns the activities of the device. Those with an unknown name or an impossible time are
/// omitted.
fn done(trace: &DeviceTrace) -> Vec<Done<'_>> {
    let told = trace.device.iter().filter_map(|&(name, begin, took)| {
        let sound = begin.is_finite() && took.is_finite() && took >= 0.0;
        let name = trace.names.get(name).filter(|_| sound)?;
        Some(Done { name, begin, took })
    });
    told.collect()
}

/// Groups activities by name, and sorts them by descending total time.
fn rows(done: &[&Done<'_>]) -> Vec<TimelineRow> {
    let mut by_name: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for done in done {
        by_name.entry(done.name).or_default().push(done.took * 1e-3);
    }
    let row = |(name, times): (&str, Vec<f64>)| {
        let sorted = Sorted::new(&times)?;
        Some(TimelineRow {
            name: name.to_owned(),
            count: times.len() as u64,
            total_ms: times.iter().sum(),
            mean_ms: mean(&times),
            median_ms: Some(sorted.median()),
            min_ms: Some(sorted.min()),
            max_ms: Some(sorted.max()),
            std_dev_ms: sample_std(&times),
            bytes: None,
        })
    };
    longest(by_name.into_iter().filter_map(row).collect())
}

fn called(trace: &DeviceTrace) -> Vec<TimelineRow> {
    let row = |&(name, count, total): &(usize, u64, f64)| {
        let sound = count > 0 && total.is_finite() && total >= 0.0;
        let name = trace.names.get(name).filter(|_| sound)?;
        let total_ms = total * 1e-3;
        let mean_ms = Some(total_ms / count as f64);
        Some(TimelineRow { name: name.clone(), count, total_ms, mean_ms, ..TimelineRow::default() })
    };
    longest(trace.calls.iter().filter_map(row).collect())
}

fn longest(mut rows: Vec<TimelineRow>) -> Vec<TimelineRow> {
    rows.sort_by(|a, b| b.total_ms.total_cmp(&a.total_ms));
    rows.truncate(MAX_ROWS);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_tells_becomes_a_report() {
        let trace = DeviceTrace {
            names: ["gemm", "add", "Memcpy DtoD", "cudaLaunchKernel"].map(str::to_owned).to_vec(),
            device: vec![
                (0, 100.0, 50.0),
                (1, 160.0, 10.0),
                (0, 200.0, 70.0),
                (2, 280.0, 20.0),
                // Invalid entries: an unknown name, and impossible times.
                (9, 0.0, 1.0),
                (1, f64::NAN, 1.0),
                (1, 1.0, -1.0),
            ],
            calls: vec![(3, 3, 15.0), (9, 1, 1.0), (3, 0, 1.0)],
            left: 2,
        };
        let traced = Traced { trace, calls: 2, hardware: "GPU".to_owned() };
        let report = report(&traced).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let gpu = report.gpu.unwrap();
        assert!(near(gpu.span_ms, 0.2) && near(gpu.busy_ms, 0.15), "{gpu:?}");
        assert!(near(gpu.kernels_ms, 0.13) && gpu.gaps == 3, "{gpu:?}");
        let names: Vec<_> = report.kernels.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["gemm", "add"]);
        assert!(near(report.kernels[0].median_ms.unwrap(), 0.06));
        assert_eq!(report.copies[0].name, "Memcpy DtoD");
        assert_eq!((report.calls.len(), report.calls[0].count), (1, 3));
        assert_eq!(report.missing.len(), 1);
        assert!(report.tool.unwrap().ends_with("2 calls"));
    }
}
