//! Outputs that become shared tensors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of an output that is kept as a shared tensor of the caller. The fields have the same meaning as in
/// `POST /tensors`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeepOutput {
    /// CUDA ordinal of the device that keeps the tensor; -1 for the host's memory.
    #[serde(default)]
    pub cuda_device: i32,
    /// Sample rate, Hz. Only for sound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_rate: Option<u32>,
    /// Free name, for display only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Time without use after which the tensor is removed, seconds. Default: `tensors.ttl_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_s: Option<f64>,
    /// Whether the caller's least recently used tensors may be removed if there is no room for this one. Tensors that
    /// a process has open stay.
    #[serde(default)]
    pub evict: bool,
}
