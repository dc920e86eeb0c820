//! Handlers of the operations on sparse matrices, which have the fields of the Remote GPU Execution
//! Service: [`Spmv`].

use poem::web::Data;
use poem_openapi::OpenApi;
use poem_openapi::param::{Path, Query};

use super::matrix_file::{MatrixFileReply, MatrixFormat};
use super::upload::MatrixUpload;
use crate::blocking::run_blocking;
use crate::error::ApiError;
use crate::error::operation::{
    BaselineErrors, JobBodyErrors, KeyErrors, NamedBodyErrors, OperationError,
};
use crate::request::parsed_body::{ArrayBody, ParsedBody};
use crate::request::submission::{MAX_NAME_BYTES, SubmissionParams};
use crate::response::reply::JsonReply;
use crate::routes::tags::Tag;
use warpgauge_model::FailureCode;
use warpgauge_service::{Caller, Extents, JobSubmission, Services, WantedProduct};
use warpgauge_sparse::spmv::{
    MatrixList, MatrixReply, Method, SpmvProblem, SpmvRequest, SpmvResponse, StoredSpmvRequest,
    check_matrix_name, request_path,
};

/// Operations on sparse matrices.
pub(crate) struct Spmv {
    pub(crate) service: Services,
}

/// Describes the blocking work, for errors.
const PREPARING: &str = "preparing the product";

/// Estimated size of an answer per element of the product, bytes.
const ELEMENT_BYTES: usize = 12;

