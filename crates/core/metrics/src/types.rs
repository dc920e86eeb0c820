//! Wire types of device metrics.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use warpgauge_model::Unavailable;

use super::advice::Advice;
use super::cross_check::CrossCheck;
use super::roofline::Roofline;

/// Device metrics, which are measured in a launch separate from the timed ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceMetrics {
    /// Metrics with the groups and names of the CUDA Evaluation Server. Unknown values are absent.
    pub original_device_metrics: MetricGroups,
    /// Metrics of the first candidate. Only present at the top level of a comparison, where `original_device_metrics`
    /// contains those of the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_device_metrics: Option<MetricGroups>,
    /// Symbol name of the kernel.
    pub kernel: String,
    /// Source of the metrics.
    pub source: MetricSource,
    /// Name and version of the tool, e.g. `warpgauge-emulator 0.1.0`.
    pub tool: String,
    /// Conditions of the measurement by `source`. Absent if nothing was run for the metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Conditions>,
    /// Reason why a better source than `source` was not available, with a remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<Unavailable>,
    /// Requested metrics by id, each with its value or a reason.
    pub metrics: BTreeMap<String, Metric>,
    /// Roofline of the kernel. Absent if the metrics include neither operations nor bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roofline: Option<Roofline>,
    /// Observations about the kernel, those with the largest shares first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
    /// Comparison of the profiled launch with the timed ones. Absent if the time of either is not known, and on the
    /// emulated device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cross_check: Option<CrossCheck>,
    /// Metrics of each kernel if there were several launches, the kernel with the longest time first. `metrics` then
    /// contains the combination of all kernels: times and counts are added, and percentages are averages weighted by
    /// time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<KernelMetrics>,
    /// Number of kernels that are not in `kernels`, because there were too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernels_left_out: Option<u32>,
}

/// Metrics of all launches of one kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelMetrics {
    /// Name of the kernel, as the tool reports it.
    pub kernel: String,
    /// Number of profiled launches.
    pub launches: u32,
    /// Metrics of this kernel, by id.
    pub metrics: BTreeMap<String, Metric>,
}

/// Conditions under which the metrics were measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conditions {
    /// Setting of the clocks. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_control: Option<ClockControl>,
    /// Setting of the caches before each pass. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<CacheControl>,
    /// Way in which the kernel is repeated for each pass. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// Number of passes: launches that were needed to read all counters. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<u32>,
    /// Time for which back-to-back launches were monitored, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ms: Option<u32>,
    /// Number of launches in the monitored time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launches: Option<u32>,
}

/// Setting of the GPU's clocks while the kernel is profiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClockControl {
    /// Clocks are not locked.
    None,
    /// Clocks are locked to the base clock.
    Base,
    /// Clocks are locked to the boost clock.
    Boost,
}

/// Setting of the caches before each pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheControl {
    /// Caches keep their content.
    None,
    /// All caches are flushed.
    All,
}

/// Way in which a kernel is repeated for each pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Replay {
    /// The tool launches the kernel again and restores memory.
    Kernel,
    /// The tool runs the whole program again.
    Application,
    /// The tool runs a range of the program again.
    Range,
    /// The service launches the kernel again and restores the inputs.
    User,
    /// The service launches the kernel back to back, and between launches restores the inputs that the kernel
    /// changes. Values are means over the monitored time.
    BackToBack,
}

/// Value of a metric, or the reason why it has none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metric {
    /// Value, in `unit`. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Unit, e.g. `sectors`, `bytes` or `%`. Absent if there is no metric of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Source of the metric's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<MetricSource>,
    /// Note on the value, e.g. that it is based on an estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Reason why there is no value, with a remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Source of a metric's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MetricSource {
    /// Counts of the emulator. They are exact for the PTX and its data, and do not depend on the
    /// machine.
    Emulator,
    /// Hardware counters that CUPTI read, in the process that launched the kernel.
    Cupti,
    /// Hardware counters that Nsight Compute read.
    Ncu,
    /// Performance monitoring of the whole GPU by the driver, while the kernel ran repeatedly.
    Gpm,
    /// Values that follow from the launch, the kernel's resources and the device.
    Static,
}

/// Metrics with the groups, names and units of the CUDA Evaluation Server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricGroups {
    /// Throughputs as percentages of the hardware's peak.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub speed_of_light: BTreeMap<String, f64>,
    /// Hit rates, occupancy and instructions per cycle.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub detailed_metrics: BTreeMap<String, f64>,
    /// Memory bandwidth and activity.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub memory_metrics: BTreeMap<String, f64>,
    /// Utilisation of the pipelines, and limits of occupancy.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub compute_metrics: BTreeMap<String, f64>,
    /// Cycles in which the pipelines were active.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pipeline_metrics: BTreeMap<String, f64>,
    /// Launch configuration, and occupancy of a multiprocessor.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub occupancy_metrics: BTreeMap<String, f64>,
    /// Reasons why warps stalled.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stall_metrics: BTreeMap<String, f64>,
    /// Number of warps from which the schedulers could choose.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scheduler_metrics: BTreeMap<String, f64>,
    /// Coalescing of memory accesses.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub access_pattern_metrics: BTreeMap<String, f64>,
    /// Floating-point operations, bytes, and arithmetic intensity.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub roofline_metrics: BTreeMap<String, f64>,
    /// Duration of the profiled launch.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub timing_metrics: BTreeMap<String, f64>,
}
