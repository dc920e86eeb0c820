//! Handlers of the operations on kernels: [`Kernels`].

use poem::http::HeaderMap;
use poem::web::Data;
use poem_openapi::OpenApi;
use poem_openapi::param::Query;

use super::sweep::{self, Form, SweepFormat, SweepReply};
use crate::error::ApiError;
use crate::error::operation::{BodyErrors, ContractErrors, OperationError};
use crate::request::answer_form::{AnswerForm, HasPlaceholders};
use crate::request::parsed_body::{CompatibleBody, ParsedBody};
use crate::request::submission::SubmissionParams;
use crate::response::accepted::{AcceptedReply, ReportOrAccepted, yes};
use crate::response::reply::JsonReply;
use crate::routes::tags::Tag;
use warpgauge_contract::{
    CompareRequest, CompileRequest, EvaluateRequest, LegacyCompareRequest, SweepRequest,
};
use warpgauge_report::{CompareResponse, CompileResponse, EvaluateResponse, ProfilePlan};
use warpgauge_service::{Caller, JobRequest, Services};

/// Operations of the HTTP API on kernels.
pub(crate) struct Kernels {
    pub(crate) service: Services,
}

#[OpenApi]
impl Kernels {
    /// Evaluate a kernel
    ///
    /// Compiles a kernel, runs it on seeded or given inputs, checks its outputs and times it. A
    /// kernel that does not compile or is wrong is a result (200), not an HTTP error. With
    /// `wait=false` the job is accepted at once, and `GET /jobs/{job_id}` returns the report.
    /// Otherwise closing the connection cancels the evaluation. Fields of the CUDA Evaluation
    /// Server without a value are `false`, 0 or null; with the header `Prefer: return=minimal` they
    /// are null or absent.
    #[oai(path = "/evaluate", method = "post", operation_id = "evaluate", tag = "Tag::Kernels")]
    async fn evaluate(
        &self,
        params: SubmissionParams,
        form: AnswerForm,
        /// Whether to wait for the report.
        #[oai(default = "yes")]
        wait: Query<bool>,
        /// Contract: the kernel, its arguments and its expectations.
        request: CompatibleBody<EvaluateRequest>,
    ) -> Result<ReportOrAccepted<EvaluateResponse>, OperationError<ContractErrors>> {
        let ParsedBody { value, share, .. } = request;
        if !wait.0 {
            return Ok(self.submit(JobRequest::Evaluate(Box::new(value)), params).await?);
        }
        let report = self.service.evaluations.evaluate(value, params.0).await?;
        drop(share);
        Ok(ReportOrAccepted::Report(report_reply(report.in_form(form)).await?))
    }

    /// Compare kernels
    ///
    /// Evaluates a reference and one to six candidates, and then times them side by side in
    /// interleaved blocks. The verdict is `faster`, `slower`, `same` or `inconclusive`, with the
    /// confidence interval of the speedup and the smallest detectable effect. The outputs of
    /// candidates must match the reference's within `atol` and `rtol`. With `wait=false` the job is
    /// accepted at once, and `GET /jobs/{job_id}` returns the report. Fields without a value have
    /// the same form as in `POST /evaluate`.
    #[oai(path = "/compare", method = "post", operation_id = "compare", tag = "Tag::Kernels")]
    async fn compare(
        &self,
        params: SubmissionParams,
        form: AnswerForm,
        /// Whether to wait for the report.
        #[oai(default = "yes")]
        wait: Query<bool>,
        /// Reference and candidates, with their arguments.
        request: CompatibleBody<CompareRequest>,
    ) -> Result<ReportOrAccepted<CompareResponse>, OperationError<ContractErrors>> {
        let ParsedBody { value, share, .. } = request;
        if !wait.0 {
            return Ok(self.submit(JobRequest::Compare(Box::new(value)), params).await?);
        }
        let report = self.service.evaluations.compare(value, params.0).await?;
        drop(share);
        Ok(ReportOrAccepted::Report(JsonReply::new(&report.in_form(form))?))
    }

    /// Compare two sources
    ///
    /// Compares two PyTorch sources. The request has the fields of the CUDA Evaluation Server. The
    /// operation is equivalent to a `POST /compare` of a `torch` and a `torch_cuda` kernel without
    /// a contract, and returns the same kind of report.
    #[oai(path = "/", method = "post", operation_id = "compare_sources", tag = "Tag::Kernels")]
    async fn compare_sources(
        &self,
        params: SubmissionParams,
        form: AnswerForm,
        /// Whether to wait for the report.
        #[oai(default = "yes")]
        wait: Query<bool>,
        /// The two PyTorch sources, in the fields of the CUDA Evaluation Server.
        request: CompatibleBody<LegacyCompareRequest>,
    ) -> Result<ReportOrAccepted<CompareResponse>, OperationError<ContractErrors>> {
        let ParsedBody { value, share, .. } = request;
        if !wait.0 {
            return Ok(self.submit(JobRequest::Compare(Box::new(value.into())), params).await?);
        }
        let report = self.service.evaluations.compare(value.into(), params.0).await?;
        drop(share);
        Ok(ReportOrAccepted::Report(JsonReply::new(&report.in_form(form))?))
    }

