//! Wire type of a compilation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::KernelCode;

/// What `POST /compile` and `warpgauge compile` take.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompileRequest {
    /// The kernel; `io` may be left out.
    pub kernel: KernelCode,
    /// Architecture to compile for, e.g. `sm_90`; default: the first device's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// Whether the image travels back.
    #[serde(default)]
    pub return_image: bool,
}
