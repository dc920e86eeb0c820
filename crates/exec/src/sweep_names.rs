//! Matrices and shared tensors that points of a sweep name.

use std::io::BufReader;

use serde_json::Value;

use super::error::{ExecError, Problem, internal, invalid};
use warpgauge_contract::{
    EvaluateRequest, Limits, MatrixNames, SweepPlan, SweepRequest, TensorNames,
};
use warpgauge_sparse::packed;
use warpgauge_spmv::{Named, SpmvError, SpmvProblem, generated, named_in};

/// The matrices that points of a sweep name, each with where it stands first. Blocking: every point is
/// written out.
///
/// # Errors
/// The sweep is no sweep.
pub fn matrices_of_sweep(
    limits: &Limits,
    request: &SweepRequest,
) -> Result<MatrixNames, ExecError> {
    let mut names = MatrixNames::new();
    // Most sweeps have none, and are not written out for that.
    if !is_named(request, "matrix") {
        return Ok(names);
    }
    let plan = SweepPlan::new(request.clone(), limits).map_err(invalid)?;
    for index in 0..plan.points() {
        // What is wrong with a point is told when it is its turn.
        let Ok(point) = plan.named_request(index) else { continue };
        for (name, path) in point.matrix_names() {
            names.entry(name).or_insert(path);
        }
    }
    Ok(names)
}

/// The shared tensors that points of a sweep name, each with where it stands first. Blocking, as
/// [`matrices_of_sweep`].
///
/// # Errors
/// The sweep is no sweep.
pub fn tensors_of_sweep(limits: &Limits, request: &SweepRequest) -> Result<TensorNames, ExecError> {
    let mut names = TensorNames::new();
    if !is_named(request, "tensor_id") {
        return Ok(names);
    }
    let plan = SweepPlan::new(request.clone(), limits).map_err(invalid)?;
    for index in 0..plan.points() {
        let Ok(point) = plan.named_request(index) else { continue };
        for (name, named) in point.tensor_names() {
            names.entry(name).or_insert(named);
        }
    }
    Ok(names)
}

/// Whether something in its contract is called so.
fn is_named(request: &SweepRequest, field: &str) -> bool {
    has_field(&request.kernel, field)
        || request.expected.as_ref().is_some_and(|expected| has_field(expected, field))
}

fn has_field(value: &Value, field: &str) -> bool {
    match value {
        Value::Object(fields) => {
            fields.iter().any(|(name, it)| name == field || has_field(it, field))
        }
        Value::Array(items) => items.iter().any(|it| has_field(it, field)),
        _ => false,
    }
}

/// Puts matrices into the contract of a point: those that came with the sweep, and generated ones.
/// Blocking.
pub(super) fn put_into(
    request: &mut EvaluateRequest,
    plan: &SweepPlan,
    limits: &Limits,
) -> Result<(), ExecError> {
    let max_bytes = limits.max_matrix_bytes;
    let mut left = limits.max_decoded_bytes;
    for (name, path) in named_in(request).map_err(unfit)? {
        let (csr, used) = match plan.matrices.get(&name) {
            Some(kept) => {
                let csr = packed::read(&mut BufReader::new(kept.packed.reader()))
                    .map_err(|error| internal("reading a matrix of a sweep", &error))?;
                (csr, kept.used.clone())
            }
            None => generated(&name, &path, max_bytes).map_err(unfit)?,
        };
        let named = Named { name: &name, csr: &csr, max_bytes };
        named.put_into(request, &mut left).map_err(|error| match error {
            SpmvError::Invalid(problem) => unfit(problem),
            error @ SpmvError::Io(_) => ExecError::Unavailable(error.to_string()),
        })?;
        request.matrices.push(used);
    }
    Ok(())
}

fn unfit(found: SpmvProblem) -> ExecError {
    let SpmvProblem { path, code, message } = found;
    ExecError::Invalid(vec![Problem { path, code, message }])
}
