//! Wire types of a job that can be asked about.

use poem_openapi::{Enum, Object};
use serde::{Deserialize, Serialize};

use super::{CompareResponse, EvaluateResponse, ResponseStatus, SweepView};
use crate::gate::report::GateReport;

/// Answer of `GET /jobs/{id}`.
#[derive(Debug, Clone, Serialize, Deserialize, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct JobView {
    /// Identifies the job.
    pub job_id: String,
    /// What is done.
    #[serde(default)]
    #[oai(default)]
    pub kind: JobKind,
    /// Where it stands.
    pub state: JobState,
    /// `success`, `error`, or absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ResponseStatus>,
    /// When it was accepted, seconds since the Unix epoch.
    pub created_at: f64,
    /// When it ended, seconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<f64>,
    /// Timed launches done so far.
    pub trials_done: u32,
    /// How often it was begun: more than once if a server or its machine went down meanwhile.
    #[serde(default)]
    #[oai(default)]
    pub attempt: u32,
    /// The caller's own name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Stable code of why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The report, once it ended. Of a comparison: that of its first candidate. Outputs' content is
    /// in it if nobody waited for the answer; who waited has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<EvaluateResponse>,
    /// The whole answer of a comparison, once it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<CompareResponse>,
    /// How far it is, of a sweep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<SweepView>,
    /// The report of a run of the gate, once it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Box<GateReport>>,
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Enum)]
#[oai(rename_all = "snake_case")]
pub enum JobState {
    /// Accepted.
    Submitted,
    /// Waiting for a device.
    Queued,
    /// Compiling.
    Compiling,
    /// On the device, and what it leaves is compared with what is expected.
    Validating,
    /// On the device.
    Profiling,
    /// Ended; the report is there.
    Completed,
    /// Ended without a report.
    Failed,
    /// Cancelled by the caller or by shutdown.
    Cancelled,
    /// Ended at its deadline.
    TimedOut,
}

impl JobState {
    /// Every state, in the order in which a job may reach them.
    pub const ALL: [Self; 9] = [
        Self::Submitted,
        Self::Queued,
        Self::Compiling,
        Self::Profiling,
        Self::Validating,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::TimedOut,
    ];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Queued => "queued",
            Self::Compiling => "compiling",
            Self::Validating => "validating",
            Self::Profiling => "profiling",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
        }
    }

    /// Whether nothing comes after it.
    pub fn is_end(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::TimedOut)
    }
}

/// What a job does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Enum)]
#[oai(rename_all = "snake_case")]
pub enum JobKind {
    /// What `POST /evaluate` does.
    #[default]
    Evaluate,
    /// What `POST /execute` does.
    Execute,
    /// What `POST /compare` does.
    Compare,
    /// What `POST /sweep` does.
    Sweep,
    /// What `POST /gate` does.
    Gate,
}

/// A job in a list: without its report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct JobSummary {
    /// Identifies the job at `/jobs/{job_id}`.
    pub job_id: String,
    /// What is done.
    pub kind: JobKind,
    /// Where it stands.
    pub state: JobState,
    /// The caller's own name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The key with which it was sent; the same key again is the same job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Jobs of higher priority go before others of the same caller.
    pub priority: i16,
    /// How often it was begun.
    pub attempt: u32,
    /// When it was accepted, seconds since the Unix epoch.
    pub created_at: f64,
    /// When it was begun, the last time, seconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<f64>,
    /// When it ended, seconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<f64>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Stable code of why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// A page of jobs, the youngest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct JobList {
    /// The jobs.
    pub jobs: Vec<JobSummary>,
    /// Give it as `cursor` to have the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// News of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct JobEvent {
    /// Identifies the job.
    pub job_id: String,
    /// Where it stands.
    pub state: JobState,
    /// What is going on, in more detail.
    pub stage: JobStage,
    /// How often it was begun.
    pub attempt: u32,
    /// Timed launches done so far, of the kernel that runs.
    pub trials_done: u32,
    /// Seconds since it was accepted.
    pub elapsed_s: f64,
    /// What the timed launches say so far. Not the final word: that is in the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics: Option<PartialStatistics>,
    /// Points of a sweep, or comparisons of a gate, that are done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points_done: Option<usize>,
    /// Points of a sweep; comparisons of a gate: one for each case, and one more for each that is
    /// confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<usize>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What is going on with a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Enum)]
#[oai(rename_all = "snake_case")]
pub enum JobStage {
    /// Accepted; its turn has not come.
    #[default]
    Waiting,
    /// Its source is being compiled.
    Compiling,
    /// Its data are being laid out.
    Preparing,
    /// It waits for a device.
    WaitingForDevice,
    /// Its kernel runs.
    Running,
    /// What the kernel left is verified.
    Verifying,
    /// Profilers and checkers look at it.
    Profiling,
    /// It ended.
    Ended,
}

/// Statistics of the launches that were timed so far.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Object)]
pub struct PartialStatistics {
    /// Launches that they are of.
    pub trials: u32,
    /// Median time, milliseconds.
    pub median_ms: f64,
    /// Lower end of the median's 95 % confidence interval, milliseconds.
    pub ci_lower_ms: f64,
    /// Upper end of it, milliseconds.
    pub ci_upper_ms: f64,
}

/// Answer to cancelling a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Object)]
pub struct CancelReport {
    /// Identifies the job.
    pub job_id: String,
    /// What came of it.
    pub outcome: CancelOutcome,
    /// Where the job stands now.
    pub state: JobState,
}

/// What came of cancelling a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Enum)]
#[oai(rename_all = "snake_case")]
pub enum CancelOutcome {
    /// It had not begun, and will not.
    Cancelled,
    /// It runs, and is being stopped.
    Stopping,
    /// It had ended already.
    Ended,
}
