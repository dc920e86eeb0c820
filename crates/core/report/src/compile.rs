//! Wire types of a compilation without a run. The main type is [`CompileResponse`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CompileReport, ResponseStatus};
use warpgauge_model::{Diagnostic, Resources};

/// Report of `POST /compile`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CompileResponse {
    /// Id of the job, at `/jobs/{job_id}`.
    pub job_id: String,
    /// `success` if the compiler ran to its end.
    pub status: ResponseStatus,
    /// Whether the kernel compiled.
    pub compiled: bool,
    /// Reason why the kernel does not compile. Absent if it compiles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compilation_error: Option<String>,
    /// Errors and warnings of the compiler.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
    /// Compiler, image and resources. Absent if there is no image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile: Option<CompileReport>,
    /// Image in base64. Absent unless the request asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_b64: Option<String>,
    /// Format of the image: `cubin`, `ptx` or `fatbin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_format: Option<String>,
    /// Kernels of the image with their parameters, for the arguments of a contract. They are in the order of the
    /// image, up to a maximum number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<KernelSignature>,
    /// Time from the arrival of the request to the answer, milliseconds.
    pub total_ms: f64,
}

/// Kernel of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelSignature {
    /// Readable (demangled) name.
    pub name: String,
    /// Symbol in the image.
    pub symbol: String,
    /// Parameters in order. Absent if the image does not describe them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Vec<KernelParameter>>,
    /// Resources of the kernel. Present only for machine code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
}

/// Parameter of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelParameter {
    /// Name of the parameter. Absent if it cannot be read from the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Type in C, with typedefs and macros expanded, e.g. `const float*`. For machine code, whose symbols may not
    /// include types, the part that is known.
    pub c_type: String,
    /// Size of the parameter, bytes.
    pub bytes: u32,
}
