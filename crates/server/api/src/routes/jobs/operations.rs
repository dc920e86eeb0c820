//! Handlers of the operations on jobs.

use poem::http::HeaderMap;
use poem::web::Data;
use poem_openapi::param::{Path, Query};
use poem_openapi::{ApiResponse, OpenApi};

use super::artifacts::{self, ArtifactReply, RooflineReply};
use super::batch::{self, Batch, BatchAccepted};
use super::legacy::LegacyJob;
use crate::error::operation::{
    ArtifactErrors, ContractErrors, JobErrors, KeyErrors, OperationError, WatchedJobErrors,
};
use crate::request::parsed_body::ParsedBody;
use crate::response::accepted::Accepted;
use crate::response::events::{EventsReply, Watchers};
use crate::response::reply::JsonReply;
use crate::routes::tags::Tag;
use crate::schema::Word;
use warpgauge_gate::SuiteVerdict;
use warpgauge_job_views::{CancelReport, JobList, JobView, KernelCodeView};
use warpgauge_model::{JobKind, JobState};
use warpgauge_report::KernelVerdict;
use warpgauge_service::webhook::WebhookPolicy;
use warpgauge_service::{ArtifactList, Caller, JobQuery, ServiceError, Services};

/// Operations of the HTTP API on jobs.
pub(crate) struct Jobs {
    pub(crate) service: Services,
    pub(crate) watchers: Watchers,
}

/// Answers of `POST /jobs`.
#[derive(ApiResponse)]
enum BatchTaken {
    /// All jobs were accepted, and can be watched.
    #[oai(status = 202)]
    Accepted(JsonReply<BatchAccepted>),
}

/// Default number of jobs in a page.
fn page() -> u32 {
    50
}

#[OpenApi]
impl Jobs {
    /// List jobs
    ///
    /// Returns the caller's jobs, newest first. An administrator receives the jobs of all callers.
    /// A job must match every filter; if several states are given, it must be in one of them. New
    /// jobs do not shift later pages.
    #[oai(path = "/jobs", method = "get", operation_id = "list_jobs", tag = "Tag::Jobs")]
    #[expect(clippy::too_many_arguments, reason = "each is a parameter of the operation")]
    async fn list(
        &self,
        caller: Data<&Caller>,
        /// State of the jobs. The parameter may be repeated.
        #[oai(default)]
        state: Query<Vec<Word<JobState>>>,
        /// Kind of the jobs.
        kind: Query<Option<Word<JobKind>>>,
        /// Verdict on the kernel, or the worst verdict on several kernels.
        verdict: Query<Option<Word<KernelVerdict>>>,
        /// Decision of a gate. Jobs of other kinds do not match.
        decision: Query<Option<Word<SuiteVerdict>>>,
        /// Label of the jobs.
        label: Query<Option<String>>,
        /// Idempotency key of one of the caller's jobs.
        idempotency_key: Query<Option<String>>,
        /// Earliest time of acceptance, seconds since the Unix epoch.
        created_after: Query<Option<f64>>,
        /// Only jobs that were accepted before this time, seconds since the Unix epoch.
        created_before: Query<Option<f64>>,
        /// Maximum number of jobs in the page.
        #[oai(default = "page", validator(minimum(value = "1"), maximum(value = "200")))]
        limit: Query<u32>,
        /// `next_cursor` of the previous page.
        cursor: Query<Option<String>>,
    ) -> Result<JsonReply<JobList>, OperationError<KeyErrors>> {
        let query = JobQuery {
            states: state.0.into_iter().map(|state| state.0).collect(),
            kind: kind.0.map(|kind| kind.0),
            verdict: verdict.0.map(|verdict| verdict.0),
            decision: decision.0.map(|decision| decision.0),
            label: label.0,
            idempotency_key: idempotency_key.0,
            created_after: created_after.0,
            created_before: created_before.0,
            limit: limit.0,
            cursor: cursor.0,
        };
        Ok(JsonReply::new(&self.service.jobs.jobs(query, &caller).await?)?)
    }

