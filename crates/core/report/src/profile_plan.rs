//! Wire type of the plan for a profile, [`ProfilePlan`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use warpgauge_metrics::MetricSource;
use warpgauge_model::{DeviceKind, Unavailable};

/// Plan of a profile: the source, the passes and the time that a contract's metrics would need on this machine. A
/// plan runs nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfilePlan {
    /// CUDA ordinal of the device that the evaluation would run on now.
    pub device: u32,
    /// Kind of the device.
    pub kind: DeviceKind,
    /// Best available source for the metrics.
    pub source: MetricSource,
    /// Name and version of the tool. Absent if unknown before the tool runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Chip for whose counters the plan was made. Present only for the source `cupti`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chip: Option<String>,
    /// Ids of the requested metrics that are available here.
    pub metrics: Vec<String>,
    /// Requested names that are in no catalogue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// NVIDIA's metrics from which the requested ones are computed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<String>,
    /// Requested metrics that are not available here, with the reasons.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, String>,
    /// Number of launches, each on restored inputs. Absent if the source does not know it in advance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<u32>,
    /// Maximum number of passes that an evaluation may use to read counters.
    pub max_passes: u32,
    /// Estimated time beyond the evaluation, milliseconds, for a short kernel. For counters, it assumes a worker that
    /// has just read the same counters. The first profile with other metrics takes about 150 ms longer, and 8 ms more
    /// for each pass. The first profile of a worker takes another second. Absent if the source does not know it in
    /// advance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_ms: Option<f64>,
    /// Reason why a better source is not available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<Unavailable>,
}
