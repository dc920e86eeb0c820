//! What the layers above ask of jobs.

use crate::submission::{
    Caller, CleanupPolicy, JobEvents, JobQuery, JobRequest, JobSubmission, ServiceFuture,
    SubmittedJob, SweepEvents,
};
use warpgauge_contract::{CompareRequest, EvaluateRequest, SweepRequest};
use warpgauge_job_views::{CancelReport, CleanupReport, JobList, JobView};
use warpgauge_report::{CompareResponse, EvaluateResponse, SweepResponse};

/// Takes evaluations, and waits for their reports or not.
///
/// What evaluates, compares, executes or sweeps is a *job*: it is in the store before it begins, and
/// once accepted it comes to an end, whatever becomes of this process.
pub trait EvaluationService: Send + Sync {
    /// Evaluates and waits for the report. Dropping the future cancels the evaluation, unless the
    /// submission has an idempotency key: then it goes on, and asking again gives its report.
    fn evaluate(
        &self,
        request: EvaluateRequest,
        submission: JobSubmission,
    ) -> ServiceFuture<'_, EvaluateResponse>;

    /// Compares kernels with a reference and waits for the report; dropped as [`Self::evaluate`].
    fn compare(
        &self,
        request: CompareRequest,
        submission: JobSubmission,
    ) -> ServiceFuture<'_, CompareResponse>;

    /// Runs the kernel once, untimed, and returns its outputs; dropped as [`Self::evaluate`].
    fn execute(
        &self,
        request: EvaluateRequest,
        submission: JobSubmission,
    ) -> ServiceFuture<'_, EvaluateResponse>;

    /// Evaluates a contract at every point of its axes, telling `events` of each; dropped as
    /// [`Self::evaluate`].
    fn sweep(
        &self,
        request: SweepRequest,
        submission: JobSubmission,
        events: SweepEvents,
    ) -> ServiceFuture<'_, SweepResponse>;

    /// Accepts a job and answers once it is safe: it waits in the store for its turn.
    fn submit(
        &self,
        request: JobRequest,
        submission: JobSubmission,
    ) -> ServiceFuture<'_, SubmittedJob>;

    /// Accepts all of these jobs, or none.
    fn submit_all(
        &self,
        jobs: Vec<(JobRequest, JobSubmission)>,
    ) -> ServiceFuture<'_, Vec<SubmittedJob>>;
}

/// Jobs that were accepted. A caller sees its own jobs; to everybody else they are
/// [`ServiceError::NoSuchJob`](crate::ServiceError::NoSuchJob).
pub trait JobService: Send + Sync {
    /// A job, with its report once it ended.
    fn job<'a>(&'a self, job_id: &'a str, caller: &'a Caller) -> ServiceFuture<'a, JobView>;

    /// A page of jobs, without their reports.
    fn jobs<'a>(&'a self, query: JobQuery, caller: &'a Caller) -> ServiceFuture<'a, JobList>;

    /// Ends a job before its time. One that runs is stopped: its worker is killed.
    fn cancel<'a>(&'a self, job_id: &'a str, caller: &'a Caller)
    -> ServiceFuture<'a, CancelReport>;

    /// News of a job, from where it stands to its end, which is the last. Who reads slowly gets the
    /// newest state, not every one.
    fn watch<'a>(&'a self, job_id: &'a str, caller: &'a Caller) -> ServiceFuture<'a, JobEvents>;

    /// Removes ended jobs, with their reports and artifacts. For administrators.
    fn cleanup<'a>(
        &'a self,
        policy: CleanupPolicy,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, CleanupReport>;
}
