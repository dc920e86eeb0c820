//! Wire types of device metrics.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use warpgauge_model::Unavailable;

use super::advice::Advice;
use super::cross_check::CrossCheck;
use super::roofline::Roofline;

/// Metrics of one kernel: of one launch of it, apart from the timed ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceMetrics {
    /// The values by the groups and names of the CUDA Evaluation Server. What is not known is
    /// absent.
    pub original_device_metrics: MetricGroups,
    /// At the top of a comparison, those of the first candidate, as the rest here is; then
    /// `original_device_metrics` has those of the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_device_metrics: Option<MetricGroups>,
    /// Symbol of the kernel.
    pub kernel: String,
    /// Where the values come from.
    pub source: MetricSource,
    /// The tool and its version, e.g. `warpgauge-emulator 0.1.0`.
    pub tool: String,
    /// How the values of `source` were taken. Absent where nothing was run for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Conditions>,
    /// Why a better source than `source` gave nothing, and what would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<Unavailable>,
    /// Every metric that was asked for, by id: its value, or why there is none.
    pub metrics: BTreeMap<String, Metric>,
    /// Where the kernel stands below what the device can do. Absent if neither operations nor bytes
    /// are among the metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roofline: Option<Roofline>,
    /// What stands out, the largest shares first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
    /// The profiled launch beside the timed ones. Absent where one of them has no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cross_check: Option<CrossCheck>,
    /// Each kernel, if there were several launches, those that took longest first: then `metrics`
    /// is of all together, with times and counts added and percentages weighted by time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<KernelMetrics>,
    /// Kernels that are not among `kernels`, because there were too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernels_left_out: Option<u32>,
}

/// Metrics of all launches of one kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelMetrics {
    /// The kernel, as the tool names it.
    pub kernel: String,
    /// How often it was profiled.
    pub launches: u32,
    /// As those of all kernels.
    pub metrics: BTreeMap<String, Metric>,
}

/// How the values of a tool were taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conditions {
    /// What the tool did to the clocks. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_control: Option<ClockControl>,
    /// What the tool did to the caches before each pass. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<CacheControl>,
    /// How the kernel was run again for each pass. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// Passes: launches that it took to read all counters. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<u32>,
    /// Time over which monitoring read, milliseconds: back-to-back launches all the while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ms: Option<u32>,
    /// Launches in that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launches: Option<u32>,
}

/// What a tool does to the clocks while it measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClockControl {
    /// Nothing: they are those of an unprofiled run.
    None,
    /// Locks them to the base clock.
    Base,
    /// Locks them to the boost clock.
    Boost,
}

/// What a tool does to the caches before each pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheControl {
    /// Nothing.
    None,
    /// Empties all of them.
    All,
}

/// How a kernel is run again for each pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Replay {
    /// The tool launches it again and restores memory.
    Kernel,
    /// The tool starts the program again.
    Application,
    /// The tool runs a range of the program again.
    Range,
    /// The service launches it again and restores the inputs.
    User,
    /// The service launches it back to back, again and again, with inputs that it
    /// changes restored between them; the values are means over all that.
    BackToBack,
}

/// One metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metric {
    /// The value, in `unit`. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Unit, e.g. `sectors`, `bytes`, `%`. Absent for what is no metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Where the value comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<MetricSource>,
    /// What to know about the value, e.g. that it rests on an estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Why there is no value, and what would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What found a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MetricSource {
    /// The emulator counted it: exact for the PTX and its data, with no machine involved.
    Emulator,
    /// CUPTI read the counters in the process that launched the kernel.
    Cupti,
    /// Nsight Compute read the counters.
    Ncu,
    /// The driver's performance monitoring: of the whole GPU while the kernel ran again and again.
    Gpm,
    /// It follows from the launch, the kernel's resources and the device.
    Static,
}

/// Values by the groups and names of the CUDA Evaluation Server's responses, in the units of those
/// names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricGroups {
    /// Throughputs as percentages of the hardware's peak.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub speed_of_light: BTreeMap<String, f64>,
    /// Hit rates, occupancy, instructions per cycle.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub detailed_metrics: BTreeMap<String, f64>,
    /// Memory bandwidth and activity.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub memory_metrics: BTreeMap<String, f64>,
    /// Use of the pipelines, and what limits occupancy.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub compute_metrics: BTreeMap<String, f64>,
    /// Cycles in which the pipelines were active.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pipeline_metrics: BTreeMap<String, f64>,
    /// The launch, and how much of it fits a multiprocessor.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub occupancy_metrics: BTreeMap<String, f64>,
    /// What warps waited for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stall_metrics: BTreeMap<String, f64>,
    /// What the schedulers had to choose from.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scheduler_metrics: BTreeMap<String, f64>,
    /// How well accesses to memory combine.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub access_pattern_metrics: BTreeMap<String, f64>,
    /// Operations, bytes, and operations per byte.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub roofline_metrics: BTreeMap<String, f64>,
    /// Duration of the profiled launch.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub timing_metrics: BTreeMap<String, f64>,
}
