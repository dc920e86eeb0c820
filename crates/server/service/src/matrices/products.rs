//! Contracts for the sparse products that requests ask for.

use super::sources::{invalid, unfit};
use super::{Extents, Matrices, WantedProduct, aside};
use crate::error::ServiceError;
use warpgauge_contract::EvaluateRequest;
use warpgauge_sparse::spmv::{
    Multiplier, Numbers, SpmvRequest, StoredSpmvRequest, checked, is_generated, takes_padding,
};

/// Name of the field that contains the name of a stored matrix.
const NAME: &str = "mtx_filename";

/// Returns the contract of a product, and the number of rows, columns and non-zeros of its matrix.
pub(super) async fn contract_of(
    matrices: &Matrices,
    wanted: WantedProduct,
    owner: &str,
) -> Result<(EvaluateRequest, Extents), ServiceError> {
    match wanted {
        WantedProduct::Given(request) => of_given(matrices, *request, owner).await,
        WantedProduct::Stored(request) => of_stored(matrices, *request, owner).await,
    }
}

/// Returns the contract for a matrix that the request contains. The limit on bodies also limits the
/// matrix's memory. Padded formats are an exception, and need a permit.
async fn of_given(
    matrices: &Matrices,
    request: SpmvRequest,
    owner: &str,
) -> Result<(EvaluateRequest, Extents), ServiceError> {
    let turn = match takes_padding(&request.options) {
        true => Some(matrices.turn(owner).await?),
        false => None,
    };
    let max_bytes = matrices.limits.max_matrix_bytes;
    let work = move || {
        let SpmvRequest { kernel, matrix_data, num_runs, options } = request;
        let (csr, x) = checked(matrix_data, options.dtype).map_err(invalid)?;
        let x = Some(Numbers::Floats(x));
        let kernel = Multiplier::Custom(&kernel);
        let contract =
            warpgauge_sparse::spmv::contract_of(&csr, x, kernel, num_runs, (&options, max_bytes));
        Ok((contract.map_err(unfit)?, (csr.rows(), csr.cols(), csr.nnz())))
    };
    match turn {
        Some(turn) => turn.aside(work).await,
        None => aside(work).await,
    }
}

/// Returns the contract for a named matrix. A permit limits the number of matrices in use at the
/// same time.
async fn of_stored(
    matrices: &Matrices,
    request: StoredSpmvRequest,
    owner: &str,
) -> Result<(EvaluateRequest, Extents), ServiceError> {
    request.multiplier().map_err(invalid)?;
    let turn = matrices.turn(owner).await?;
    let name = request.mtx_filename.clone();
    let from = matrices.source(&name, NAME, owner).await?;
    let max_bytes = matrices.limits.max_matrix_bytes;
    // A stored matrix was within the limit for its key when it was uploaded.
    let most = if is_generated(&name) { max_bytes } else { u64::MAX };
    turn.aside(move || {
        let (csr, _) = from.read(&name, NAME, most)?;
        let multiplier = request.multiplier().map_err(invalid)?;
        let (x, how) = (request.x.clone(), (&request.options, max_bytes));
        let contract =
            warpgauge_sparse::spmv::contract_of(&csr, x, multiplier, request.num_runs, how);
        Ok((contract.map_err(unfit)?, (csr.rows(), csr.cols(), csr.nnz())))
    })
    .await
}
