//! The interface of jobs for the HTTP API and the command line.

use crate::submission::{
    Caller, CleanupPolicy, JobEvents, JobQuery, JobRequest, JobSubmission, ServiceFuture,
    SubmittedJob, SweepEvents,
};
use warpgauge_contract::{CompareRequest, EvaluateRequest, SweepRequest};
use warpgauge_job_views::{CancelReport, CleanupReport, JobList, JobView};
use warpgauge_report::{CompareResponse, EvaluateResponse, SweepResponse};

/// Accepts evaluations, and optionally waits for their reports.
///
/// Each evaluation, comparison, execution, sweep or gate run is a *job*. An accepted job reaches an
/// end even if this process dies.
pub trait EvaluationService: Send + Sync {
    /// Evaluates a kernel and waits for the report. Dropping the future cancels the evaluation,
    /// unless the submission has an idempotency key. In that case the evaluation continues, and a
    /// request with the same key returns its report.
    fn evaluate(
        &self,
        request: EvaluateRequest,
        submission: JobSubmission,
    ) -> ServiceFuture<'_, EvaluateResponse>;

    /// Compares kernels with a reference and waits for the report. Dropping the future has the same
    /// effect as for [`Self::evaluate`].
    fn compare(
        &self,
        request: CompareRequest,
        submission: JobSubmission,
    ) -> ServiceFuture<'_, CompareResponse>;

    /// Runs the kernel once without timing it, and returns its outputs. Dropping the future has the
    /// same effect as for [`Self::evaluate`].
    fn execute(
        &self,
        request: EvaluateRequest,
        submission: JobSubmission,
    ) -> ServiceFuture<'_, EvaluateResponse>;

    /// Evaluates a contract at every point of its axes, and sends each point to `events`. Dropping
    /// the future has the same effect as for [`Self::evaluate`].
    fn sweep(
        &self,
        request: SweepRequest,
        submission: JobSubmission,
        events: SweepEvents,
    ) -> ServiceFuture<'_, SweepResponse>;

    /// Accepts a job, and returns once the store contains it. The job waits in the queue.
    fn submit(
        &self,
        request: JobRequest,
        submission: JobSubmission,
    ) -> ServiceFuture<'_, SubmittedJob>;

    /// Accepts either all of these jobs or none.
    fn submit_all(
        &self,
        jobs: Vec<(JobRequest, JobSubmission)>,
    ) -> ServiceFuture<'_, Vec<SubmittedJob>>;
}

/// Access to accepted jobs. A caller sees only its jobs; for others it gets
/// [`ServiceError::NoSuchJob`](crate::ServiceError::NoSuchJob).
pub trait JobService: Send + Sync {
    /// Returns a job, with its report if it has ended.
    fn job<'a>(&'a self, job_id: &'a str, caller: &'a Caller) -> ServiceFuture<'a, JobView>;

    /// Returns a page of jobs, without their reports.
    fn jobs<'a>(&'a self, query: JobQuery, caller: &'a Caller) -> ServiceFuture<'a, JobList>;

    /// Cancels a job. If the job is running, its worker is killed.
    fn cancel<'a>(&'a self, job_id: &'a str, caller: &'a Caller)
    -> ServiceFuture<'a, CancelReport>;

    /// Returns the events of a job, beginning with its current state. The last event is the job's
    /// end. A slow reader receives only the newest state.
    fn watch<'a>(&'a self, job_id: &'a str, caller: &'a Caller) -> ServiceFuture<'a, JobEvents>;

    /// Removes ended jobs, with their reports and artifacts. Only administrators may call this
    /// operation.
    fn cleanup<'a>(
        &'a self,
        policy: CleanupPolicy,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, CleanupReport>;
}
