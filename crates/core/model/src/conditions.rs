//! Conditions of timed launches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A set of measurement settings, from `profiles/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PresetName {
    /// An answer at once.
    #[default]
    Quick,
    /// Precise enough to gate on.
    Ci,
    /// As precise as patience allows.
    Deep,
}

impl PresetName {
    pub const ALL: [Self; 3] = [Self::Quick, Self::Ci, Self::Deep];
}

/// State of the L2 cache at each timed launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CacheState {
    /// L2 flushed before each launch.
    #[default]
    Cold,
    /// L2 as the launch before left it.
    Hot,
}

/// What the device does between timed launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Regime {
    /// Nothing but preparing them: each launch finds the clock of a device that is hardly loaded.
    #[default]
    Isolated,
    /// It runs the same kernel, again and again: each launch finds the clock and the power of continuous
    /// use.
    Sustained,
}

/// The least work any correct implementation does in one launch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// Bytes moved through device memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
    /// Floating-point operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops: Option<f64>,
}
