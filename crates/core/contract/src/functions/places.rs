//! Places where functions can run. The main type is [`FunctionPlaces`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a function runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlaceKind {
    /// The CPU.
    Cpu,
    /// A GPU.
    Cuda,
}

/// Calls that can run at once on one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// What.
    pub kind: PlaceKind,
    /// The GPU's CUDA ordinal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordinal: Option<u32>,
    /// The GPU, as calls name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// The GPU's product name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many at once.
    pub calls: usize,
    /// Threads of the CPU for each.
    pub threads: usize,
}

/// Bounds of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionLimits {
    /// Seconds.
    pub max_timeout_s: f64,
    /// Bytes that a call may allocate.
    pub max_memory_bytes: u64,
    /// Bytes that a call may return.
    pub max_result_bytes: u64,
    /// Bytes of a call's body.
    pub max_body_bytes: u64,
    /// Seconds that a process waits for another call of the same name (`again`); 0: it does not.
    pub max_idle_s: f64,
}

/// Where functions can run, and whether the caller's may.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionPlaces {
    /// Whether the caller may run functions here.
    pub allowed: bool,
    /// Whether these may have pickled objects.
    pub pickles_allowed: bool,
    /// Why no function of the caller's runs here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// GPUs first.
    pub places: Vec<Place>,
    /// Bounds of a call.
    pub limits: FunctionLimits,
}
