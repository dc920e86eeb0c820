//! Wire types of a job that can be asked about.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use warpgauge_gate::report::GateReport;
use warpgauge_model::{ErrorCode, JobKind, JobStage, JobState, PartialStatistics};
use warpgauge_report::{
    CompareResponse, EvaluateResponse, KernelVerdict, ResponseStatus, SweepPoint, SweepStarted,
    SweepView,
};

/// Answer of `GET /jobs/{id}`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct JobView {
    /// Identifies the job.
    pub job_id: String,
    /// What is done.
    #[serde(default)]
    pub kind: JobKind,
    /// Where it stands.
    pub state: JobState,
    /// `success`, `error`, or absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ResponseStatus>,
    /// The verdict on its kernel, or the worst on several, once it ended; absent where none was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<KernelVerdict>,
    /// When it was accepted, seconds since the Unix epoch.
    pub created_at: f64,
    /// When it ended, seconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<f64>,
    /// Timed launches done so far.
    pub trials_done: u32,
    /// How often it was begun: more than once if a server or its machine went down meanwhile.
    #[serde(default)]
    pub attempt: u32,
    /// The caller's own name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Stable code of why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// The report, once it ended. Of a comparison: that of its first candidate. It has the content
    /// of outputs if no caller waited for the answer; a caller that waited has it.
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

/// A job in a list: without its report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobSummary {
    /// Identifies the job at `/jobs/{job_id}`.
    pub job_id: String,
    /// What is done.
    pub kind: JobKind,
    /// Where it stands.
    pub state: JobState,
    /// The verdict on its kernel, or the worst on several, once it ended; absent where none was run,
    /// and of jobs that earlier versions ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<KernelVerdict>,
    /// Name of its kernel, or of the first candidate's, once it ended; absent of sweeps and gates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Median time of that kernel, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ms: Option<f64>,
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
    pub code: Option<ErrorCode>,
}

/// A page of jobs, the youngest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobList {
    /// The jobs.
    pub jobs: Vec<JobSummary>,
    /// Give it as `cursor` to have the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// News of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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

/// An event of a sweep on its way.
#[derive(Debug, Clone)]
pub enum SweepEvent {
    /// The sweep is valid and admitted.
    Started(SweepStarted),
    /// A point is done. Points come in order.
    Point(Box<SweepPoint>),
}

/// Answer to cancelling a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CancelReport {
    /// Identifies the job.
    pub job_id: String,
    /// What came of it.
    pub outcome: CancelOutcome,
    /// Where the job stands now.
    pub state: JobState,
}

/// What came of cancelling a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CancelOutcome {
    /// It had not begun, and will not.
    Cancelled,
    /// It runs, and is being stopped.
    Stopping,
    /// It had ended already.
    Ended,
}
