//! The timeline of an evaluation's kernel, recorded by Nsight Systems.

use crate::host::Host;
use crate::prepare::Prepared;
use warpgauge_contract::EvaluateRequest;
use warpgauge_metrics::nsys::{self as reader, NsysLaunch, NsysReport, NsysRow};
use warpgauge_model::{Cause, DeviceInfo, DeviceKind, Unavailable, Work};
use warpgauge_nsight::ToolFile;
use warpgauge_nsight::nsys::{self, NsysOutput};
use warpgauge_report::{ExecutionSummary, GpuTime, LaunchRow, TimelineReport, TimelineRow};
use warpgauge_worker::Lease;
use warpgauge_worker::protocol::{EvaluatedRun, RunOutcome};

/// Number of launches in a timeline: enough for a median, and few enough for a report that is quick
/// to read.
const LAUNCHES: u32 = 20;

/// Maximum number of rows of each table in a report.
pub(crate) const MAX_ROWS: usize = 100;

/// Name in `profile.tools` that requests a timeline.
const NAME: &str = "nsys";

/// Returns whether a request asks for a timeline.
pub(crate) fn is_wanted(request: &EvaluateRequest) -> bool {
    request.profile.as_ref().is_some_and(|profile| profile.tools.iter().any(|tool| tool == NAME))
}

/// Records a timeline of the kernel, if the request asks for it and the kernel ran.
pub(crate) async fn trace(
    host: &Host,
    lease: &mut Lease,
    request: &EvaluateRequest,
    prepared: &Prepared,
    outcome: &RunOutcome<EvaluatedRun>,
) -> Option<(TimelineReport, Vec<ToolFile>)> {
    if !is_wanted(request) || outcome.failure.is_some() {
        return None;
    }
    let device = lease.device().clone();
    if device.kind == DeviceKind::Emulator {
        let text = "the emulated device provides no timeline; run the contract on a GPU";
        return Some((none(Cause::UnsupportedDevice.because(text)), Vec::new()));
    }
    let asked = nsys::TraceRun {
        job: &prepared.job,
        directory: &prepared.job.directory,
        launches: LAUNCHES,
        cache: request.measure.cache,
        time_limit: host.tool_limit(),
    };
    let traced = nsys::trace(&host.tools, lease, &asked).await;
    Some(reported(traced, &device, request.work.as_ref()))
}

/// Converts a trace to a report; if the trace failed, the report contains the reason. Also returns
/// the files to store.
pub(crate) fn reported(
    traced: Result<NsysOutput, Unavailable>,
    device: &DeviceInfo,
    work: Option<&Work>,
) -> (TimelineReport, Vec<ToolFile>) {
    match traced {
        Ok(traced) => match read(&traced) {
            Ok(tables) => (report(&traced, &tables, device, work), traced.artifacts),
            Err(why) => (none(why), traced.artifacts),
        },
        Err(why) => (none(why), Vec::new()),
    }
}

pub(crate) fn none(why: Unavailable) -> TimelineReport {
    TimelineReport { unavailable: Some(why), ..TimelineReport::default() }
}

fn read(traced: &NsysOutput) -> Result<NsysReport, Unavailable> {
    let text = traced.tables.values().map(String::as_str).collect::<Vec<_>>().join("\n");
    reader::parse_stats(&text).map_err(|error| Cause::Unreadable.because(error.to_string()))
}

fn report(
    traced: &NsysOutput,
    tables: &NsysReport,
    device: &DeviceInfo,
    work: Option<&Work>,
) -> TimelineReport {
    let gpu = reader::timeline(tables.trace.iter());
    let utilization = gpu.as_ref().and_then(reader::Timeline::utilisation_pct);
    // All kernels between the two profiler calls belong to the candidate, including those that it
    // launches itself. The kernel with the longest total time represents the candidate.
    let longest = tables.kernels.iter().max_by(|a, b| a.total.total_cmp(&b.total));
    let time_s = longest.and_then(|kernel| kernel.median.or(kernel.mean));
    let per_s = |amount: Option<f64>| {
        amount.zip(time_s.filter(|time| *time > 0.0)).map(|(amount, time)| amount / time)
    };
    let summary = ExecutionSummary {
        status: "success".to_owned(),
        hardware: device.name.clone(),
        execution_time_ms: time_s.map(ms),
        gpu_utilization_pct: utilization,
        memory_used_bytes: traced.memory_bytes,
        throughput_bytes_per_s: per_s(work.and_then(|work| work.bytes)),
        throughput_flops_per_s: per_s(work.and_then(|work| work.flops)),
    };
    TimelineReport {
        available: true,
        unavailable: None,
        tool: Some(traced.tool.clone()),
        summary: Some(summary),
        gpu: gpu.map(gpu_time),
        kernels: rows(&tables.kernels),
        copies: copies(tables),
        calls: rows(&tables.api),
        launches: tables.launches.iter().take(MAX_ROWS).map(launch).collect(),
        missing: traced
            .missing
            .iter()
            .map(|(table, why)| (table.names()[0].to_owned(), why.clone()))
            .collect(),
    }
}