    /// Sweep over axes
    ///
    /// Evaluates one contract at every combination of the values of its `axes`, and returns one
    /// table. A point that is invalid, does not compile or is wrong has a row like the others. With
    /// `stream=true` or `Accept: text/event-stream` the server sends each point as a server-sent
    /// event once the point is done. Closing the connection cancels the sweep. With `wait=false`
    /// the job is accepted at once, and `GET /jobs/{job_id}` returns the table.
    #[oai(path = "/sweep", method = "post", operation_id = "sweep", tag = "Tag::Kernels")]
    async fn sweep(
        &self,
        params: SubmissionParams,
        headers: &HeaderMap,
        /// Whether to wait for the report. A stream always waits.
        #[oai(default = "yes")]
        wait: Query<bool>,
        /// Whether to send each point as a server-sent event once the point is done.
        stream: Query<Option<bool>>,
        /// Format of the report if it is not a stream: `json`, or only its table as `csv`.
        format: Query<Option<SweepFormat>>,
        /// Contract of an evaluation, with its axes.
        request: ParsedBody<SweepRequest>,
    ) -> Result<SweepReply, OperationError<ContractErrors>> {
        let ParsedBody { value, share, .. } = request;
        let form = Form::wanted(stream.0, format.0, headers);
        if !wait.0 {
            form.without_report(stream.0, format.0)?;
            let request = JobRequest::Sweep(Box::new(value));
            let accepted = AcceptedReply::of(&self.service, request, params.0).await?;
            return Ok(SweepReply::Accepted(accepted));
        }
        Ok(sweep::reply(&self.service, value, params.0, share, form).await?)
    }

    /// Compile a kernel
    ///
    /// Compiles a kernel for a device of this machine or for `arch`, and reports diagnostics and
    /// resources. No device is needed. A kernel that does not compile is a result (200).
    #[oai(path = "/compile", method = "post", operation_id = "compile", tag = "Tag::Kernels")]
    async fn compile(
        &self,
        caller: Data<&Caller>,
        /// Kernel, architecture and options.
        request: ParsedBody<CompileRequest>,
    ) -> Result<JsonReply<CompileResponse>, OperationError<BodyErrors>> {
        let ParsedBody { value, share, .. } = request;
        let report = self.service.compiler.compile(value, &caller).await?;
        drop(share);
        let content_bytes = report.image_b64.as_ref().map_or(0, String::len);
        Ok(JsonReply::with_content(report, content_bytes).await?)
    }

    /// Run a kernel once
    ///
    /// Compiles a kernel, runs it once without timing it, and returns its outputs. With
    /// `wait=false` the job is accepted at once, and `GET /jobs/{job_id}` returns the outputs.
    #[oai(path = "/execute", method = "post", operation_id = "execute", tag = "Tag::Kernels")]
    async fn execute(
        &self,
        params: SubmissionParams,
        /// Whether to wait for the report.
        #[oai(default = "yes")]
        wait: Query<bool>,
        /// Contract: the kernel and its arguments.
        request: ParsedBody<EvaluateRequest>,
    ) -> Result<ReportOrAccepted<EvaluateResponse>, OperationError<ContractErrors>> {
        let ParsedBody { value, share, .. } = request;
        if !wait.0 {
            return Ok(self.submit(JobRequest::Execute(Box::new(value)), params).await?);
        }
        let report = self.service.evaluations.execute(value, params.0).await?;
        drop(share);
        Ok(ReportOrAccepted::Report(report_reply(report).await?))
    }

    /// Plan a profile
    ///
    /// Returns the source, the number of passes and the estimated time for the metrics that a
    /// contract's `profile` requests, on this machine. Nothing is compiled or run.
    #[oai(
        path = "/profile/plan",
        method = "post",
        operation_id = "plan_profile",
        tag = "Tag::Kernels"
    )]
    async fn profile_plan(
        &self,
        caller: Data<&Caller>,
        /// Contract with a `profile`.
        request: ParsedBody<EvaluateRequest>,
    ) -> Result<JsonReply<ProfilePlan>, OperationError<ContractErrors>> {
        let ParsedBody { value, share, .. } = request;
        let plan = self.service.compiler.profile_plan(value, &caller).await?;
        drop(share);
        Ok(JsonReply::new(&plan)?)
    }
}

impl Kernels {
    /// Submits a job without waiting for it.
    async fn submit<T>(
        &self,
        request: JobRequest,
        params: SubmissionParams,
    ) -> Result<ReportOrAccepted<T>, ApiError> {
        AcceptedReply::of(&self.service, request, params.0).await.map(ReportOrAccepted::Accepted)
    }
}

async fn report_reply(report: EvaluateResponse) -> Result<JsonReply<EvaluateResponse>, ApiError> {
    let content_bytes = report.content_bytes();
    JsonReply::with_content(report, content_bytes).await
}
