//! What callers give to the store and get from it. Payloads are bytes: the store knows no requests.

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
/// Longest error that is kept of a job, bytes; a longer one is cut.
pub const MAX_ERROR_BYTES: usize = 4_096;
/// Most jobs that one call may submit.
pub const MAX_BATCH: usize = 1_024;
/// Most attempts a job may be given.
pub const MAX_ATTEMPTS: u8 = 10;

/// Identifies a job: a UUID of version 7, so that ids sort by age.
pub type JobId = String;

/// A job to accept.
#[derive(Debug, Clone)]
pub struct NewJob {
    /// Its id, unless it is an earlier job by its idempotency key.
    pub id: JobId,
    /// Who submits it: the short hash of a key, or `""` where there are no keys.
    pub owner: String,
    /// What it does.
    pub kind: JobKind,
    /// The request, in a form that its reader knows.
    pub request: Vec<u8>,
    /// What follows the request and should not be in memory: written to its file as it is read.
    pub bulk: Vec<Arc<dyn Bulk>>,
    /// Higher goes first among the jobs of one owner.
    pub priority: i16,
    /// A second job of this owner with the same key is the first one.
    pub idempotency: Option<Idempotency>,
    /// The caller's name for it, by which lists can be filtered.
    pub label: Option<String>,
    /// Where to announce its end.
    pub webhook: Option<String>,
    /// How often it may be started, 1 to [`MAX_ATTEMPTS`].
    pub max_attempts: u8,
    /// What it requires of the process that takes it, in a form that [`super::Membership::offer`] knows;
    /// `None`: nothing.
    pub requires: Option<String>,
}

impl NewJob {
    /// A job with no key, label or webhook, of normal priority, that may be started three times.
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

/// By what a repeated request is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// The caller's name for the request.
    pub key: String,
    /// Tells the request from another one under the same key.
    pub request_hash: [u8; 32],
}

/// A job that was accepted, now or before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedJob {
    /// Its id.
    pub id: JobId,
    /// Where it stands.
    pub state: JobState,
    /// Whether it is an earlier job with the same idempotency key.
    pub existing: bool,
}

/// A job as lists show it: everything but request and report.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRow {
    /// Its id.
    pub id: JobId,
    /// Who submitted it.
    pub owner: String,
    /// What it does.
    pub kind: JobKind,
    /// Where it stands.
    pub state: JobState,
    /// Higher goes first among the jobs of one owner.
    pub priority: i16,
    /// The caller's name for it.
    pub label: Option<String>,
    /// Where its end is announced.
    pub webhook: Option<String>,
    /// The owner's key for it, by which it is the same job again.
    pub idempotency_key: Option<String>,
    /// How often it was started.
    pub attempts: u8,
    /// How often it may be started.
    pub max_attempts: u8,
    /// When it was accepted.
    pub created_at: SystemTime,
    /// When its latest attempt started.
    pub started_at: Option<SystemTime>,
    /// When it ended.
    pub ended_at: Option<SystemTime>,
    /// Whether it was asked to stop and has not stopped yet.
    pub cancel_requested: bool,
    /// A code for why it ended without a report, e.g. `attempts_exhausted`.
    pub error_code: Option<ErrorCode>,
    /// The same in words.
    pub error: Option<String>,
    /// What its report says of the kernel, in a word.
    pub verdict: Option<String>,
    /// Bytes of its request, and of its report, before compression.
    pub bytes: u64,
}

/// A job that this process is to run.
#[derive(Debug)]
pub struct ClaimedJob {
    /// The job.
    pub job: JobRow,
    /// Its request, and what follows it.
    pub request: RequestReader,
    /// The right to work on it.
    pub lease: super::JobLease,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq)]
pub struct JobEnding {
    /// One of the states in which a job has ended.
    pub state: JobState,
    /// The report, if there is one; it is never changed afterwards.
    pub report: Option<NewReport>,
    /// A code and a text for why there is none.
    pub error: Option<JobError>,
    /// What it leaves in the history. A point that no row can hold is left out, and logged.
    pub points: Vec<HistoryRow>,
}

/// Why a job ended without a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobError {
    /// For programs, e.g. `attempts_exhausted`.
    pub code: ErrorCode,
    /// For people.
    pub message: String,
}

/// A report to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReport {
    /// Version of its format.
    pub version: u32,
    /// What it is, e.g. `evaluate` or `gate`.
    pub kind: String,
    /// What it says of the kernel, in a word: lists of jobs have it.
    pub verdict: Option<&'static str>,
    /// The report, as JSON.
    pub body: Vec<u8>,
}

/// A report that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReport {
    /// Version of its format.
    pub version: u32,
    /// What it is.
    pub kind: String,
    /// The report, as JSON: the bytes that were given.
    pub body: Vec<u8>,
}

/// Whose jobs a caller may see. Somebody else's job does not exist for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility<'a> {
    /// Everybody's.
    All,
    /// One owner's.
    Owner(&'a str),
}

impl<'a> Visibility<'a> {
    /// The owner, if it is one's.
    pub(super) fn owner(self) -> Option<&'a str> {
        match self {
            Visibility::All => None,
            Visibility::Owner(owner) => Some(owner),
        }
    }

    /// Whether a job of this owner can be seen.
    pub(super) fn sees(self, owner: &str) -> bool {
        self.owner().is_none_or(|own| own == owner)
    }
}

/// What became of the wish to stop a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelResult {
    /// It was waiting and is cancelled.
    Cancelled,
    /// It runs; whoever runs it was told.
    Asked,
    /// It had ended before.
    Ended(JobState),
    /// There is none, or none that the caller may see.
    NotFound,
}

/// What the heartbeat tells about the jobs of this process. Work on both kinds must stop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heartbeat {
    /// Somebody asked to cancel these.
    pub cancel: Vec<JobId>,
    /// These are not this process' any more.
    pub lost: Vec<JobId>,
}

/// What became of jobs whose process is gone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requeued {
    /// Wait again.
    pub queued: Vec<JobId>,
    /// Were started as often as they may be, and failed.
    pub exhausted: Vec<JobId>,
    /// Had been asked to stop, and are cancelled.
    pub cancelled: Vec<JobId>,
}

/// Which jobs a list shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobFilter<'a> {
    /// Only this owner's; `None`: everybody's.
    pub owner: Option<&'a str>,
    /// Only these states; empty: all.
    pub states: Vec<JobState>,
    /// Only this kind.
    pub kind: Option<JobKind>,
    /// Only this label.
    pub label: Option<&'a str>,
    /// Only the job with this key of its owner's.
    pub idempotency_key: Option<&'a str>,
}

/// A place in a list, and how much of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// `next` of the page before; `None`: the beginning.
    pub after: Option<String>,
    /// Most rows, 1 to [`Page::MAX`].
    pub limit: usize,
}

impl Page {
    /// Most rows of one page.
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
    /// The jobs.
    pub jobs: Vec<JobRow>,
    /// Where the next page begins; `None`: there is none.
    pub next: Option<String>,
}

/// How many jobs there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobStateCounts {
    /// By state, in the order of [`super::STATES`].
    pub by_state: [u64; 9],
    /// Jobs that wait in the database for a process.
    pub waiting: u64,
    /// Jobs that some process holds.
    pub running: u64,
}

impl JobStateCounts {
    /// Jobs in one state.
    pub fn of(&self, state: JobState) -> u64 {
        self.by_state[super::state::index(state)]
    }

    /// All jobs.
    pub fn total(&self) -> u64 {
        self.by_state.iter().sum()
    }
}