    /// Submit jobs
    ///
    /// Accepts all jobs or none, without waiting for them. `GET /jobs/{job_id}` returns the state and the report of
    /// each, as for `POST /evaluate?wait=false`.
    #[oai(path = "/jobs", method = "post", operation_id = "submit_jobs", tag = "Tag::Jobs")]
    async fn submit(
        &self,
        caller: Data<&Caller>,
        policy: Data<&WebhookPolicy>,
        /// Jobs, 1 to 1000.
        request: ParsedBody<Batch>,
    ) -> Result<BatchTaken, OperationError<ContractErrors>> {
        let ParsedBody { value, share, .. } = request;
        let jobs = batch::requests(value, &caller, &policy)?;
        let submitted = self.service.evaluations.submit_all(jobs).await?;
        drop(share);
        let jobs = submitted.into_iter().map(Accepted::new).collect();
        Ok(BatchTaken::Accepted(JsonReply::new(&BatchAccepted { jobs })?))
    }

    /// Get a job
    ///
    /// Returns the state of a job and, once it has ended, its report. Browsers receive a page.
    #[oai(path = "/jobs/:job_id", method = "get", operation_id = "get_job", tag = "Tag::Jobs")]
    async fn job(
        &self,
        caller: Data<&Caller>,
        /// Id of the job, which an earlier answer returned as `job_id`.
        job_id: Path<String>,
    ) -> Result<JsonReply<JobView>, OperationError<JobErrors>> {
        let job = self.find(&job_id, &caller).await?;
        let content_bytes = content_bytes(&job);
        Ok(JsonReply::with_content(job, content_bytes).await?)
    }

    /// Get a job's state
    ///
    /// Returns the state with the fields of the CUDA Evaluation Server. `GET /jobs/{job_id}` returns the report too.
    #[oai(path = "/job/:job_id", method = "get", operation_id = "get_job_state", tag = "Tag::Jobs")]
    async fn legacy_job(
        &self,
        caller: Data<&Caller>,
        /// Id of the job, which an earlier answer returned as `job_id`.
        job_id: Path<String>,
    ) -> Result<JsonReply<LegacyJob>, OperationError<JobErrors>> {
        Ok(JsonReply::new(&LegacyJob::new(self.find(&job_id, &caller).await?))?)
    }

