//! `POST /jobs`: submits many jobs in one request.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ApiError;
use crate::request::submission::Wanted;
use crate::response::accepted::Accepted;
use warpgauge_contract::ContractError;
use warpgauge_model::{FailureCode, JobKind};
use warpgauge_service::webhook::WebhookPolicy;
use warpgauge_service::{Caller, JobRequest, JobSubmission};

/// Maximum number of jobs in a batch.
pub(crate) const MAX_BATCH: usize = 1_000;

/// Maximum number of problems that an answer about a batch lists.
const MAX_PROBLEMS: usize = 50;

/// Jobs to accept. Either all are accepted or none.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// Jobs, 1 to 1000.
    #[schemars(length(min = 1, max = 1000))]
    pub jobs: Vec<BatchItem>,
}

/// A job to accept.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchItem {
    /// Kind of the job: `evaluate`, `execute`, `compare`, `sweep` or `gate`.
    #[serde(default)]
    pub kind: JobKind,
    /// Request body, as for the operation of this kind.
    pub request: Value,
    /// Label of the job, by which lists can be filtered. At most 255 bytes, without control characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Priority, -100 to 100; default 0. Among the jobs of one caller, those of higher priority run
    /// first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// URL to which the server sends a signed notification when the job ends. The operator must
    /// allow its host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
    /// Idempotency key of the job, 1 to 255 printable ASCII characters. A repeated request with the
    /// same key returns the same job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Jobs of an accepted batch.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct BatchAccepted {
    /// Jobs, in the order of the request.
    pub jobs: Vec<Accepted>,
}

/// Checks the jobs of a batch, and returns their requests.
pub(crate) fn requests(
    batch: Batch,
    caller: &Caller,
    policy: &WebhookPolicy,
) -> Result<Vec<(JobRequest, JobSubmission)>, ApiError> {
    let count = batch.jobs.len();
    if !(1..=MAX_BATCH).contains(&count) {
        let message = format!("jobs: expected 1 to {MAX_BATCH} jobs, got {count}");
        return Err(ApiError::field("jobs", FailureCode::OutOfRange, message));
    }
    let mut problems = Vec::new();
    let mut jobs = Vec::with_capacity(count);
    for (index, item) in batch.jobs.into_iter().enumerate() {
        let wanted = Wanted {
            idempotency_key: item.idempotency_key,
            priority: item.priority,
            label: item.label,
            webhook: item.webhook,
        };
        let prefix = format!("jobs[{index}].");
        let submission = wanted.submission(caller, policy, &prefix)?;
        match request(item.kind, item.request) {
            Ok(request) => jobs.push((request, submission)),
            Err(mut problem) => {
                problem.path = join(&format!("{prefix}request"), &problem.path);
                problems.push(problem);
            }
        }
        if problems.len() == MAX_PROBLEMS {
            break;
        }
    }
    if problems.is_empty() { Ok(jobs) } else { Err(ApiError::problems(problems)) }
}

fn join(prefix: &str, path: &str) -> String {
    if path.is_empty() { prefix.to_owned() } else { format!("{prefix}.{path}") }
}

fn request(kind: JobKind, body: Value) -> Result<JobRequest, ContractError> {
    Ok(match kind {
        JobKind::Evaluate => JobRequest::Evaluate(Box::new(warpgauge_contract::from_value(body)?)),
        JobKind::Execute => JobRequest::Execute(Box::new(warpgauge_contract::from_value(body)?)),
        JobKind::Compare => JobRequest::Compare(Box::new(warpgauge_contract::from_value(body)?)),
        JobKind::Sweep => JobRequest::Sweep(Box::new(warpgauge_contract::from_value(body)?)),
        JobKind::Gate => JobRequest::Gate(Box::new(warpgauge_contract::from_value(body)?)),
    })
}
