//! Types of the store's interface. Payloads are bytes, which the store does not interpret.

use std::sync::Arc;
use std::time::SystemTime;

use super::{Bulk, HistoryRow, RequestReader};
pub use warpgauge_model::{ErrorCode, JobKind, JobState};

/// Maximum length of an owner's name, bytes. Owners are short hashes of keys.
pub const MAX_OWNER_BYTES: usize = 64;
/// Maximum length of an idempotency key, bytes.
pub const MAX_KEY_BYTES: usize = 255;
/// Maximum length of a label, bytes.
pub const MAX_LABEL_BYTES: usize = 255;
/// Maximum length of a webhook's URL, bytes.
pub const MAX_WEBHOOK_BYTES: usize = 2_048;
/// Maximum length of a stored error message of a job, bytes. Longer messages are truncated.
pub const MAX_ERROR_BYTES: usize = 4_096;

/// Maximum length of a stored kernel name, bytes.
pub(super) const MAX_KERNEL_BYTES: usize = 255;

/// Maximum size of a gate's worst case, bytes.
pub(super) const MAX_CASE_BYTES: usize = 2 << 10;
/// Maximum number of jobs that one call may submit.
pub const MAX_BATCH: usize = 1_024;
/// Maximum number of attempts that a job may request.
pub const MAX_ATTEMPTS: u8 = 10;

/// Id of a job: a UUID of version 7, so that ids sort by age.
pub type JobId = String;

/// A job to accept.
#[derive(Debug, Clone)]
pub struct NewJob {
    /// Id of the job. Not used if an earlier job has the same idempotency key.
    pub id: JobId,
    /// Owner: the short hash of a key, or `""` if the server requires no keys.
    pub owner: String,
    pub kind: JobKind,
    /// The request. The store does not interpret it.
    pub request: Vec<u8>,
    /// Large payloads that follow the request. They are copied to its file piece by piece, so they
    /// need not fit in memory.
    pub bulk: Vec<Arc<dyn Bulk>>,
    /// Jobs of higher priority run first among the jobs of one owner.
    pub priority: i16,
    /// Idempotency key. If this owner already has a job with the same key, that job is returned.
    pub idempotency: Option<Idempotency>,
    /// The caller's label, by which lists can be filtered.
    pub label: Option<String>,
    /// URL that is notified when the job ends.
    pub webhook: Option<String>,
    /// Maximum number of attempts, 1 to [`MAX_ATTEMPTS`].
    pub max_attempts: u8,
    /// Requirements on the process that takes the job, in the form that
    /// [`super::Membership::offer`] uses; `None` means no requirements.
    pub requires: Option<String>,
}

impl NewJob {
    /// Creates a job of normal priority with up to three attempts, without a key, a label or a
    /// webhook.
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

/// Identity of a request. It serves to recognise a repeated request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// The caller's key for the request.
    pub key: String,
    /// Hash of the request. It distinguishes the request from others under the same key.
    pub request_hash: [u8; 32],
}

/// A job that was accepted now or earlier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedJob {
    pub id: JobId,
    pub state: JobState,
    /// Whether an earlier job with the same idempotency key is returned.
    pub existing: bool,
}

/// A job in a list, without its request and report.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRow {
    pub id: JobId,
    pub owner: String,
    pub kind: JobKind,
    pub state: JobState,
    /// Jobs of higher priority run first among the jobs of one owner.
    pub priority: i16,
    /// The caller's label.
    pub label: Option<String>,
    /// URL that is notified when the job ends.
    pub webhook: Option<String>,
    /// Idempotency key, unique for the owner.
    pub idempotency_key: Option<String>,
    /// Number of attempts so far.
    pub attempts: u8,
    pub max_attempts: u8,
    /// Time of acceptance.
    pub created_at: SystemTime,
    /// Start of the latest attempt.
    pub started_at: Option<SystemTime>,
    pub ended_at: Option<SystemTime>,
    /// Whether the job was asked to stop and has not stopped yet.
    pub cancel_requested: bool,
    /// Code of the error, if the job ended without a report, e.g. `attempts_exhausted`.
    pub error_code: Option<ErrorCode>,
    /// Message of this error.
    pub error: Option<String>,
    /// Name of the kernel's verdict in its report.
    pub verdict: Option<String>,
    /// Name of the gate's decision in its report.
    pub decision: Option<String>,
    /// The gate's worst case, as JSON.
    pub worst_case: Option<String>,
    /// Name of the kernel in its report.
    pub kernel: Option<String>,
    /// Median time of the kernel, nanoseconds.
    pub median_ns: Option<i64>,
    /// Size of the request and the report, before compression, bytes.
    pub bytes: u64,
}

