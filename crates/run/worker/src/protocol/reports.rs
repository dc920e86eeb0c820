//! Reports that the program prints when the server runs it to list devices or plan metrics.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use warpgauge_model::{DeviceInfo, Unavailable};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProbeReport {
    pub devices: Vec<DeviceInfo>,
    /// Why no devices were found.
    pub error: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanReport {
    /// Name and version of the library that made the plan.
    pub tool: String,
    /// Number of launches that the metrics need.
    pub passes: u32,
    /// Metrics that cannot be collected on the chip, each with the reason.
    pub refused: BTreeMap<String, String>,
    /// Why the library could not make a plan.
    pub unavailable: Option<Unavailable>,
}
