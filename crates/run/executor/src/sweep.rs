//! Checks of a sweep before it runs: whether it is valid, and which matrices and shared tensors its
//! points refer to.

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::{ExecError, internal, invalid};
use warpgauge_contract::{
    ContractError, ContractLimits, EvaluateRequest, MatrixNames, NamesMatrices, NamesTensors,
    SweepPlan, SweepRequest, TensorNames,
};

/// Checks that at least one point of a sweep is valid within these limits.
///
/// # Errors
/// Returns the errors of the sweep itself or, if no point is valid, those of its first point.
pub async fn check_sweep(limits: &ContractLimits, request: SweepRequest) -> Result<(), ExecError> {
    plan_sweep(limits.clone(), request).await.map(drop)
}

/// Plans the points of a sweep, at least one of which must be valid within these limits.
///
/// # Errors
/// Returns the errors of the sweep itself or, if no point is valid, those of its first point.
pub async fn plan_sweep(
    limits: ContractLimits,
    request: SweepRequest,
) -> Result<SweepPlan, ExecError> {
    tokio::task::spawn_blocking(move || plan(request, &limits))
        .await
        .map_err(|error| internal("planning the sweep", &error))?
        .map_err(invalid)
}

/// Plans a sweep. Rejects a sweep of which no point is valid.
fn plan(request: SweepRequest, limits: &ContractLimits) -> Result<SweepPlan, Vec<ContractError>> {
    let plan = SweepPlan::new(request, limits)?;
    let mut first = None;
    for index in 0..plan.points() {
        match planned_point(&plan, index, limits) {
            Ok(_) => return Ok(plan),
            Err(errors) => {
                first.get_or_insert(errors);
            }
        }
    }
    let mut errors = first.unwrap_or_default();
    for error in &mut errors {
        let values = plan.values(0);
        let at = values.iter().map(|(name, value)| format!("{name} = {value}"));
        let at = at.collect::<Vec<_>>().join(", ");
        error.message = format!("{} (at {at}, and no other point is valid)", error.message);
    }
    Err(errors)
}

/// Checks a point as far as possible without the matrices that it refers to.
fn planned_point(
    plan: &SweepPlan,
    index: usize,
    limits: &ContractLimits,
) -> Result<(), Vec<ContractError>> {
    let request = plan.request(index)?;
    match request.matrix_names().is_empty() {
        true => warpgauge_contract::validate(&request, limits),
        false => Ok(()),
    }
}

/// Returns the matrices that points of a sweep refer to, each with its first position. Blocks,
/// because it expands every point.
///
/// # Errors
/// Fails if the sweep is malformed.
pub fn matrices_of_sweep(
    limits: &ContractLimits,
    request: &SweepRequest,
) -> Result<MatrixNames, ExecError> {
    named_in_points(limits, request, "matrix", NamesMatrices::matrix_names)
}

/// Returns the shared tensors that points of a sweep refer to, each with its first position. Blocks
/// like [`matrices_of_sweep`].
///
/// # Errors
/// Fails if the sweep is malformed.
pub fn tensors_of_sweep(
    limits: &ContractLimits,
    request: &SweepRequest,
) -> Result<TensorNames, ExecError> {
    named_in_points(limits, request, "tensor_id", NamesTensors::tensor_names)
}

/// Returns the names in fields called `field`, each with the value from the first point that
/// contains it.
fn named_in_points<T>(
    limits: &ContractLimits,
    request: &SweepRequest,
    field: &str,
    names_of: impl Fn(&EvaluateRequest) -> BTreeMap<String, T>,
) -> Result<BTreeMap<String, T>, ExecError> {
    let mut names = BTreeMap::new();
    // Most sweeps refer to none, so they need not be expanded.
    if !is_named(request, field) {
        return Ok(names);
    }
    let plan = SweepPlan::new(request.clone(), limits).map_err(invalid)?;
    for index in 0..plan.points() {
        // An invalid point is reported when it runs.
        let Ok(point) = plan.named_request(index) else { continue };
        for (name, named) in names_of(&point) {
            names.entry(name).or_insert(named);
        }
    }
    Ok(names)
}

/// Returns whether the contract has a field with this name.
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