/// A job that this process has claimed.
#[derive(Debug)]
pub struct ClaimedJob {
    pub job: JobRow,
    /// The request and the payloads that follow it.
    pub request: RequestReader,
    /// The lease of the job.
    pub lease: super::JobLease,
}

/// The end of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobEnding {
    /// One of the end states.
    pub state: JobState,
    /// The report, if any. It cannot be changed afterwards.
    pub report: Option<NewReport>,
    /// Reason for a missing report.
    pub error: Option<JobError>,
    /// Points for the history. A point that cannot be stored is skipped and logged.
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
    /// Version of the report's format.
    pub version: u32,
    /// Kind of the report, e.g. `evaluate` or `gate`.
    pub kind: String,
    /// Name of the kernel's verdict, shown in lists of jobs.
    pub verdict: Option<&'static str>,
    /// Name of the gate's decision, shown in lists of jobs.
    pub decision: Option<&'static str>,
    /// The gate's worst case, as JSON. The store keeps none that exceeds 2 KiB.
    pub worst_case: Option<String>,
    /// Name of the kernel, shown beside the verdict; the store keeps its first 255 bytes.
    pub kernel: Option<String>,
    /// Median time of the kernel, nanoseconds.
    pub median_ns: Option<i64>,
    /// The report, as JSON.
    pub body: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReport {
    /// Version of the report's format.
    pub version: u32,
    pub kind: String,
    /// The report as JSON, unchanged.
    pub body: Vec<u8>,
}

/// Jobs that a caller may see. Operations treat other jobs as if they did not exist.
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
    /// The job was running, and was asked to stop.
    Asked,
    /// The job had already ended.
    Ended(JobState),
    /// There is no such job, or the caller may not see it.
    NotFound,
}

/// Jobs that this process must stop, as returned by a heartbeat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heartbeat {
    /// Jobs whose cancellation was requested.
    pub cancel: Vec<JobId>,
    /// Jobs that this process no longer holds.
    pub lost: Vec<JobId>,
}

/// Result of recovering the jobs of dead processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requeued {
    /// Jobs that were requeued.
    pub queued: Vec<JobId>,
    /// Jobs that had used all their attempts and are now marked as failed.
    pub exhausted: Vec<JobId>,
    /// Jobs that had been asked to stop and are now cancelled.
    pub cancelled: Vec<JobId>,
}

/// Filter for a list of jobs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobFilter<'a> {
    /// Only jobs of this owner; `None` means all owners.
    pub owner: Option<&'a str>,
    /// Only jobs in these states; empty means all states.
    pub states: Vec<JobState>,
    /// Only jobs of this kind.
    pub kind: Option<JobKind>,
    /// Only jobs whose report has this verdict.
    pub verdict: Option<&'a str>,
    /// Only jobs whose report has this decision of a gate.
    pub decision: Option<&'a str>,
    /// Only jobs with this label.
    pub label: Option<&'a str>,
    /// Only jobs with this idempotency key.
    pub idempotency_key: Option<&'a str>,
}

/// Start and length of a page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// `next` of the previous page; `None` means the start.
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

/// A page of a list of jobs, newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct JobPage {
    pub jobs: Vec<JobRow>,
    /// Cursor for the next page; `None` on the last page.
    pub next: Option<String>,
}

/// Numbers of jobs in each state, and of those that wait and run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobStateCounts {
    /// Jobs by state, in the order of [`super::STATES`].
    pub by_state: [u64; 9],
    /// Number of jobs that wait in the database for a process.
    pub waiting: u64,
    /// Number of jobs that processes hold.
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
