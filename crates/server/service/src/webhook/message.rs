//! Body of the messages that webhook receivers get.

use serde::{Deserialize, Serialize};

use warpgauge_model::JobState;
use warpgauge_report::ResponseStatus;

/// Body of a webhook, which reports that a job has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WebhookMessage {
    /// Always `job.ended`.
    pub event: String,
    pub job_id: String,
    /// State in which the job ended.
    pub state: JobState,
    /// Whether the job completed with a report.
    pub status: ResponseStatus,
    /// End of the job, seconds since the Unix epoch.
    pub finished_at: f64,
    pub links: WebhookLinks,
}

/// Paths on the server that sends the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookLinks {
    /// Path of the job with its report.
    pub job: String,
    /// Path of the job's artifacts.
    pub artifacts: String,
    /// URL of the page that shows the job in a browser. Absent unless `server.public_url` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
}

/// Returns the URL of a job's page; `None` if `public_url`, the address at which users reach the
/// server, is empty.
pub fn page_of_job(public_url: &str, job_id: &str) -> Option<String> {
    let base = public_url.trim_end_matches('/');
    (!base.is_empty()).then(|| format!("{base}/jobs/{job_id}"))
}

impl WebhookMessage {
    /// Returns the message about a job that has ended. `public_url` is the address at which users
    /// reach the server; it is empty if the operator gave none.
    pub fn ended(job_id: &str, state: JobState, finished_at: f64, public_url: &str) -> Self {
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
                page: page_of_job(public_url, job_id),
            },
        }
    }
}