#[OpenApi]
impl Spmv {
    /// Multiply a sparse matrix by a vector
    ///
    /// Evaluates a kernel on a matrix in CSR form, as a job. The product is compared with the
    /// CPU's; each row's difference must be within a bound on its rounding errors. Events on the
    /// device time the kernel. A kernel that does not compile, crashes or computes a wrong product
    /// is a result (200, `success: false`). In MessagePack, arrays can be `bin`, which is many
    /// times faster than lists.
    #[oai(
        path = "/execute_spmv",
        method = "post",
        operation_id = "execute_spmv",
        tag = "Tag::Spmv"
    )]
    async fn execute_spmv(
        &self,
        params: SubmissionParams,
        /// Kernel, matrix and vector.
        request: ArrayBody<SpmvRequest>,
    ) -> Result<JsonReply<SpmvResponse>, OperationError<JobBodyErrors>> {
        let ParsedBody { value, share, .. } = request;
        let options = value.options.clone();
        let wanted = WantedProduct::Given(Box::new(value));
        let (contract, extents) =
            self.service.matrices.contract_of_product(wanted, &params.0.caller).await?;
        let report = self.service.evaluations.evaluate(contract, params.0).await;
        let report =
            report.map_err(|error| error.at_paths(|path| request_path(path, &options, false)))?;
        drop(share);
        Ok(reply(move || SpmvResponse::new(&report, extents), extents).await?)
    }

    /// Multiply a stored matrix by a vector
    ///
    /// Works like `POST /execute_spmv`, with an uploaded matrix or a generated one such as
    /// `poisson2d:nx=512`. With `method: cusparse`, NVIDIA's cuSPARSE computes the product in place
    /// of a kernel, and is timed and checked in the same way. With `method: all`, both the kernel
    /// and cuSPARSE compute it, each as a job. Without a GPU or cuSPARSE, `cusparse` and `all` are
    /// rejected with the reason (400).
    #[oai(
        path = "/execute_spmv_mtx",
        method = "post",
        operation_id = "execute_spmv_mtx",
        tag = "Tag::Spmv"
    )]
    async fn execute_spmv_mtx(
        &self,
        params: SubmissionParams,
        /// Kernel, and the name of a matrix.
        request: ArrayBody<StoredSpmvRequest>,
    ) -> Result<JsonReply<SpmvResponse>, OperationError<NamedBodyErrors>> {
        let ParsedBody { value, share, .. } = request;
        let mut answers = Vec::new();
        // cuSPARSE comes first, because it may be missing on this machine: then the request is
        // rejected before anything has run.
        for &method in value.methods().map_err(unfit)?.iter().rev() {
            let request = value.only(method).map_err(unfit)?;
            let wanted = WantedProduct::Stored(Box::new(request));
            let submission = match value.method == method.name() {
                true => params.0.clone(),
                false => of_method(&params.0, method)?,
            };
            let (contract, extents) =
                self.service.matrices.contract_of_product(wanted, &submission.caller).await?;
            let report = self.service.evaluations.evaluate(contract, submission).await;
            let report = report
                .map_err(|error| error.at_paths(|path| request_path(path, &value.options, true)))?;
            answers.push((report, extents));
        }
        drop(share);
        let rows: u32 = answers.iter().map(|(_, (rows, ..))| rows).sum();
        // An answer with both results contains the product of one of them twice.
        let rows = if answers.len() > 1 { rows.saturating_add(rows / 2) } else { rows };
        let answer = move || {
            let answers =
                answers.iter().map(|(report, extents)| SpmvResponse::new(report, *extents));
            // The last answer is that of the kernel, if there is one.
            answers.reduce(|cusparse, custom| custom.beside(cusparse)).unwrap_or_default()
        };
        Ok(reply(answer, (rows, 0, 0)).await?)
    }

    /// Upload a matrix
    ///
    /// Stores a matrix under a name for the caller's key, and replaces an earlier matrix of that
    /// name. The server detects the format: Matrix Market (coordinate or array; real, integer or
    /// pattern; general, symmetric or skew-symmetric), or SPASM, version 2. The file is parsed at
    /// once; an invalid file changes nothing. `GET /check_mtx/{name}` reports the progress of an
    /// upload.
    #[oai(path = "/upload_mtx", method = "post", operation_id = "upload_mtx", tag = "Tag::Spmv")]
    async fn upload_mtx(
        &self,
        caller: Data<&Caller>,
        /// File, as the field `file` of a form or as base64 in JSON.
        request: MatrixUpload,
    ) -> Result<JsonReply<MatrixReply>, OperationError<JobBodyErrors>> {
        let MatrixUpload { upload, share } = request;
        let summary = self.service.matrices.put_matrix(upload, &caller).await?;
        drop(share);
        Ok(JsonReply::new(&MatrixReply::new(&summary.filename.clone(), Some(summary)))?)
    }

    /// Look for a matrix
    ///
    /// Returns whether the caller has a matrix of this name, the matrix's properties, and the
    /// progress of uploads under this name.
    #[oai(path = "/check_mtx/:name", method = "get", operation_id = "check_mtx", tag = "Tag::Spmv")]
    async fn check_mtx(
        &self,
        caller: Data<&Caller>,
        /// Name of the matrix.
        name: Path<String>,
    ) -> Result<JsonReply<MatrixReply>, OperationError<KeyErrors>> {
        check_matrix_name(&name).map_err(named)?;
        let all = self.service.matrices.matrices(&caller).await?;
        let found = all.into_iter().find(|one| one.filename == name.0);
        let mut uploads = self.service.matrices.matrix_uploads(&caller);
        uploads.retain(|one| one.filename == name.0);
        Ok(JsonReply::new(&MatrixReply { uploads, ..MatrixReply::new(&name, found) })?)
    }

    /// Get a matrix as a file
    ///
    /// Returns a matrix of the caller, or a generated matrix, in Matrix Market or SPASM format. In
    /// SPASM files, values are rounded to binary32, and explicit zeros are omitted.
    #[oai(
        path = "/check_mtx/:name/data",
        method = "get",
        operation_id = "get_mtx",
        tag = "Tag::Spmv"
    )]
    async fn get_mtx(
        &self,
        caller: Data<&Caller>,
        /// Name of the matrix.
        name: Path<String>,
        /// Format of the file.
        #[oai(default)]
        format: Query<MatrixFormat>,
    ) -> Result<MatrixFileReply, OperationError<BaselineErrors>> {
        let file = self.service.matrices.matrix_file(&name, format.0.into(), &caller).await?;
        Ok(MatrixFileReply(file))
    }

    /// Remove a matrix
    ///
    /// Removes a matrix of the caller. Multiplications that have begun with the matrix continue.
    #[oai(
        path = "/check_mtx/:name",
        method = "delete",
        operation_id = "remove_mtx",
        tag = "Tag::Spmv"
    )]
    async fn remove_mtx(
        &self,
        caller: Data<&Caller>,
        /// Name of the matrix.
        name: Path<String>,
    ) -> Result<JsonReply<MatrixReply>, OperationError<BaselineErrors>> {
        check_matrix_name(&name).map_err(named)?;
        self.service.matrices.remove_matrix(&name, &caller).await?;
        Ok(JsonReply::new(&MatrixReply::new(&name, None))?)
    }

    /// List matrices
    ///
    /// Returns the caller's matrices, sorted by name, and the progress of uploads.
    #[oai(path = "/list_mtx", method = "get", operation_id = "list_mtx", tag = "Tag::Spmv")]
    async fn list_mtx(
        &self,
        caller: Data<&Caller>,
    ) -> Result<JsonReply<MatrixList>, OperationError<KeyErrors>> {
        let matrices = self.service.matrices.matrices(&caller).await?;
        let files = matrices.iter().map(|one| one.filename.clone()).collect();
        let uploads = self.service.matrices.matrix_uploads(&caller);
        Ok(JsonReply::new(&MatrixList { success: true, files, matrices, uploads })?)
    }
}

fn unfit(problem: SpmvProblem) -> ApiError {
    ApiError::field(&problem.path, problem.code, problem.message)
}

/// Returns the submission for one of the jobs of a request. Its idempotency key is derived from the
/// request's, so that a retry finds each job again.
fn of_method(submission: &JobSubmission, method: Method) -> Result<JobSubmission, ApiError> {
    let mut own = submission.clone();
    if let Some(key) = &mut own.idempotency_key {
        key.push('/');
        key.push_str(method.name());
        if key.len() > MAX_NAME_BYTES {
            let most = MAX_NAME_BYTES - "/cusparse".len();
            let message = format!("with `method: all`, at most {most} characters are allowed");
            return Err(ApiError::field("Idempotency-Key", FailureCode::TooLarge, message));
        }
    }
    Ok(own)
}

fn named(message: String) -> ApiError {
    ApiError::field("name", FailureCode::InvalidData, message)
}

/// Returns an answer that contains a product with this number of rows.
async fn reply(
    answer: impl FnOnce() -> SpmvResponse + Send + 'static,
    (rows, ..): Extents,
) -> Result<JsonReply<SpmvResponse>, ApiError> {
    let answer = run_blocking("spmv", PREPARING, answer).await?;
    JsonReply::with_content(answer, rows as usize * ELEMENT_BYTES).await
}
