//! What the program prints when it is started to look, and not to work.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use warpgauge_model::{DeviceInfo, Unavailable};

/// What `--probe` prints.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProbeReport {
    /// Devices found.
    pub devices: Vec<DeviceInfo>,
    /// Why there are none.
    pub error: Option<String>,
}

/// What `--plan` prints.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanReport {
    /// The library, with its version.
    pub tool: String,
    /// Launches that the metrics take.
    pub passes: u32,
    /// Metrics that the chip does not have, and why.
    pub refused: BTreeMap<String, String>,
    /// Why there is no plan.
    pub unavailable: Option<Unavailable>,
}
