//! Types of the store's interface. Payloads are bytes: the store knows no requests.

use std::sync::Arc;
use std::time::SystemTime;

use super::{Bulk, HistoryRow, RequestReader};
pub use warpgauge_model::{ErrorCode, JobKind, JobState};

/// Longest owner, bytes. Owners are short hashes of keys.
pub const MAX_OWNER_BYTES: usize = 64;
/// Longest idempotency key, bytes.
pub const MAX_KEY_BYTES: usize = 255;
/// Longest label, bytes.
pub const MAX_LABEL_BYTES: usize = 255;
/// Longest URL of a webhook, bytes.
pub const MAX_WEBHOOK_BYTES: usize = 2_048;
/// Longest stored error of a job, bytes; a longer one is truncated.
pub const MAX_ERROR_BYTES: usize = 4_096;

/// Longest stored name of a kernel, bytes.
pub(super) const MAX_KERNEL_BYTES: usize = 255;
/// Maximum number of jobs that one call may submit.
pub const MAX_BATCH: usize = 1_024;
/// Maximum number of attempts that a job may request.
pub const MAX_ATTEMPTS: u8 = 10;

/// Id of a job: a UUID of version 7, so that ids sort by age.
pub type JobId = String;

/// A job to accept.
#[derive(Debug, Clone)]
pub struct NewJob {
    /// Its id, unless an earlier job has the same idempotency key.
    pub id: JobId,
    /// Owner: the short hash of a key, or `""` if the server requires no keys.
    pub owner: String,
    pub kind: JobKind,
    /// The request, opaque to the store.
    pub request: Vec<u8>,
    /// Large payloads that follow the request. They are written to its file as they are read,
    /// without being in memory.
    pub bulk: Vec<Arc<dyn Bulk>>,
    /// A higher priority goes first among the jobs of one owner.
    pub priority: i16,
    /// A second job of this owner with the same key is the first one.
    pub idempotency: Option<Idempotency>,
    /// The caller's label, by which lists can be filtered.
    pub label: Option<String>,
    /// URL that is notified of the job's end.
    pub webhook: Option<String>,
    /// Maximum number of attempts, 1 to [`MAX_ATTEMPTS`].
    pub max_attempts: u8,
    /// Requirements on the process that takes the job, in the form that
    /// [`super::Membership::offer`] knows; `None`: none.
    pub requires: Option<String>,
}

impl NewJob {
    /// Creates a job without key, label or webhook, of normal priority, with up to three attempts.
    pub fn new(owner: &str, kind: JobKind, request: Vec<u8>) -> Self {
        Self {
            id: uuid::Uuid::now_v7().to_string(),
            owner: owner.to_owned(),
            kind,
            request,
            bulk: Vec::new(),
            priority: 0,
            idempotency: None,
            label: None,
            webhook: None,
            max_attempts: 3,
            requires: None,
        }
    }
}

/// Identity of a request, by which a repetition is recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// The caller's key for the request.
    pub key: String,
    /// Distinguishes the request from other requests under the same key.
    pub request_hash: [u8; 32],
}

/// A job that was accepted now or earlier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedJob {
    pub id: JobId,
    pub state: JobState,
    /// Whether it is an earlier job with the same idempotency key.
    pub existing: bool,
}

/// A job in a list: everything but its request and report.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRow {
    pub id: JobId,
    pub owner: String,
    pub kind: JobKind,
    pub state: JobState,
    /// A higher priority goes first among the jobs of one owner.
    pub priority: i16,
    /// The caller's label.
    pub label: Option<String>,
    /// URL that is notified of the job's end.
    pub webhook: Option<String>,
    /// Idempotency key, unique for the owner.
    pub idempotency_key: Option<String>,
    /// Attempts so far.
    pub attempts: u8,
    pub max_attempts: u8,
    /// Time of acceptance.
    pub created_at: SystemTime,
    /// Start of the latest attempt.
    pub started_at: Option<SystemTime>,
    pub ended_at: Option<SystemTime>,
    /// Whether the job was asked to stop and has not stopped yet.
    pub cancel_requested: bool,
    /// Code of the reason why it ended without a report, e.g. `attempts_exhausted`.
    pub error_code: Option<ErrorCode>,
    /// Message for that reason.
    pub error: Option<String>,
    /// Name of the kernel's verdict in its report.
    pub verdict: Option<String>,
    /// Name of the kernel in its report.
    pub kernel: Option<String>,
    /// Median time of that kernel, nanoseconds.
    pub median_ns: Option<i64>,
    /// Bytes of its request and its report, before compression.
    pub bytes: u64,
}

