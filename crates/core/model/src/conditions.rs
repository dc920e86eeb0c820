//! Conditions of timed launches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Preset of measurement settings, from `profiles/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PresetName {
    /// Shortest measurement, which gives a fast answer.
    #[default]
    Quick,
    /// Measurement that is precise enough for a gate.
    Ci,
    /// Longest and most precise measurement.
    Deep,
}

impl PresetName {
    pub const ALL: [Self; 3] = [Self::Quick, Self::Ci, Self::Deep];
}

/// State of the L2 cache at each timed launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CacheState {
    /// L2 is flushed before each launch.
    #[default]
    Cold,
    /// L2 keeps its content from the previous launch.
    Hot,
}

/// Load of the device between timed launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Regime {
    /// Between launches the device only prepares the next one. Each launch runs at the clock of a device with little
    /// load.
    #[default]
    Isolated,
    /// Between launches the device runs the same kernel repeatedly. Each launch runs at the clock and power of
    /// continuous use.
    Sustained,
}

/// Minimum work of any correct implementation in one launch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// Number of bytes of device memory that are read or written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
    /// Number of floating-point operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops: Option<f64>,
}
