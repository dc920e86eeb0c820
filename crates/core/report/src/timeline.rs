//! Wire types of a timeline. The main type is [`TimelineReport`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use warpgauge_model::Unavailable;

/// What the GPU and the driver did while the kernel was launched some times, by Nsight Systems. These
/// launches are others than the timed ones, and slower. Of a whole program, all that it did in a run of its
/// own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineReport {
    /// Whether there is one.
    pub available: bool,
    /// Why there is none, and what would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<Unavailable>,
    /// The tool and its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The run in a few figures, all measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<ExecutionSummary>,
    /// The GPU's time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuTime>,
    /// Kernels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<TimelineRow>,
    /// Copies and fills, with what they moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<TimelineRow>,
    /// Calls of the driver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<TimelineRow>,
    /// How launches got from the call to the kernel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launches: Vec<LaunchRow>,
    /// Tables of the tool that could not be had, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, Unavailable>,
}

/// A run in a few figures: the results that KRAIT's executor reports, measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionSummary {
    /// `success`.
    pub status: String,
    /// Product name of the device.
    pub hardware: String,
    /// Median time of the kernel in the timeline, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_time_ms: Option<f64>,
    /// Share of the traced time in which the GPU was busy, %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_utilization_pct: Option<f64>,
    /// Device memory that the kernel's buffers took, as the driver reports, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_used_bytes: Option<u64>,
    /// Bytes of the contract's `work` by the execution time, per second. Absent if it states none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_bytes_per_s: Option<f64>,
    /// Operations of the contract's `work` by the execution time, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_flops_per_s: Option<f64>,
}

/// How the GPU spent the traced time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GpuTime {
    /// From the begin of the first to the end of the last thing it did, milliseconds.
    pub span_ms: f64,
    /// In which it did something.
    pub busy_ms: f64,
    /// In which it ran kernels.
    pub kernels_ms: f64,
    /// In which it did nothing.
    pub idle_ms: f64,
    /// Times at which it began to do nothing.
    pub gaps: u64,
    /// The longest of them.
    pub longest_gap_ms: f64,
}

/// Things of one kind, with their times in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineRow {
    /// The kernel, the kind of copy, or the call.
    pub name: String,
    /// How many.
    pub count: u64,
    /// All together.
    pub total_ms: f64,
    /// Mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ms: Option<f64>,
    /// Median. Older tools do not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ms: Option<f64>,
    /// Shortest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ms: Option<f64>,
    /// Longest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<f64>,
    /// Standard deviation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub std_dev_ms: Option<f64>,
    /// What was moved or filled, all together, bytes; absent for what moves nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
}

/// Launches of one kernel by one call: mean times in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaunchRow {
    /// The kernel.
    pub kernel: String,
    /// The call.
    pub call: String,
    /// How many.
    pub count: u64,
    /// In the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_ms: Option<f64>,
    /// From the end of the call to the begin of the kernel: the wait for what was queued before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_ms: Option<f64>,
    /// In the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_ms: Option<f64>,
    /// From the begin of the call to the end of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_ms: Option<f64>,
}
