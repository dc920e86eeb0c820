//! Wire type of a compilation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::KernelCode;

/// Request of `POST /compile` and `warpgauge compile`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompileRequest {
    /// Kernel to compile. `io` is optional.
    pub kernel: KernelCode,
    /// Architecture to compile for, e.g. `sm_90`. Default: the first device's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// Whether the report contains the image.
    #[serde(default)]
    pub return_image: bool,
}
