//! What a receiver gets.

use serde::{Deserialize, Serialize};

use warpgauge_model::JobState;
use warpgauge_report::ResponseStatus;

/// Body of a webhook: that a job has ended, and where to read more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WebhookMessage {
    /// `job.ended`.
    pub event: String,
    /// The job.
    pub job_id: String,
    /// How it ended.
    pub state: JobState,
    /// Whether it has a report.
    pub status: ResponseStatus,
    /// When it ended, seconds since the Unix epoch.
    pub finished_at: f64,
    /// Where to read more.
    pub links: WebhookLinks,
}

/// Paths at the server that sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookLinks {
    /// The job with its report.
    pub job: String,
    /// What it left beside it.
    pub artifacts: String,
}

impl WebhookMessage {
    /// That a job has ended.
    pub fn ended(job_id: &str, state: JobState, finished_at: f64) -> Self {
        let status = match state {
            JobState::Completed => ResponseStatus::Success,
            _ => ResponseStatus::Error,
        };
        Self {
            event: "job.ended".to_owned(),
            job_id: job_id.to_owned(),
            state,
            status,
            finished_at,
            links: WebhookLinks {
                job: format!("/jobs/{job_id}"),
                artifacts: format!("/jobs/{job_id}/artifacts"),
            },
        }
    }
}