    /// List a job's artifacts
    ///
    /// Returns the artifacts of each kernel: PTX, SASS, machine code, the compiler's log, and the
    /// files of profilers. For each missing artifact, the answer gives the reason. Artifacts are
    /// stored with their job, as long as they fit in the server's storage budget.
    #[oai(
        path = "/jobs/:job_id/artifacts",
        method = "get",
        operation_id = "list_artifacts",
        tag = "Tag::Jobs"
    )]
    async fn artifacts(
        &self,
        caller: Data<&Caller>,
        /// Id of the job, which an earlier answer returned as `job_id`.
        job_id: Path<String>,
    ) -> Result<JsonReply<ArtifactList>, OperationError<ArtifactErrors>> {
        let job = self.find(&job_id, &caller).await?;
        Ok(JsonReply::new(&self.service.artifacts.artifacts(&job.job_id, &caller).await?)?)
    }

    /// Get an artifact of a job
    ///
    /// Returns the content of an artifact. If PTX or machine code was not needed for the run, it is
    /// compiled on demand, so SASS is available for emulated kernels too. SASS needs `nvdisasm` on
    /// the server.
    #[oai(
        path = "/jobs/:job_id/artifacts/:name",
        method = "get",
        operation_id = "get_artifact",
        tag = "Tag::Jobs"
    )]
    async fn artifact(
        &self,
        caller: Data<&Caller>,
        /// Id of the job, which an earlier answer returned as `job_id`.
        job_id: Path<String>,
        /// Name of the artifact: `ptx`, `sass`, `cubin`, `log`, `ttir`, `ttgir`, `llir` (of Triton kernels),
        /// `ncu-rep` or `nsys-rep`.
        name: Path<String>,
        /// Kernel of a comparison: `reference` or the name of a candidate. Default: the job's kernel, or the first
        /// candidate.
        kernel: Query<Option<String>>,
    ) -> Result<ArtifactReply, OperationError<ArtifactErrors>> {
        let job = self.find(&job_id, &caller).await?;
        let kind = artifacts::kind(&name, &job.job_id)?;
        let kernel = kernel.0.as_deref();
        let content = self.service.artifacts.artifact(&job.job_id, kind, kernel, &caller).await?;
        Ok(ArtifactReply(content))
    }

    /// Get a job's source with PTX and SASS
    ///
    /// Returns the source of a kernel, and the compiled instructions with the source line of each.
    /// CUDA C++ is compiled again with line information. SASS needs `nvdisasm` on the server. For
    /// each missing listing, the answer gives the reason. On the emulated device each line and each
    /// PTX instruction has counters of one launch. Browsers receive a page.
    #[oai(
        path = "/jobs/:job_id/code",
        method = "get",
        operation_id = "get_job_code",
        tag = "Tag::Jobs"
    )]
    async fn code(
        &self,
        caller: Data<&Caller>,
        /// Id of the job, which an earlier answer returned as `job_id`.
        job_id: Path<String>,
        /// Kernel of a comparison: `reference` or the name of a candidate. Default: the job's kernel, or the first
        /// candidate.
        kernel: Query<Option<String>>,
    ) -> Result<JsonReply<KernelCodeView>, OperationError<ArtifactErrors>> {
        let job = self.find(&job_id, &caller).await?;
        let kernel = kernel.0.as_deref();
        Ok(JsonReply::new(&self.service.artifacts.code(&job.job_id, kernel, &caller).await?)?)
    }

    /// Draw a job's roofline
    ///
    /// Returns the roofline of an evaluation with `profile`, as an SVG picture. The report contains
    /// the numbers in `kernel_exec_result.metadata.device_metrics.roofline`.
    #[oai(
        path = "/jobs/:job_id/roofline.svg",
        method = "get",
        operation_id = "draw_roofline",
        tag = "Tag::Jobs"
    )]
    async fn roofline(
        &self,
        caller: Data<&Caller>,
        /// Id of the job, which an earlier answer returned as `job_id`.
        job_id: Path<String>,
    ) -> Result<RooflineReply, OperationError<JobErrors>> {
        Ok(RooflineReply::of(&self.find(&job_id, &caller).await?)?)
    }

    /// Cancel a job
    ///
    /// Cancels a job that has not begun. If the job is running, stops it and its worker. If the job
    /// is being stopped or has ended, nothing changes. Returns the state of the job.
    #[oai(
        path = "/jobs/:job_id",
        method = "delete",
        operation_id = "cancel_job",
        tag = "Tag::Jobs"
    )]
    async fn cancel(
        &self,
        caller: Data<&Caller>,
        /// Id of the job, which an earlier answer returned as `job_id`.
        job_id: Path<String>,
    ) -> Result<JsonReply<CancelReport>, OperationError<JobErrors>> {
        let job_id = checked(&job_id)?;
        Ok(JsonReply::new(&self.service.jobs.cancel(job_id, &caller).await?)?)
    }

    /// Watch a job
    ///
    /// Sends the events of a job as server-sent events: `progress` on each change, the first at
    /// once, and finally one `end`. A slow reader receives the newest state, and may miss
    /// intermediate states. A client that reconnects with `Last-Event-ID` receives only newer
    /// states.
    #[oai(
        path = "/jobs/:job_id/events",
        method = "get",
        operation_id = "watch_job",
        tag = "Tag::Jobs"
    )]
    async fn events(
        &self,
        headers: &HeaderMap,
        caller: Data<&Caller>,
        /// Id of the job, which an earlier answer returned as `job_id`.
        job_id: Path<String>,
    ) -> Result<EventsReply, OperationError<WatchedJobErrors>> {
        let job_id = checked(&job_id)?;
        let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
        Ok(self.watchers.watch(&*self.service.jobs, job_id, &caller, last).await?)
    }
}

impl Jobs {
    async fn find(&self, job_id: &str, caller: &Caller) -> Result<JobView, ServiceError> {
        self.service.jobs.job(checked(job_id)?, caller).await
    }
}

/// Rejects a job id that is too long. An id has 36 characters. The error quotes only the beginning
/// of the id.
fn checked(job_id: &str) -> Result<&str, ServiceError> {
    if job_id.len() > 64 {
        return Err(ServiceError::NoSuchJob(job_id.chars().take(64).collect()));
    }
    Ok(job_id)
}

/// Returns the size of all tensor contents in a job's report, bytes.
fn content_bytes(job: &JobView) -> usize {
    let compared = job.comparison.iter().flat_map(|comparison| {
        let candidates = comparison.candidates.iter().map(|candidate| &candidate.evaluation);
        candidates.chain([&comparison.reference])
    });
    let reports = job.result.iter().chain(compared);
    reports.map(warpgauge_report::EvaluateResponse::content_bytes).sum()
}
