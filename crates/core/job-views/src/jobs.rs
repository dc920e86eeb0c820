//! Wire types of the state and progress of jobs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use warpgauge_gate::SuiteVerdict;
use warpgauge_gate::report::{GateReport, WorstCase};
use warpgauge_model::{ErrorCode, JobKind, JobStage, JobState, PartialStatistics};
use warpgauge_report::{
    CompareResponse, EvaluateResponse, KernelVerdict, ResponseStatus, SweepPoint, SweepStarted,
    SweepView,
};

/// State of a job, with its report once it has ended.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct JobView {
    /// Id of the job.
    pub job_id: String,
    /// Kind of the job.
    #[serde(default)]
    pub kind: JobKind,
    /// State of the job.
    pub state: JobState,
    /// `success` or `error`. Absent until the job has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ResponseStatus>,
    /// Verdict on the kernel, or the worst verdict on several kernels. Absent until the job has ended, and if no
    /// kernel ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<KernelVerdict>,
    /// Time of acceptance, seconds since the Unix epoch.
    pub created_at: f64,
    /// Time of the end, seconds since the Unix epoch. Absent until the job has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<f64>,
    /// Number of timed launches so far in the current run, or of blocks, if two kernels are timed
    /// side by side. After the end, the number of samples in `result`.
    pub trials_done: u32,
    /// Number of times that the job was started. It exceeds 1 if a server or its machine went down
    /// during the job.
    #[serde(default)]
    pub attempt: u32,
    /// Label that the caller gave to the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Reason why the job ended without a report, or why an attempt was abandoned and the job waits again. Absent if
    /// neither is the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Stable code of the reason why the job ended without a report. Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// Report of an evaluation, or of the first candidate of a comparison. Absent until the job has ended. It
    /// contains the content of outputs only if no caller waited for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<EvaluateResponse>,
    /// Report of a comparison. Absent until the job has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<CompareResponse>,
    /// Progress of a sweep, and its report once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<SweepView>,
    /// Report of a run of the gate. Absent until the job has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Box<GateReport>>,
}

/// Job in a list, without its report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobSummary {
    /// Id of the job, at `/jobs/{job_id}`.
    pub job_id: String,
    /// Kind of the job.
    pub kind: JobKind,
    /// State of the job.
    pub state: JobState,
    /// Verdict on the kernel, or the worst verdict on several kernels. Absent until the job has ended, if no kernel
    /// ran, and for jobs of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<KernelVerdict>,
    /// Decision of a gate: the verdict on its suite. Absent until the job has ended, for other kinds, and for jobs of
    /// earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<SuiteVerdict>,
    /// Worst case of a gate. Absent if `decision` is absent, and if the suite has no case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_case: Option<WorstCase>,
    /// Name of the kernel, or of the first candidate. Absent until the job has ended, and for sweeps and gates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Median time of this kernel, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ms: Option<f64>,
    /// Label that the caller gave to the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Idempotency key of the request. Another request with the same key returns the same job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Priority, -100 to 100. Jobs of higher priority run before others of the same caller.
    pub priority: i16,
    /// Number of times that the job was started.
    pub attempt: u32,
    /// Time of acceptance, seconds since the Unix epoch.
    pub created_at: f64,
    /// Time of the last start, seconds since the Unix epoch. Absent until the job has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<f64>,
    /// Time of the end, seconds since the Unix epoch. Absent until the job has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<f64>,
    /// Reason why the job ended without a report, or why an attempt was abandoned and the job waits again. Absent if
    /// neither is the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Stable code of the reason why the job ended without a report. Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
}

/// Page of a list of jobs, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobList {
    /// Jobs of the page.
    pub jobs: Vec<JobSummary>,
    /// Value of `cursor` for the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Maximum of [`JobEvent::ahead`].
pub const MAX_AHEAD: u32 = 1_000;

/// Progress event of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobEvent {
    /// Id of the job.
    pub job_id: String,
    /// State of the job.
    pub state: JobState,
    /// Stage of the job, which is more detailed than the state.
    pub stage: JobStage,
    /// Number of times that the job was started.
    pub attempt: u32,
    /// Number of timed launches so far in the current run, or of blocks, if two kernels are timed side by side.
    pub trials_done: u32,
    /// Number of jobs of the same caller and with the same requirements that wait and start before this one, at most
    /// 1000. Callers take turns, so jobs of others may start before it too. Present only while the job waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u32>,
    /// Time since acceptance, seconds.
    pub elapsed_s: f64,
    /// Statistics of the timed launches so far. They are preliminary; the report has the final ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics: Option<PartialStatistics>,
    /// Number of completed points of a sweep, or of completed comparisons of a gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points_done: Option<usize>,
    /// Number of points of a sweep, or of comparisons of a gate. A gate has one comparison for each case, and another
    /// for each confirmation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<usize>,
    /// Reason why the job ended without a report. Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Event of a running sweep.
#[derive(Debug, Clone)]
pub enum SweepEvent {
    /// The sweep is valid and admitted.
    Started(SweepStarted),
    /// A point is complete. Points are sent in order.
    Point(Box<SweepPoint>),
}

/// Result of cancelling a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CancelReport {
    /// Id of the job.
    pub job_id: String,
    /// Effect of the request.
    pub outcome: CancelOutcome,
    /// State of the job after the request.
    pub state: JobState,
}

/// Effect of cancelling a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CancelOutcome {
    /// The job had not begun, and will not run.
    Cancelled,
    /// The job runs, and is being stopped.
    Stopping,
    /// The job had already ended.
    Ended,
}
