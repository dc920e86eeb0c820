//! The oldest form of a comparison: two Python sources.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CompareRequest, Isolation, KernelCode, KernelType, MeasureSpec, RequestWarning};
use warpgauge_model::Requirements;

/// Request of `POST /`, with the fields of the CUDA Evaluation Server: two PyTorch sources, which become a
/// comparison.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LegacyCompareRequest {
    /// Source of the reference: Python with a class `Model` or a function.
    pub ref_code: String,
    /// Source of the candidate: Python with a class `ModelNew` or `Model`, or a function.
    pub custom_code: String,
    /// Number of timed calls of each kernel, 1–10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub num_trials: Option<u32>,
    /// Time limit of each run, seconds, 0.1–600.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 0.1, max = 600))]
    pub timeout: f64,
    /// Fields of the request that are ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub warnings: Vec<RequestWarning>,
}

/// Default time limit of a comparison of two sources, seconds.
pub(super) fn default_timeout() -> f64 {
    30.0
}

impl From<LegacyCompareRequest> for CompareRequest {
    /// Converts to a comparison of the two sources. Settings that this request does not contain have a
    /// comparison's defaults.
    fn from(request: LegacyCompareRequest) -> Self {
        let kernel = |source: String, kernel_type| KernelCode {
            source_code: Some(source),
            files: BTreeMap::new(),
            source_path: None,
            launches: Vec::new(),
            setup: Vec::new(),
            binary_b64: None,
            kernel_type,
            io: None,
            metadata: None,
        };
        Self {
            matrices: Vec::new(),
            tensors: Vec::new(),
            warnings: request.warnings,
            ref_kernel: kernel(request.ref_code, KernelType::Torch),
            custom_kernel: Some(kernel(request.custom_code, KernelType::TorchCuda)),
            candidates: Vec::new(),
            num_trials: request.num_trials,
            timeout: request.timeout,
            atol: None,
            rtol: None,
            required_matched_ratio: None,
            allow_non_finite: None,
            compare_as: BTreeMap::new(),
            allow_weak: false,
            work: None,
            measure: MeasureSpec::default(),
            profile: None,
            isolation: Isolation::default(),
            requires: Requirements::default(),
            decision: None,
            measure_identical: true,
        }
    }
}
