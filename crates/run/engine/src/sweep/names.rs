//! Named matrices in the contract of a sweep's point.

use std::io::BufReader;

use crate::error::{ExecError, Problem, internal};
use warpgauge_contract::{ContractLimits, EvaluateRequest, SweepPlan};
use warpgauge_sparse::packed;
use warpgauge_sparse::spmv::{NamedMatrix, SpmvError, SpmvProblem, TakesMatrices, generated};

/// Inserts matrices into the contract of a point: those that were sent with the sweep, and
/// generated ones. Blocking.
pub(crate) fn put_into(
    request: &mut EvaluateRequest,
    plan: &SweepPlan,
    limits: &ContractLimits,
) -> Result<(), ExecError> {
    let max_bytes = limits.max_matrix_bytes;
    let mut left = limits.max_decoded_bytes;
    for (name, path) in request.matrices_wanted().map_err(unfit)? {
        let (csr, used) = match plan.matrices.get(&name) {
            Some(kept) => {
                let csr = packed::read(&mut BufReader::new(kept.packed.reader()))
                    .map_err(|error| internal("reading a matrix of a sweep", &error))?;
                (csr, kept.used.clone())
            }
            None => generated(&name, &path, max_bytes).map_err(unfit)?,
        };
        let named = NamedMatrix { name: &name, csr: &csr, max_bytes };
        request.put_matrix(&named, &mut left).map_err(|error| match error {
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
