//! Products that are asked for by themselves: the contract that each becomes.

use super::sources::{invalid, unfit};
use super::{Extents, Matrices, WantedProduct, aside};
use crate::error::ServiceError;
use warpgauge_contract::EvaluateRequest;
use warpgauge_sparse::spmv::{
    Multiplier, Numbers, SpmvRequest, StoredSpmvRequest, checked, is_generated, takes_padding,
};

/// Where requests name a stored matrix.
const NAME: &str = "mtx_filename";

/// The contract of a product, with rows, columns and non-zeros of its matrix.
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

/// Of a matrix that came with the request. It takes memory as its body does, which has a bound of its
/// own, but where its form has padding.
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

/// Of a matrix that has a name. Bounded as those of contracts are: so many at once.
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
    // One that is kept was within the bound of its key when it came.
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
