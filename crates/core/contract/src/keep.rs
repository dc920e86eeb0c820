//! Outputs that become shared tensors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How an output is kept as a shared tensor of the caller's, as those of `POST /tensors` are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeepOutput {
    /// CUDA ordinal; -1: the host's memory.
    #[serde(default)]
    pub cuda_device: i32,
    /// Samples each second, if it is sound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_rate: Option<u32>,
    /// A name of the caller's own, which nothing is found by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Seconds without use after which it is removed; absent: `tensors.ttl_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_s: Option<f64>,
    /// Whether the caller's tensors that were not used for longest, and that no process has open, may be removed
    /// where there is no room for this one.
    #[serde(default)]
    pub evict: bool,
}
