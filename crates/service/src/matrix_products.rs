//! Products that are asked for by themselves: the contract that each becomes.

use super::error::ServiceError;
use super::matrices::{Extents, WantedProduct, aside};
use super::named_matrices::{invalid, unfit};
use super::shared::Shared;
use warpgauge_contract::EvaluateRequest;
use warpgauge_spmv::{
    Multiplier, Numbers, SpmvRequest, StoredSpmvRequest, checked, contract_of, is_generated,
    takes_padding,
};

/// Where requests name a stored matrix.
const NAME: &str = "mtx_filename";

impl Shared {
    /// The contract of a product, with rows, columns and non-zeros of its matrix.
    pub(super) async fn contract_of_product(
        &self,
        wanted: WantedProduct,
        owner: &str,
    ) -> Result<(EvaluateRequest, Extents), ServiceError> {
        match wanted {
            WantedProduct::Given(request) => self.of_given(*request, owner).await,
            WantedProduct::Stored(request) => self.of_stored(*request, owner).await,
        }
    }

    /// Of a matrix that came with the request. It takes memory as its body does, which has a bound of its
    /// own, but where its form has padding.
    async fn of_given(
        &self,
        request: SpmvRequest,
        owner: &str,
    ) -> Result<(EvaluateRequest, Extents), ServiceError> {
        let turn = match takes_padding(&request.options) {
            true => Some(self.turn(owner).await?),
            false => None,
        };
        let max_bytes = self.limits.max_matrix_bytes;
        let work = move || {
            let SpmvRequest { kernel, matrix_data, num_runs, options } = request;
            let (csr, x) = checked(matrix_data, options.dtype).map_err(invalid)?;
            let x = Some(Numbers::Floats(x));
            let kernel = Multiplier::Custom(&kernel);
            let contract = contract_of(&csr, x, kernel, num_runs, (&options, max_bytes));
            Ok((contract.map_err(unfit)?, (csr.rows(), csr.cols(), csr.nnz())))
        };
        match turn {
            Some(turn) => turn.aside(work).await,
            None => aside(work).await,
        }
    }

    /// Of a matrix that has a name. Bounded as those of contracts are: so many at once.
    async fn of_stored(
        &self,
        request: StoredSpmvRequest,
        owner: &str,
    ) -> Result<(EvaluateRequest, Extents), ServiceError> {
        request.multiplier().map_err(invalid)?;
        let turn = self.turn(owner).await?;
        let name = request.mtx_filename.clone();
        let from = self.source(&name, NAME, owner).await?;
        let max_bytes = self.limits.max_matrix_bytes;
        // One that is kept was within the bound of its key when it came.
        let most = if is_generated(&name) { max_bytes } else { u64::MAX };
        turn.aside(move || {
            let (csr, _) = from.read(&name, NAME, most)?;
            let multiplier = request.multiplier().map_err(invalid)?;
            let (x, how) = (request.x.clone(), (&request.options, max_bytes));
            let contract = contract_of(&csr, x, multiplier, request.num_runs, how);
            Ok((contract.map_err(unfit)?, (csr.rows(), csr.cols(), csr.nnz())))
        })
        .await
    }
}
