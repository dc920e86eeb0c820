//! Handlers of the operations on reports of profilers: [`Imports`].

use std::sync::Arc;

use poem::Request;
use poem::web::Data;
use poem_openapi::OpenApi;

use super::reply::ImportReply;
use super::upload::{ReportForm, ReportUpload};
use crate::error::ApiError;
use crate::error::operation::{BodyErrors, OperationError};
use crate::response::accept::prefers_html;
use crate::routes::tags::Tag;
use warpgauge_metrics::import::{Changes, Imported};
use warpgauge_service::{
    Caller, ExecError, ImportForm, ImportOrder, ImportService, Problem, ServiceError,
};

/// Operations of the HTTP API on reports of profilers.
pub(crate) struct Imports {
    pub(crate) service: Arc<dyn ImportService>,
}

#[OpenApi]
impl Imports {
    /// Read a report of a profiler
    ///
    /// Reads a report that NVIDIA's tools wrote elsewhere, as `warpgauge import` does: pages of
    /// Nsight Compute, tables and SQLite exports of Nsight Systems, logs of compute-sanitizer, also
    /// compressed with gzip. The content decides the type. The answer has what limits each kernel,
    /// with advice; or timelines, findings, counters of lines. A report of Nsight Compute
    /// (`.ncu-rep`) is refused with the command that exports it. Browsers receive a page. A
    /// separate process reads the report, and the server stores nothing of it.
    #[oai(path = "/import", method = "post", operation_id = "import_report", tag = "Tag::Reports")]
    async fn import_report(
        &self,
        caller: Data<&Caller>,
        request: &Request,
        /// Form with the report.
        upload: ReportForm<1>,
    ) -> Result<ImportReply<Imported>, OperationError<BodyErrors>> {
        Ok(self.read(upload.0, request, &caller).await?)
    }

    /// Compare two reports of a profiler
    ///
    /// Reads two reports of the same tool as `POST /import` does. The answer has what changed from
    /// the earlier report (`against`) to the other, sorted by what explains the change of time.
    #[oai(
        path = "/import/changes",
        method = "post",
        operation_id = "compare_reports",
        tag = "Tag::Reports"
    )]
    async fn compare_reports(
        &self,
        caller: Data<&Caller>,
        request: &Request,
        /// Form with both reports.
        upload: ReportForm<2>,
    ) -> Result<ImportReply<Changes>, OperationError<BodyErrors>> {
        Ok(self.read(upload.0, request, &caller).await?)
    }
}

impl Imports {
    async fn read<T>(
        &self,
        upload: ReportUpload,
        request: &Request,
        caller: &Caller,
    ) -> Result<ImportReply<T>, ApiError> {
        let ReportUpload { reports, metrics, content, share } = upload;
        let form = match prefers_html(request.headers()) {
            true => ImportForm::Page,
            false => ImportForm::Json,
        };
        let order = ImportOrder { reports, metrics, form };
        let answer = self.service.import(order, content, caller).await.map_err(refused)?;
        drop(share);
        Ok(ImportReply::new(answer, form))
    }
}

/// Converts an error. A report that cannot be read is the fault of a field of the form, not of a
/// contract.
fn refused(error: ServiceError) -> ApiError {
    match error {
        ServiceError::Exec(ExecError::Invalid(problems)) if problems.len() == 1 => {
            let Problem { path, code, message } = &problems[0];
            ApiError::field(path, code.clone(), format!("{path}: {message}"))
        }
        error => error.into(),
    }
}
