//! Wire types of a timeline. The main type is [`TimelineReport`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use warpgauge_model::Unavailable;

/// Timeline of the GPU and the driver, recorded by Nsight Systems. For a kernel, it covers separate
/// launches, which are slower than the timed ones. For a whole program, it covers a separate run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineReport {
    /// Whether there is a timeline.
    pub available: bool,
    /// Reason why there is no timeline, with a remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<Unavailable>,
    /// Name and version of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Summary of the run. All values are measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<ExecutionSummary>,
    /// Use of the GPU's time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuTime>,
    /// Kernels with their times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<TimelineRow>,
    /// Copies and fills with their times and bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<TimelineRow>,
    /// Calls of the driver with their times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<TimelineRow>,
    /// Launches with their times from the call to the end of the kernel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launches: Vec<LaunchRow>,
    /// Tables of the tool that are not available, with the reasons.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, Unavailable>,
}

/// Summary of a run, with the fields of the report of KRAIT's executor. All values are measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionSummary {
    /// Always `success`.
    pub status: String,
    /// Product name of the device.
    pub hardware: String,
    /// Median time of the kernel in the timeline, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_time_ms: Option<f64>,
    /// Share of the traced time in which the GPU was busy, %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_utilization_pct: Option<f64>,
    /// Device memory that the kernel's buffers take, as the driver reports it, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_used_bytes: Option<u64>,
    /// Throughput from the bytes of the contract's `work` and the execution time, bytes per second. Absent if the
    /// contract declares no bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_bytes_per_s: Option<f64>,
    /// Throughput from the operations of the contract's `work` and the execution time, operations per second. Absent
    /// if the contract declares no operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_flops_per_s: Option<f64>,
}

/// Use of the GPU's time while it was traced.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GpuTime {
    /// Time from the start of the GPU's first activity to the end of its last, milliseconds.
    pub span_ms: f64,
    /// Time in which the GPU was busy, milliseconds.
    pub busy_ms: f64,
    /// Time in which the GPU ran kernels, milliseconds.
    pub kernels_ms: f64,
    /// Time in which the GPU was idle, milliseconds.
    pub idle_ms: f64,
    /// Number of idle intervals.
    pub gaps: u64,
    /// Longest idle interval, milliseconds.
    pub longest_gap_ms: f64,
}

/// Kernels, copies or calls of one kind, with their times in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineRow {
    /// Name of the kernel, of the kind of copy, or of the call.
    pub name: String,
    /// Number of occurrences.
    pub count: u64,
    /// Sum of the times, milliseconds.
    pub total_ms: f64,
    /// Mean time, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ms: Option<f64>,
    /// Median time, milliseconds. Absent where an older tool does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ms: Option<f64>,
    /// Shortest time, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ms: Option<f64>,
    /// Longest time, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<f64>,
    /// Standard deviation of the times, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub std_dev_ms: Option<f64>,
    /// Sum of the bytes that were moved or filled. Absent for rows that move nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
}

/// Launches of one kernel by one call, with mean times in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaunchRow {
    /// Name of the kernel.
    pub kernel: String,
    /// Name of the call.
    pub call: String,
    /// Number of launches.
    pub count: u64,
    /// Time in the call, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_ms: Option<f64>,
    /// Time from the end of the call to the start of the kernel, milliseconds: the wait for earlier work in the
    /// queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_ms: Option<f64>,
    /// Time in the kernel, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_ms: Option<f64>,
    /// Time from the start of the call to the end of the kernel, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_ms: Option<f64>,
}
