//! The operations on jobs.

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
use warpgauge_job_views::{CancelReport, JobList, JobView};
use warpgauge_model::{JobKind, JobState};
use warpgauge_service::webhook::WebhookPolicy;
use warpgauge_service::{ArtifactList, Caller, JobQuery, ServiceError, Services};

/// The operations on jobs over a service.
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

/// Jobs of a page where the caller does not say.
fn page() -> u32 {
    50
}

#[OpenApi]
impl Jobs {
    /// List jobs
    ///
    /// The caller's jobs, an administrator's everybody's, the youngest first. What several filters
    /// name must all hold; of several states any. Jobs that come while pages are read do not shift
    /// them.
    #[oai(path = "/jobs", method = "get", operation_id = "list_jobs", tag = "Tag::Jobs")]
    #[expect(clippy::too_many_arguments, reason = "each is a parameter of the operation")]
    async fn list(
        &self,
        caller: Data<&Caller>,
        /// Where they stand; may be repeated.
        #[oai(default)]
        state: Query<Vec<Word<JobState>>>,
        /// What they do.
        kind: Query<Option<Word<JobKind>>>,
        /// The label that they were given.
        label: Query<Option<String>>,
        /// The caller's own job with this `Idempotency-Key`.
        idempotency_key: Query<Option<String>>,
        /// Accepted at this time or later, seconds since the Unix epoch.
        created_after: Query<Option<f64>>,
        /// Accepted before this time, seconds since the Unix epoch.
        created_before: Query<Option<f64>>,
        /// Jobs of the page.
        #[oai(default = "page", validator(minimum(value = "1"), maximum(value = "200")))]
        limit: Query<u32>,
        /// `next_cursor` of the page before.
        cursor: Query<Option<String>>,
    ) -> Result<JsonReply<JobList>, OperationError<KeyErrors>> {
        let query = JobQuery {
            states: state.0.into_iter().map(|state| state.0).collect(),
            kind: kind.0.map(|kind| kind.0),
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
    /// Accepts all of the jobs, or none, without waiting for them. Each is watched and its report
    /// fetched as that of `/evaluate?wait=false`.
    #[oai(path = "/jobs", method = "post", operation_id = "submit_jobs", tag = "Tag::Jobs")]
    async fn submit(
        &self,
        caller: Data<&Caller>,
        policy: Data<&WebhookPolicy>,
        /// The jobs.
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
    /// Says where a job stands and, once it ended, holds its report.
    #[oai(path = "/jobs/:job_id", method = "get", operation_id = "get_job", tag = "Tag::Jobs")]
    async fn job(
        &self,
        caller: Data<&Caller>,
        /// The `job_id` of an earlier answer.
        job_id: Path<String>,
    ) -> Result<JsonReply<JobView>, OperationError<JobErrors>> {
        let job = self.find(&job_id, &caller).await?;
        let content_bytes = content_bytes(&job);
        Ok(JsonReply::with_content(job, content_bytes).await?)
    }

    /// Get a job's state
    ///
    /// The shape of the CUDA Evaluation Server. `/jobs/{job_id}` holds the report too.
    #[oai(path = "/job/:job_id", method = "get", operation_id = "get_job_state", tag = "Tag::Jobs")]
    async fn legacy_job(
        &self,
        caller: Data<&Caller>,
        /// The `job_id` of an earlier answer.
        job_id: Path<String>,
    ) -> Result<JsonReply<LegacyJob>, OperationError<JobErrors>> {
        Ok(JsonReply::new(&LegacyJob::new(self.find(&job_id, &caller).await?))?)
    }

    /// List a job's artifacts
    ///
    /// What the job left beside its report, of each of its kernels: PTX, SASS, machine code, the
    /// compiler's log, and the files of profilers. What there is not says why. Artifacts are kept
    /// with their job, for as long as the server's budget for them allows.
    #[oai(
        path = "/jobs/:job_id/artifacts",
        method = "get",
        operation_id = "list_artifacts",
        tag = "Tag::Jobs"
    )]
    async fn artifacts(
        &self,
        caller: Data<&Caller>,
        /// The `job_id` of an earlier answer.
        job_id: Path<String>,
    ) -> Result<JsonReply<ArtifactList>, OperationError<ArtifactErrors>> {
        let job = self.find(&job_id, &caller).await?;
        Ok(JsonReply::new(&self.service.artifacts.artifacts(&job.job_id, &caller).await?)?)
    }

    /// Get an artifact of a job
    ///
    /// PTX and machine code that did not run are made on demand, so that SASS can be had of a
    /// kernel that was emulated. SASS needs `nvdisasm` on the server.
    #[oai(
        path = "/jobs/:job_id/artifacts/:name",
        method = "get",
        operation_id = "get_artifact",
        tag = "Tag::Jobs"
    )]
    async fn artifact(
        &self,
        caller: Data<&Caller>,
        /// The `job_id` of an earlier answer.
        job_id: Path<String>,
        /// `ptx`, `sass`, `cubin`, `log`, `ttir`, `ttgir`, `llir` (of Triton kernels), `ncu-rep` or
        /// `nsys-rep`.
        name: Path<String>,
        /// Whose: in a comparison `reference` or a candidate's name. Default: the job's kernel, or
        /// the first candidate.
        kernel: Query<Option<String>>,
    ) -> Result<ArtifactReply, OperationError<ArtifactErrors>> {
        let job = self.find(&job_id, &caller).await?;
        let kind = artifacts::kind(&name, &job.job_id)?;
        let kernel = kernel.0.as_deref();
        let content = self.service.artifacts.artifact(&job.job_id, kind, kernel, &caller).await?;
        Ok(ArtifactReply(content))
    }

    /// Draw a job's roofline
    ///
    /// The roofline of an evaluation with `profile`, as a picture. Its numbers are in the report,
    /// at `kernel_exec_result.metadata.device_metrics.roofline`.
    #[oai(
        path = "/jobs/:job_id/roofline.svg",
        method = "get",
        operation_id = "draw_roofline",
        tag = "Tag::Jobs"
    )]
    async fn roofline(
        &self,
        caller: Data<&Caller>,
        /// The `job_id` of an earlier answer.
        job_id: Path<String>,
    ) -> Result<RooflineReply, OperationError<JobErrors>> {
        Ok(RooflineReply::of(&self.find(&job_id, &caller).await?)?)
    }

    /// Cancel a job
    ///
    /// A job that waits will not run; one that runs is stopped, its worker killed. Asking again, or
    /// for a job that has ended, changes nothing and says where the job stands.
    #[oai(
        path = "/jobs/:job_id",
        method = "delete",
        operation_id = "cancel_job",
        tag = "Tag::Jobs"
    )]
    async fn cancel(
        &self,
        caller: Data<&Caller>,
        /// The `job_id` of an earlier answer.
        job_id: Path<String>,
    ) -> Result<JsonReply<CancelReport>, OperationError<JobErrors>> {
        let job_id = checked(&job_id)?;
        Ok(JsonReply::new(&self.service.jobs.cancel(job_id, &caller).await?)?)
    }

    /// Watch a job
    ///
    /// Server-sent events: `progress` whenever the state changes, the first at once, and one `end`, after
    /// which the stream ends. Whoever reads slowly gets the newest state, not every one. A client
    /// that comes back with `Last-Event-ID` does not get the events that it knows.
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
        /// The `job_id` of an earlier answer.
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

/// An id is 36 characters; what is longer is not one, and is not echoed whole.
fn checked(job_id: &str) -> Result<&str, ServiceError> {
    if job_id.len() > 64 {
        return Err(ServiceError::NoSuchJob(job_id.chars().take(64).collect()));
    }
    Ok(job_id)
}

/// Bytes of tensor content that a job carries.
fn content_bytes(job: &JobView) -> usize {
    let compared = job.comparison.iter().flat_map(|comparison| {
        let candidates = comparison.candidates.iter().map(|candidate| &candidate.evaluation);
        candidates.chain([&comparison.reference])
    });
    let reports = job.result.iter().chain(compared);
    reports.map(warpgauge_report::EvaluateResponse::content_bytes).sum()
}
