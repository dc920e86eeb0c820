//! Sparse matrix times vector: the operations of the Remote GPU Execution Service.

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

/// The operations on sparse matrices over a service.
pub(crate) struct Spmv {
    pub(crate) service: Services,
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
        params: SubmissionParams,
        /// A kernel, a matrix and a vector.
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
    /// As `/execute_spmv`, with a matrix that was uploaded, or a generated one such as
    /// `poisson2d:nx=512`. `method: cusparse` has NVIDIA's library multiply in place of a kernel, timed and
    /// checked in the same way; `all` has both, as a job each. Where there is no GPU or no cuSPARSE, both are
    /// refused with the reason (400).
    #[oai(
        path = "/execute_spmv_mtx",
        method = "post",
        operation_id = "execute_spmv_mtx",
        tag = "Tag::Spmv"
    )]
    async fn execute_spmv_mtx(
        &self,
        params: SubmissionParams,
        /// A kernel, and the name of a matrix.
        request: ArrayBody<StoredSpmvRequest>,
    ) -> Result<JsonReply<SpmvResponse>, OperationError<NamedBodyErrors>> {
        let ParsedBody { value, share, .. } = request;
        let mut answers = Vec::new();
        // What the machine may lack goes first: then nothing has run where it is refused.
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
        // Of two, one stands there twice.
        let rows = if answers.len() > 1 { rows.saturating_add(rows / 2) } else { rows };
        let answer = move || {
            let answers =
                answers.iter().map(|(report, extents)| SpmvResponse::new(report, *extents));
            // The last is the kernel's, if there is one.
            answers.reduce(|cusparse, custom| custom.beside(cusparse)).unwrap_or_default()
        };
        Ok(reply(answer, (rows, 0, 0)).await?)
    }

    /// Upload a matrix
    ///
    /// A Matrix Market file: coordinate or array; real, integer or pattern; general, symmetric or
    /// skew-symmetric. Or a SPASM file of version 2. What it begins with says which. It is read at once,
    /// and kept under its name for the caller's key, in place of the one of that name. A file that is no
    /// such matrix changes nothing. `/check_mtx/{name}` reports meanwhile how far it is read.
    #[oai(path = "/upload_mtx", method = "post", operation_id = "upload_mtx", tag = "Tag::Spmv")]
    async fn upload_mtx(
        &self,
        caller: Data<&Caller>,
        /// The file, as field `file` of a form or as base64 in JSON.
        request: MatrixUpload,
    ) -> Result<JsonReply<MatrixReply>, OperationError<JobBodyErrors>> {
        let MatrixUpload { upload, share } = request;
        let summary = self.service.matrices.put_matrix(upload, &caller).await?;
        drop(share);
        Ok(JsonReply::new(&MatrixReply::new(&summary.filename.clone(), Some(summary)))?)
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
    ) -> Result<MatrixFileReply, OperationError<BaselineErrors>> {
        let file = self.service.matrices.matrix_file(&name, format.0.into(), &caller).await?;
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
    ) -> Result<JsonReply<MatrixReply>, OperationError<BaselineErrors>> {
        check_matrix_name(&name).map_err(named)?;
        self.service.matrices.remove_matrix(&name, &caller).await?;
        Ok(JsonReply::new(&MatrixReply::new(&name, None))?)
    }

    /// List matrices
    ///
    /// The caller's own, by name; and how far uploads are that are being worked on.
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

/// Returns how one of several jobs of a request is accepted. A retry of the request finds each job again.
fn of_method(submission: &JobSubmission, method: Method) -> Result<JobSubmission, ApiError> {
    let mut own = submission.clone();
    if let Some(key) = &mut own.idempotency_key {
        key.push('/');
        key.push_str(method.name());
        if key.len() > MAX_NAME_BYTES {
            let most = MAX_NAME_BYTES - "/cusparse".len();
            let message = format!("with `method: all`, at most {most} characters are taken");
            return Err(ApiError::field("Idempotency-Key", FailureCode::TooLarge, message));
        }
    }
    Ok(own)
}

fn named(message: String) -> ApiError {
    ApiError::field("name", FailureCode::InvalidData, message)
}

/// An answer with a product of so many rows.
async fn reply(
    answer: impl FnOnce() -> SpmvResponse + Send + 'static,
    (rows, ..): Extents,
) -> Result<JsonReply<SpmvResponse>, ApiError> {
    let answer = run_blocking("spmv", PREPARING, answer).await?;
    JsonReply::with_content(answer, rows as usize * ELEMENT_BYTES).await
}
