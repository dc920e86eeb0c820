//! Requests whose progress is not reported: submitted jobs, and answers for which the caller waits.
//! The main type is [`UnattendedRequests`].

use std::time::Duration;

use serde::{Deserialize, Serialize};

use warpgauge_contract::{CompareRequest, EvaluateRequest};
use warpgauge_report::{CompareResponse, EvaluateResponse};

use crate::connection::{ANSWER_TIMEOUT, Connection, Reply, answer, json};
use crate::error::ClientError;
use crate::routes::encoded;

/// Time limit for the acceptance of a job, including the transfer of its body.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(120);

/// Response of an operation with `wait=false`.
#[derive(Deserialize)]
struct Accepted {
    job_id: String,
}

/// Options of a submitted job.
#[derive(Debug, Clone, Default)]
pub struct SubmitOptions<'a> {
    /// The caller's label for the job.
    pub label: Option<&'a str>,
    /// Idempotency key. A submission with the same key returns the same job. `None` creates a new
    /// key.
    pub idempotency_key: Option<&'a str>,
}

/// Requests whose progress is not reported.
///
/// Every method fails if the server does not answer, rejects the request, or returns an unexpected
/// response.
#[derive(Clone, Copy)]
pub struct UnattendedRequests<'a> {
    pub(crate) connection: &'a Connection,
}

impl UnattendedRequests<'_> {
    /// Submits an evaluation. Returns the id of its job.
    pub fn submit_evaluation(
        &self,
        request: &EvaluateRequest,
        taken: &SubmitOptions<'_>,
    ) -> Result<String, ClientError> {
        self.submit("/evaluate?wait=false", request, taken)
    }

    /// Runs an evaluation and waits for its report. A call with the same key refers to the same
    /// job, even after a failure of this process, its connection or the server. So after an error
    /// with [`ClientError::is_broken`], the caller should retry.
    pub fn evaluate_keyed(
        &self,
        request: &EvaluateRequest,
        key: &str,
    ) -> Result<EvaluateResponse, ClientError> {
        let url = self.connection.url_of("/evaluate");
        let response =
            self.connection.send(&url, json("request", request)?, Some(key), ANSWER_TIMEOUT)?;
        Ok(answer(response, &url)?.value)
    }

    /// Submits a comparison. Returns the id of its job.
    pub fn submit_comparison(
        &self,
        request: &CompareRequest,
        taken: &SubmitOptions<'_>,
    ) -> Result<String, ClientError> {
        self.submit("/compare?wait=false", request, taken)
    }

    /// Runs a comparison and waits for its report.
    pub fn compare(&self, request: &CompareRequest) -> Result<Reply<CompareResponse>, ClientError> {
        self.connection.post("/compare", "comparison", request)
    }

    fn submit(
        &self,
        route: &str,
        request: &impl Serialize,
        taken: &SubmitOptions<'_>,
    ) -> Result<String, ClientError> {
        let label = taken.label.map_or(String::new(), |label| format!("&label={}", encoded(label)));
        let url = self.connection.url_of(&format!("{route}{label}"));
        let body = json("request", request)?;
        let own = uuid::Uuid::new_v4().to_string();
        let key = Some(taken.idempotency_key.unwrap_or(&own));
        let send = || self.connection.send(&url, body.clone(), key, ACCEPT_TIMEOUT);
        let response = match send() {
            // The server may already have the job; the key prevents a second job.
            Err(ClientError::Broken { .. }) => send()?,
            sent => sent?,
        };
        Ok(answer::<Accepted>(response, &url)?.value.job_id)
    }
}
