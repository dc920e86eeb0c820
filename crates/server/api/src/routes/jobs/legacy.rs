//! Jobs in the shape of the CUDA Evaluation Server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use warpgauge_job_views::JobView;
use warpgauge_model::JobState;

/// Answer of `GET /job/{id}`: the shape of the CUDA Evaluation Server, and more.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LegacyJob {
    /// Identifies the job.
    pub job_id: String,
    /// Where it stands.
    pub status: JobState,
    /// When it was accepted, seconds since the Unix epoch.
    pub created_at: f64,
    /// Why it failed; null while it has not.
    #[schemars(extend("nullable" = true))]
    pub error: Option<String>,
    /// When it ended, seconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<f64>,
    /// Timed launches done so far.
    pub trials_done: u32,
    /// Where the report is.
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
