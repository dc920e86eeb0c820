//! Types of a submission: the caller, the options of a job, and queries about jobs.

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use super::error::ServiceError;
use warpgauge_executor::JobWork;
use warpgauge_gate::{GateRequest, SuiteVerdict};
use warpgauge_job_views::{JobEvent, SweepEvent};
use warpgauge_model::{JobKind, JobState};
use warpgauge_report::KernelVerdict;

/// Result of an operation of the service.
pub type ServiceFuture<'a, T> = BoxFuture<'a, Result<T, ServiceError>>;

/// Events of a job. The stream ends after the event that reports the job's end.
pub type JobEvents = BoxStream<'static, JobEvent>;

/// Receives the events of a sweep. The function must not block.
pub type SweepEvents = Box<dyn Fn(SweepEvent) + Send + Sync>;

/// The caller of an operation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The owner of the caller's jobs. It is derived from the caller's key, but is not the key.
    /// Empty if the server requires no keys.
    pub owner: String,
    /// Whether the caller is an administrator, who may see and remove the jobs of others.
    pub admin: bool,
    /// Whether the caller may open shared tensors from its own processes.
    pub handles: bool,
    /// Whether the caller may run functions.
    pub functions: bool,
    /// Whether the caller's functions may use pickled objects.
    pub pickles: bool,
}

impl Caller {
    /// Returns the caller of the local command line, or of a server that requires no keys.
    pub fn local() -> Self {
        Self { owner: String::new(), admin: true, handles: true, functions: true, pickles: true }
    }
}

/// Options of a submitted job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobSubmission {
    pub caller: Caller,
    /// Id of the job, for callers that watch the job from its start. `None` requests a new id.
    pub job_id: Option<String>,
    /// Idempotency key. A submission with the same key returns the same job. At most 255 bytes.
    pub idempotency_key: Option<String>,
    /// Priority. Among the jobs of an owner, those of higher priority run first.
    pub priority: i16,
    /// The caller's label for the job. At most 255 bytes.
    pub label: Option<String>,
    /// URL that is notified when the job ends.
    pub webhook: Option<String>,
    /// Whether the job has only one attempt. If its process ends while its kernel runs, the job
    /// ends as `interrupted`.
    pub once: bool,
}

impl JobSubmission {
    /// Returns a submission of this caller with default options.
    pub fn of(caller: Caller) -> Self {
        Self { caller, ..Self::default() }
    }

    /// Returns a submission of the command line.
    pub fn local() -> Self {
        Self::of(Caller::local())
    }

    /// Returns a submission of the command line with a new id, and that id.
    pub fn local_watched() -> (Self, String) {
        let id = uuid::Uuid::now_v7().to_string();
        (Self { job_id: Some(id.clone()), ..Self::local() }, id)
    }
}

/// The request of a job, as its caller sent it.
pub type JobRequest = JobWork<GateRequest>;

/// A job that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmittedJob {
    pub job_id: String,
    pub state: JobState,
    /// Whether an earlier job with the same idempotency key is returned.
    pub existing: bool,
}

/// Filter of a list of jobs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobQuery {
    /// Only jobs in one of these states; empty means any state.
    pub states: Vec<JobState>,
    /// Only jobs of this kind.
    pub kind: Option<JobKind>,
    /// Only jobs whose kernel has this verdict, or whose worst kernel has.
    pub verdict: Option<KernelVerdict>,
    /// Only gates with this decision.
    pub decision: Option<SuiteVerdict>,
    /// Only jobs with this label.
    pub label: Option<String>,
    /// Only the caller's jobs with this key. This also holds for administrators.
    pub idempotency_key: Option<String>,
    /// Only jobs accepted at this time or later, seconds since the Unix epoch.
    pub created_after: Option<f64>,
    /// Only jobs accepted before this time, seconds since the Unix epoch.
    pub created_before: Option<f64>,
    /// Maximum number of jobs in the page, 1 to 1000.
    pub limit: u32,
    /// Cursor of the previous page.
    pub cursor: Option<String>,
}

/// Rules for the removal of ended jobs. A job is removed if any rule applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CleanupPolicy {
    /// Removes jobs that ended longer ago than this.
    pub older_than: Option<Duration>,
    /// Removes all jobs except this many of the newest.
    pub keep: Option<u64>,
    /// Removes the oldest jobs, until reports and artifacts take at most this many bytes.
    pub max_bytes: Option<u64>,
}
