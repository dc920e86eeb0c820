//! Wire types of tensors: what they are, and what is in them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use warpgauge_tensor::{Dtype, TensorData, TensorInit};

/// A tensor argument.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TensorSpec {
    /// Extent of each dimension, slowest first (C order).
    pub shape: Vec<u64>,
    /// Element type.
    #[serde(default)]
    pub dtype: Dtype,
    /// Generated content. At most one of `init` and `data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<TensorInit>,
    /// Given content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<TensorData>,
}