/// A job that this process has claimed.
#[derive(Debug)]
pub struct ClaimedJob {
    pub job: JobRow,
    /// Its request and the payloads that follow.
    pub request: RequestReader,
    /// The right to work on it.
    pub lease: super::JobLease,
}

/// The end of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobEnding {
    /// One of the end states.
    pub state: JobState,
    /// The report, if any; it never changes afterwards.
    pub report: Option<NewReport>,
    /// Reason for a missing report.
    pub error: Option<JobError>,
    /// Points for the history. A point that does not fit a row is skipped and logged.
    pub points: Vec<HistoryRow>,
}

/// Reason why a job ended without a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobError {
    /// Code for programs, e.g. `attempts_exhausted`.
    pub code: ErrorCode,
    /// Message for people.
    pub message: String,
}

/// A report to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReport {
    /// Version of its format.
    pub version: u32,
    /// Kind of the report, e.g. `evaluate` or `gate`.
    pub kind: String,
    /// Name of the kernel's verdict, shown in lists of jobs.
    pub verdict: Option<&'static str>,
    /// Name of the kernel, shown beside it; the store keeps its first 255 bytes.
    pub kernel: Option<String>,
    /// Median time of the kernel, nanoseconds.
    pub median_ns: Option<i64>,
    /// The report, as JSON.
    pub body: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReport {
    /// Version of its format.
    pub version: u32,
    pub kind: String,
    /// The report as JSON, unchanged.
    pub body: Vec<u8>,
}

/// Which jobs a caller may see. Jobs of others do not exist for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility<'a> {
    /// Jobs of all owners.
    All,
    /// Jobs of one owner.
    Owner(&'a str),
}

impl<'a> Visibility<'a> {
    /// Returns the owner, unless all jobs are visible.
    pub(super) fn owner(self) -> Option<&'a str> {
        match self {
            Visibility::All => None,
            Visibility::Owner(owner) => Some(owner),
        }
    }

    /// Returns whether jobs of this owner are visible.
    pub(super) fn sees(self, owner: &str) -> bool {
        self.owner().is_none_or(|own| own == owner)
    }
}

/// Result of a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelResult {
    /// The job was waiting and is cancelled.
    Cancelled,
    /// The job runs, and was asked to stop.
    Asked,
    /// The job had ended before.
    Ended(JobState),
    /// There is no such job, or the caller may not see it.
    NotFound,
}

/// Jobs that a heartbeat requires this process to stop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heartbeat {
    /// Jobs that callers asked to cancel.
    pub cancel: Vec<JobId>,
    /// Jobs that this process no longer holds.
    pub lost: Vec<JobId>,
}

/// Result of recovering the jobs of dead processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requeued {
    /// Jobs that wait again.
    pub queued: Vec<JobId>,
    /// Jobs that had used all their attempts, and failed.
    pub exhausted: Vec<JobId>,
    /// Jobs that had been asked to stop, and are cancelled.
    pub cancelled: Vec<JobId>,
}

/// Filter of a list of jobs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobFilter<'a> {
    /// Only jobs of this owner; `None`: of all owners.
    pub owner: Option<&'a str>,
    /// Only jobs in these states; empty: in all.
    pub states: Vec<JobState>,
    /// Only jobs of this kind.
    pub kind: Option<JobKind>,
    /// Only jobs with this label.
    pub label: Option<&'a str>,
    /// Only jobs with this key.
    pub idempotency_key: Option<&'a str>,
}

/// Start and length of a page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// `next` of the previous page; `None`: the start.
    pub after: Option<String>,
    /// Maximum number of rows, 1 to [`Page::MAX`].
    pub limit: usize,
}

impl Page {
    /// Maximum number of rows of one page.
    pub const MAX: usize = 1_000;
}

impl Default for Page {
    fn default() -> Self {
        Self { after: None, limit: 50 }
    }
}

/// A page of jobs, newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct JobPage {
    pub jobs: Vec<JobRow>,
    /// Start of the next page; `None` on the last.
    pub next: Option<String>,
}

/// Numbers of jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobStateCounts {
    /// Jobs by state, in the order of [`super::STATES`].
    pub by_state: [u64; 9],
    /// Jobs that wait in the database for a process.
    pub waiting: u64,
    /// Jobs that processes hold.
    pub running: u64,
}

impl JobStateCounts {
    /// Returns the number of jobs in one state.
    pub fn of(&self, state: JobState) -> u64 {
        self.by_state[super::state::index(state)]
    }

    /// Returns the number of all jobs.
    pub fn total(&self) -> u64 {
        self.by_state.iter().sum()
    }
}
