//! Who asks for a job, and how.

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use super::error::ServiceError;
use warpgauge_executor::JobWork;
use warpgauge_gate::GateRequest;
use warpgauge_job_views::{JobEvent, SweepEvent};
use warpgauge_model::{JobKind, JobState};

/// What an operation answers with.
pub type ServiceFuture<'a, T> = BoxFuture<'a, Result<T, ServiceError>>;

/// News of a job; ends after that of its end.
pub type JobEvents = BoxStream<'static, JobEvent>;

/// Takes the events of a sweep. It does not block.
pub type SweepEvents = Box<dyn Fn(SweepEvent) + Send + Sync>;

/// Who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// Whose jobs they are: what stands for the caller's key, never the key itself. Empty where no
    /// keys are asked for.
    pub owner: String,
    /// Whether it may see the jobs of others and remove jobs.
    pub admin: bool,
    /// Whether it may open shared tensors from processes of its own.
    pub handles: bool,
    /// Whether it may have functions run.
    pub functions: bool,
    /// Whether those may have pickled objects.
    pub pickles: bool,
}

impl Caller {
    /// Whoever uses the command line on this machine, or a server that asks for no keys.
    pub fn local() -> Self {
        Self { owner: String::new(), admin: true, handles: true, functions: true, pickles: true }
    }
}

/// How a job is to be taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobSubmission {
    /// Whose it is.
    pub caller: Caller,
    /// Its id, for who wants to watch it from its beginning; none: a new one.
    pub job_id: Option<String>,
    /// The same key again is the same job again. At most 255 bytes.
    pub idempotency_key: Option<String>,
    /// Jobs of higher priority go before others of the same owner.
    pub priority: i16,
    /// The caller's own name for it. At most 255 bytes.
    pub label: Option<String>,
    /// Where to tell of its end.
    pub webhook: Option<String>,
}

impl JobSubmission {
    /// A job of this caller, like any other.
    pub fn of(caller: Caller) -> Self {
        Self { caller, ..Self::default() }
    }

    /// A job of the command line.
    pub fn local() -> Self {
        Self::of(Caller::local())
    }

    /// A job of the command line, and its id.
    pub fn local_watched() -> (Self, String) {
        let id = uuid::Uuid::now_v7().to_string();
        (Self { job_id: Some(id.clone()), ..Self::local() }, id)
    }
}

/// What a job is to do, as its caller sent it.
pub type JobRequest = JobWork<GateRequest>;

/// A job that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmittedJob {
    /// Identifies it.
    pub job_id: String,
    /// Where it stands.
    pub state: JobState,
    /// Whether it was there already, by its idempotency key.
    pub existing: bool,
}

/// Which jobs to list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobQuery {
    /// In one of these states; none: in any.
    pub states: Vec<JobState>,
    /// Of this kind.
    pub kind: Option<JobKind>,
    /// With this label.
    pub label: Option<String>,
    /// The caller's own with this key; an administrator's, too.
    pub idempotency_key: Option<String>,
    /// Accepted at this time or later, seconds since the Unix epoch.
    pub created_after: Option<f64>,
    /// Accepted before this time, seconds since the Unix epoch.
    pub created_before: Option<f64>,
    /// Jobs on the page, 1 to 1000.
    pub limit: u32,
    /// Where the page before ended.
    pub cursor: Option<String>,
}

/// Which ended jobs to remove: those that any of these applies to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CleanupPolicy {
    /// Those that ended longer ago.
    pub older_than: Option<Duration>,
    /// All but the youngest so many.
    pub keep: Option<u64>,
    /// The oldest, until reports and artifacts take no more than so many bytes.
    pub max_bytes: Option<u64>,
}
