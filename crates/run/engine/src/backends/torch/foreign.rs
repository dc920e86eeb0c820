//! Expected results of a torch kernel, computed by device kernels for the contract's inputs.

use std::collections::BTreeMap;

use crate::backend::Evaluator;
use crate::backend::Purpose;
use crate::error::{ExecError, Problem};
use crate::progress::ActiveOrder;
use warpgauge_contract::{EvaluateRequest, KernelFamily, ReturnOutputs};
use warpgauge_model::FailureCode;
use warpgauge_report::{EvaluateResponse, OutputReport};
use warpgauge_tensor::{Blob, TensorData};

/// Runs the device kernels that define expected outputs of a torch kernel, for the contract's
/// inputs. In the request, the outputs replace the kernels as data.
pub(super) async fn expected_from_device(
    evaluator: &dyn Evaluator,
    job: &ActiveOrder<'_>,
    request: &mut EvaluateRequest,
) -> Result<(), ExecError> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, expected) in &request.expected {
        let kernel = expected.kernel.as_deref().filter(|one| one.family() != KernelFamily::Torch);
        let Some(kernel) = kernel else { continue };
        let identity = serde_json::to_string(kernel).unwrap_or_else(|_| name.clone());
        found.entry(identity).or_default().push(name.clone());
    }
    for names in found.into_values() {
        let path = format!("expected.{}.kernel", names[0]);
        let oracle = request.expected[&names[0]].kernel.as_deref();
        let io = request.kernel.io.clone().unwrap_or_default();
        let Some(oracle) = oracle else { continue };
        let run = EvaluateRequest {
            kernel: oracle.as_reference(&io, request.kernel.kernel_type),
            expected: BTreeMap::new(),
            return_outputs: ReturnOutputs::Names(names.clone()),
            keep_outputs: BTreeMap::new(),
            profile: None,
            ..request.clone()
        };
        let report = evaluator.evaluate(job, run, Purpose::Execute).await;
        let report = report.map_err(|error| at(error, &path))?;
        for name in names {
            let left = report.outputs.get(&name).and_then(content);
            let left = left.ok_or_else(|| not_left(&report, &path))?;
            if let Some(expected) = request.expected.get_mut(&name) {
                (expected.data, expected.kernel) = (Some(left), None);
            }
        }
    }
    Ok(())
}

/// Returns the content of an output as tensor data of a request.
fn content(output: &OutputReport) -> Option<TensorData> {
    Some(TensorData {
        dtype: Some(output.dtype),
        shape: Some(output.shape.clone()),
        compress: output.compress?,
        format: output.format?,
        ..TensorData::raw(Blob::from_base64(output.data_b64.clone()?))
    })
}

/// Converts the paths of a reference's problems to paths in the request.
fn at(error: ExecError, path: &str) -> ExecError {
    let ExecError::Invalid(problems) = error else { return error };
    let moved = problems.into_iter().map(|problem| match problem.path.strip_prefix("kernel") {
        Some(rest) => Problem { path: format!("{path}{rest}"), ..problem },
        None => problem,
    });
    ExecError::Invalid(moved.collect())
}

/// Returns the error for a reference that produced no outputs. The contract is the cause.
fn not_left(report: &EvaluateResponse, path: &str) -> ExecError {
    let result = &report.kernel_exec_result;
    let failure = report.failure.as_ref().map(|failure| &failure.message);
    let why = result.compilation_error.as_ref().or(failure).or(result.validation_error.as_ref());
    let why = why.map_or("it produces no outputs", String::as_str);
    ExecError::Invalid(vec![Problem {
        path: path.to_owned(),
        code: FailureCode::ReferenceFailed,
        message: format!("the reference cannot be used: {why}"),
    }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_of_references_stand_where_they_are() {
        let problem = |path: &str| {
            let code = FailureCode::MissingIo;
            ExecError::Invalid(vec![Problem {
                path: path.to_owned(),
                code,
                message: String::new(),
            }])
        };
        for (path, wanted) in
            [("kernel.io.launch", "expected.y.kernel.io.launch"), ("timeout", "timeout")]
        {
            let ExecError::Invalid(moved) = at(problem(path), "expected.y.kernel") else {
                panic!("another error");
            };
            assert_eq!(moved[0].path, wanted);
        }
    }
}
