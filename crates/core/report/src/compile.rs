//! Wire types of a compilation without a run. The main type is [`CompileResponse`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CompileReport, ResponseStatus};
use warpgauge_model::{Diagnostic, Resources};

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
    /// Every kernel of the image, with its parameters: what a contract's arguments are given to. In the
    /// order of the image; some hundred at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<KernelSignature>,
    /// Milliseconds from arrival to answer.
    pub total_ms: f64,
}

/// A kernel of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelSignature {
    /// Its name as one would write it.
    pub name: String,
    /// Its symbol in the image.
    pub symbol: String,
    /// Its parameters, in order. Absent where the image does not have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Vec<KernelParameter>>,
    /// Its resources, for machine code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
}

/// A parameter of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelParameter {
    /// Its name, where the source writes it plainly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its type in C, after typedefs and macros, e.g. `const float*`; what is known of it for machine
    /// code, whose symbols may carry no types.
    pub c_type: String,
    /// Its size, bytes.
    pub bytes: u32,
}
