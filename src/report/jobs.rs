//! Wire types of a job that can be asked about.

use poem_openapi::{Enum, Object};
use serde::{Deserialize, Serialize};

use super::{EvaluateResponse, ResponseStatus, SweepView};

/// Answer of `GET /jobs/{id}`.
#[derive(Debug, Clone, Serialize, Deserialize, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct JobView {
    /// Identifies the job.
    pub job_id: String,
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
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The report, once it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<EvaluateResponse>,
    /// How far it is, of a sweep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<SweepView>,
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// On the device: outputs are made and checked.
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
