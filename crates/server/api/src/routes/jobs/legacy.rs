//! Jobs in the form of the CUDA Evaluation Server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use warpgauge_job_views::JobView;
use warpgauge_model::JobState;

/// State of a job, with the fields of the CUDA Evaluation Server and additional ones.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LegacyJob {
    /// Id of the job.
    pub job_id: String,
    /// State of the job.
    pub status: JobState,
    /// Time of acceptance, seconds since the Unix epoch.
    pub created_at: f64,
    /// Reason why the job ended without a report, or why an attempt failed and the job waits again.
    /// Null if neither applies.
    #[schemars(extend("nullable" = true))]
    pub error: Option<String>,
    /// Time of the end, seconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<f64>,
    /// Number of timed launches so far in the current run; in a side-by-side comparison, the number
    /// of blocks.
    pub trials_done: u32,
    /// Path of the report.
    pub status_url: String,
}

impl LegacyJob {
    pub(crate) fn new(job: JobView) -> Self {
        Self {
            status_url: format!("/jobs/{}", job.job_id),
            job_id: job.job_id,
            status: job.state,
            created_at: job.created_at,
            error: job.error,
            finished_at: job.finished_at,
            trials_done: job.trials_done,
        }
    }
}
