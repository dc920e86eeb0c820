//! Wire types of a compilation without a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CompileReport, ResponseStatus};
use warpgauge_model::Diagnostic;

/// Answer of `POST /compile`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CompileResponse {
    /// Identifies the job.
    pub job_id: String,
    /// `success`: the compiler ran to an end.
    pub status: ResponseStatus,
    /// Whether the kernel compiled.
    pub compiled: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compilation_error: Option<String>,
    /// Errors and warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
    /// The compilation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile: Option<CompileReport>,
    /// The image, base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_b64: Option<String>,
    /// Its format: `cubin`, `ptx` or `fatbin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_format: Option<String>,
    /// Milliseconds from arrival to answer.
    pub total_ms: f64,
}
