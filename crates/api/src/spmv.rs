//! Sparse matrix times vector: the operations of the Remote GPU Execution Service.

use std::sync::Arc;

use poem::web::Data;
use poem_openapi::OpenApi;
use poem_openapi::param::{Path, Query};

use super::aside::aside;
use super::error::ApiError;
use super::failure::{Fails, TakesBaseline, TakesJobBody, TakesNamedJobBody, TakesNothing};
use super::matrix_file::{MatrixFileReply, MatrixFormat};
use super::payload::{Arrays, Contract, Reply};
use super::submission::Taken;
use super::tags::Tag;
use super::uploads::MatrixUpload;
use warpgauge_model::FailureCode;
use warpgauge_service::{Caller, EvaluationService, Extents, WantedProduct};
use warpgauge_spmv::{
    MatrixList, MatrixReply, SpmvRequest, SpmvResponse, StoredSpmvRequest, check_matrix_name,
};

/// The operations on sparse matrices over a service.
pub(super) struct Spmv {
    pub(super) service: Arc<dyn EvaluationService>,
}

/// What takes long, as errors name it.
const PREPARING: &str = "preparing the product";

/// Bytes of an answer for each element of the product.
const ELEMENT_BYTES: usize = 12;

#[OpenApi]
impl Spmv {
    /// Multiply a sparse matrix by a vector
    ///
    /// Runs a kernel on a matrix in CSR form, as an evaluation like every other: it is a job, its product
    /// is compared with one of the CPU's, with a bound for the rounding of each row, and it is timed by
    /// events on the device. A kernel that does not compile, crashes or gives another product is a result
    /// (200, `success: false`). Arrays of MessagePack can be `bin`, which is many times faster than lists.
    #[oai(
        path = "/execute_spmv",
        method = "post",
        operation_id = "execute_spmv",
        tag = "Tag::Spmv"
    )]
    async fn execute_spmv(
        &self,
        taken: Taken,
        /// A kernel, a matrix and a vector.
        request: Arrays<SpmvRequest>,
    ) -> Result<Reply<SpmvResponse>, Fails<TakesJobBody>> {
        let Contract { value, share } = request;
        let wanted = WantedProduct::Given(Box::new(value));
        let (contract, extents) = self.service.contract_of_product(wanted, &taken.0.caller).await?;
        let report = self.service.evaluate(contract, taken.0).await?;
        drop(share);
        Ok(reply(move || SpmvResponse::new(&report, extents), extents).await?)
    }

    /// Multiply a stored matrix by a vector
    ///
    /// As `/execute_spmv`, with a matrix that was uploaded, or a generated one such as
    /// `poisson2d:nx=512`.
    #[oai(
        path = "/execute_spmv_mtx",
        method = "post",
        operation_id = "execute_spmv_mtx",
        tag = "Tag::Spmv"
    )]
    async fn execute_spmv_mtx(
        &self,
        taken: Taken,
        /// A kernel, and the name of a matrix.
        request: Arrays<StoredSpmvRequest>,
    ) -> Result<Reply<SpmvResponse>, Fails<TakesNamedJobBody>> {
        let Contract { value, share } = request;
        let wanted = WantedProduct::Stored(Box::new(value));
        let (contract, extents) = self.service.contract_of_product(wanted, &taken.0.caller).await?;
        let report = self.service.evaluate(contract, taken.0).await?;
        drop(share);
        Ok(reply(move || SpmvResponse::new(&report, extents), extents).await?)
    }

    /// Upload a matrix
    ///
    /// A Matrix Market file: coordinate or array; real, integer or pattern; general, symmetric or
    /// skew-symmetric. Or a SPASM file of version 2. What it begins with says which. It is read at once,
    /// and kept under its name for the caller's key, in place of the one of that name. A file that is no
    /// such matrix changes nothing. How far it is read, `/check_mtx/{name}` tells meanwhile.
    #[oai(path = "/upload_mtx", method = "post", operation_id = "upload_mtx", tag = "Tag::Spmv")]
    async fn upload_mtx(
        &self,
        caller: Data<&Caller>,
        /// The file, as field `file` of a form or as base64 in JSON.
        request: MatrixUpload,
    ) -> Result<Reply<MatrixReply>, Fails<TakesJobBody>> {
        let MatrixUpload { upload, share } = request;
        let summary = self.service.put_matrix(upload, &caller).await?;
        drop(share);
        Ok(Reply::new(&MatrixReply::new(&summary.filename.clone(), Some(summary)))?)
    }

    /// Look for a matrix
    ///
    /// Whether the caller has a matrix of this name, and what it consists of; and how far uploads of this
    /// name are that are being worked on.
    #[oai(path = "/check_mtx/:name", method = "get", operation_id = "check_mtx", tag = "Tag::Spmv")]
    async fn check_mtx(
        &self,
        caller: Data<&Caller>,
        /// The matrix' name.
        name: Path<String>,
    ) -> Result<Reply<MatrixReply>, Fails<TakesNothing>> {
        check_matrix_name(&name).map_err(named)?;
        let all = self.service.matrices(&caller).await?;
        let found = all.into_iter().find(|one| one.filename == name.0);
        let mut uploads = self.service.matrix_uploads(&caller);
        uploads.retain(|one| one.filename == name.0);
        Ok(Reply::new(&MatrixReply { uploads, ..MatrixReply::new(&name, found) })?)
    }

    /// Get a matrix as a file
    ///
    /// The caller's of this name, or a generated one: as Matrix Market, or as SPASM, whose values are
    /// rounded to binary32 and which holds no zeros.
    #[oai(
        path = "/check_mtx/:name/data",
        method = "get",
        operation_id = "get_mtx",
        tag = "Tag::Spmv"
    )]
    async fn get_mtx(
        &self,
        caller: Data<&Caller>,
        /// The matrix' name.
        name: Path<String>,
        /// Form of the file.
        #[oai(default)]
        format: Query<MatrixFormat>,
    ) -> Result<MatrixFileReply, Fails<TakesBaseline>> {
        let file = self.service.matrix_file(&name, format.0.into(), &caller).await?;
        Ok(MatrixFileReply(file))
    }

    /// Remove a matrix
    ///
    /// The caller's of this name. Products that have begun with it are not disturbed.
    #[oai(
        path = "/check_mtx/:name",
        method = "delete",
        operation_id = "remove_mtx",
        tag = "Tag::Spmv"
    )]
    async fn remove_mtx(
        &self,
        caller: Data<&Caller>,
        /// The matrix' name.
        name: Path<String>,
    ) -> Result<Reply<MatrixReply>, Fails<TakesBaseline>> {
        check_matrix_name(&name).map_err(named)?;
        self.service.remove_matrix(&name, &caller).await?;
        Ok(Reply::new(&MatrixReply::new(&name, None))?)
    }

    /// List matrices
    ///
    /// The caller's own, by name; and how far uploads are that are being worked on.
    #[oai(path = "/list_mtx", method = "get", operation_id = "list_mtx", tag = "Tag::Spmv")]
    async fn list_mtx(
        &self,
        caller: Data<&Caller>,
    ) -> Result<Reply<MatrixList>, Fails<TakesNothing>> {
        let matrices = self.service.matrices(&caller).await?;
        let files = matrices.iter().map(|one| one.filename.clone()).collect();
        let uploads = self.service.matrix_uploads(&caller);
        Ok(Reply::new(&MatrixList { success: true, files, matrices, uploads })?)
    }
}

fn named(message: String) -> ApiError {
    ApiError::field("name", FailureCode::InvalidData, message)
}

/// An answer with a product of so many rows.
async fn reply(
    answer: impl FnOnce() -> SpmvResponse + Send + 'static,
    (rows, ..): Extents,
) -> Result<Reply<SpmvResponse>, ApiError> {
    let answer = aside("spmv", PREPARING, answer).await?;
    Reply::with_content(answer, rows as usize * ELEMENT_BYTES).await
}
