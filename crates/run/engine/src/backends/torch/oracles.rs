//! Expected outputs of a request: its reference kernels, and the values in its data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::player::{REFERENCE, submission};
use super::values::Value;
use crate::error::{ExecError, Problem, chain};
use warpgauge_contract::{EvaluateRequest, KernelCode};
use warpgauge_model::FailureCode;
use warpgauge_tensor::encoding;
use warpgauge_torch::TorchSubmission;

/// A reference kernel, and the outputs that it defines.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Oracle {
    pub submission: TorchSubmission,
    /// Names of the outputs that the reference defines. `None` means all outputs.
    pub outputs: Option<Vec<String>>,
    /// Path of the reference in the request, for error messages.
    pub path: String,
    /// Whether the candidate's constructor receives the same arguments as this reference's.
    pub lends_init: bool,
}

/// Returns the distinct references of a request, with the outputs that they define.
pub(super) fn oracles(request: &EvaluateRequest) -> Vec<Oracle> {
    let mut found: BTreeMap<String, (&KernelCode, Vec<String>)> = BTreeMap::new();
    for (name, expected) in &request.expected {
        let Some(kernel) = expected.kernel.as_deref() else { continue };
        let identity = serde_json::to_string(kernel).unwrap_or_else(|_| name.clone());
        found.entry(identity).or_insert_with(|| (kernel, Vec::new())).1.push(name.clone());
    }
    let oracle = |(kernel, outputs): (&KernelCode, Vec<String>)| Oracle {
        submission: submission(kernel, REFERENCE),
        path: format!("expected.{}.kernel", outputs[0]),
        outputs: Some(outputs),
        lends_init: false,
    };
    found.into_values().map(oracle).collect()
}

/// Returns the expected values in the request's data, by output name.
pub(super) fn data_of(request: &EvaluateRequest) -> Result<BTreeMap<String, Value>, ExecError> {
    let mut values = BTreeMap::new();
    let args = request.kernel.io.iter().flat_map(|io| &io.args);
    for arg in args {
        let data = request.expected.get(&arg.name).and_then(|expected| expected.data.as_ref());
        let (Some(data), Some(spec)) = (data, &arg.tensor_spec) else { continue };
        let bytes = encoding::decode_to_vec(data, spec.dtype, &spec.shape).map_err(|error| {
            ExecError::Invalid(vec![Problem {
                path: format!("expected.{}.data", arg.name),
                code: FailureCode::InvalidData,
                message: chain(&error),
            }])
        })?;
        let value = Value::Tensor { dtype: spec.dtype, shape: spec.shape.clone(), bytes };
        values.insert(arg.name.clone(), value);
    }
    Ok(values)
}
