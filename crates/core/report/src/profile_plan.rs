//! Wire type of the plan for a profile, [`ProfilePlan`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use warpgauge_metrics::MetricSource;
use warpgauge_model::{DeviceKind, Unavailable};

/// What the metrics that a contract asks for would take on this machine. Nothing is run for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfilePlan {
    /// Device that the evaluation would run on now, by its CUDA ordinal.
    pub device: u32,
    /// Its kind.
    pub kind: DeviceKind,
    /// Best source that there is for them.
    pub source: MetricSource,
    /// The tool and its version, where that is known before it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The chip whose counters were planned with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chip: Option<String>,
    /// Ids of the metrics that were asked for.
    pub metrics: Vec<String>,
    /// Names that are in no catalogue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// NVIDIA's metrics that they are made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<String>,
    /// NVIDIA's metrics that cannot be had here, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, String>,
    /// Launches that it takes, each on restored inputs. Absent where the source does not announce it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<u32>,
    /// Most passes that an evaluation makes.
    pub max_passes: u32,
    /// Estimated time beyond the evaluation, milliseconds, for a short kernel; of counters, for a
    /// worker that has just read the same. The first profile with other metrics takes some 150 ms
    /// and 8 for each pass more, the first of all another second. Absent where the source does not
    /// announce it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_ms: Option<f64>,
    /// Why a better source cannot be had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<Unavailable>,
}