pub(crate) fn gpu_time(gpu: reader::Timeline) -> GpuTime {
    GpuTime {
        span_ms: ms(gpu.span),
        busy_ms: ms(gpu.busy),
        kernels_ms: ms(gpu.kernels),
        idle_ms: ms(gpu.idle()),
        gaps: gpu.gaps as u64,
        longest_gap_ms: ms(gpu.longest_gap),
    }
}

fn rows(rows: &[NsysRow]) -> Vec<TimelineRow> {
    rows.iter().take(MAX_ROWS).map(row).collect()
}

fn row(row: &NsysRow) -> TimelineRow {
    TimelineRow {
        name: row.name.clone(),
        count: row.count,
        total_ms: ms(row.total),
        mean_ms: row.mean.map(ms),
        median_ms: row.median.map(ms),
        min_ms: row.min.map(ms),
        max_ms: row.max.map(ms),
        std_dev_ms: row.std_dev.map(ms),
        bytes: None,
    }
}

/// Combines the times and sizes of copies, which are in two tables of the trace.
fn copies(tables: &NsysReport) -> Vec<TimelineRow> {
    let mut copies = rows(&tables.memory_time);
    for copy in &mut copies {
        let size = tables.memory_size.iter().find(|size| size.name == copy.name);
        copy.bytes = size.map(|size| size.total);
    }
    copies
}

fn launch(launch: &NsysLaunch) -> LaunchRow {
    LaunchRow {
        kernel: launch.kernel.clone(),
        call: launch.api.clone(),
        count: launch.count,
        call_ms: launch.api_time.map(ms),
        queued_ms: launch.queue_time.map(ms),
        kernel_ms: launch.kernel_time.map(ms),
        total_ms: launch.total.map(ms),
    }
}

fn ms(seconds: f64) -> f64 {
    seconds * 1e3
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::testing::h200;
    use warpgauge_nsight::nsys::NsysTable;

    macro_rules! recorded {
        ($name:literal) => {
            include_str!(concat!(
                "../../../../../tests/fixtures/profile/nsys/2025.3.1-",
                $name,
                ".txt"
            ))
        };
    }

    fn traced() -> NsysOutput {
        let tables = [
            (NsysTable::Kernels, recorded!("cuda_gpu_kern_sum")),
            (NsysTable::MemoryTime, recorded!("cuda_gpu_mem_time_sum")),
            (NsysTable::MemorySize, recorded!("cuda_gpu_mem_size_sum")),
            (NsysTable::Calls, recorded!("cuda_api_sum")),
            (NsysTable::Trace, recorded!("cuda_gpu_trace")),
        ];
        NsysOutput {
            tables: tables.map(|(table, text)| (table, text.to_owned())).into(),
            missing: BTreeMap::from([(
                NsysTable::Launches,
                Cause::UnknownReport.because("too old"),
            )]),
            log: String::new(),
            tool: "Nsight Systems 2025.3.1.0".to_owned(),
            artifacts: Vec::new(),
            memory_bytes: Some(1 << 20),
        }
    }

    #[test]
    fn recorded_tables_become_a_report() {
        let traced = traced();
        let work = Work { bytes: Some(2375257.0), flops: None };
        let report = report(&traced, &read(&traced).unwrap(), &h200(), Some(&work));
        let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 1e-9;
        let summary = report.summary.unwrap();
        assert!(near(summary.execution_time_ms.unwrap(), 2.375257), "{summary:?}");
        assert!(near(summary.throughput_bytes_per_s.unwrap(), 1e9), "{summary:?}");
        assert_eq!(summary.throughput_flops_per_s, None);
        assert_eq!(summary.memory_used_bytes, Some(1 << 20));
        assert_eq!(report.kernels.len(), 5);
        let copy = &report.copies[0];
        assert_eq!((copy.name.as_str(), copy.count), ("[CUDA memcpy Device-to-Host]", 1));
        assert!(near(copy.bytes.unwrap(), 67.109e6), "{copy:?}");
        let gpu = report.gpu.unwrap();
        // The span is from the start of the first fill to the end of the copy back.
        assert!(near(gpu.span_ms, (503598941.0 + 39701897.0 - 500698278.0) * 1e-6), "{gpu:?}");
        assert!(near(gpu.busy_ms + gpu.idle_ms, gpu.span_ms) && gpu.kernels_ms < gpu.busy_ms);
        assert_eq!(report.calls[0].name, "cudaMalloc");
        assert_eq!(report.missing["cuda_kern_exec_sum"].code, "unknown_report");
    }
}
