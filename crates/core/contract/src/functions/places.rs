//! Places where functions can run. The main type is [`FunctionPlaces`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of device that a function runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlaceKind {
    /// The CPU of the machine.
    Cpu,
    /// A CUDA GPU of the machine.
    Cuda,
}

/// Device on which function calls can run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// Kind of the device.
    pub kind: PlaceKind,
    /// CUDA ordinal of the GPU. Absent for the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordinal: Option<u32>,
    /// UUID of the GPU, by which calls name it. Absent for the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Product name of the GPU. Absent for the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Maximum number of calls that run at once on the device.
    pub calls: usize,
    /// Number of CPU threads of each call.
    pub threads: usize,
}

/// Limits of a function call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionLimits {
    /// Maximum time limit of a call, seconds.
    pub max_timeout_s: f64,
    /// Maximum memory that a call may allocate, bytes.
    pub max_memory_bytes: u64,
    /// Maximum size of a result, bytes.
    pub max_result_bytes: u64,
    /// Maximum size of a call's body, bytes.
    pub max_body_bytes: u64,
    /// Maximum time that a process waits for another call of the same name (`again`), seconds. If it is 0, a process
    /// ends after its call.
    pub max_idle_s: f64,
}

/// Devices that run functions, and the caller's rights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionPlaces {
    /// Whether the caller may run functions here.
    pub allowed: bool,
    /// Whether the caller's functions may contain pickled objects.
    pub pickles_allowed: bool,
    /// Reason why the caller cannot run functions here. Absent if the caller can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Devices that can run functions, GPUs first.
    pub places: Vec<Place>,
    /// Limits of a function call.
    pub limits: FunctionLimits,
}
