//! Requests whose progress is not watched: jobs that are submitted, and answers that the caller waits for.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use warpgauge_contract::{CompareRequest, EvaluateRequest};
use warpgauge_report::{CompareResponse, EvaluateResponse};

use crate::connection::{ANSWER_TIMEOUT, Connection, Reply, answer, json};
use crate::error::ClientError;
use crate::routes::encoded;

/// How long a server may take to accept a job: its body travels in that time.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(120);

/// Answer of an operation with `wait=false`.
#[derive(Deserialize)]
struct Accepted {
    job_id: String,
}

/// How a job is to be taken.
#[derive(Debug, Clone, Default)]
pub struct SubmitOptions<'a> {
    /// The caller's own name for it.
    pub label: Option<&'a str>,
    /// The same key again is the same job again; without one the request has one of its own.
    pub idempotency_key: Option<&'a str>,
}

/// Requests whose progress is not watched.
///
/// Every method fails where the server does not answer, refuses, or answers something else.
#[derive(Clone, Copy)]
pub struct UnattendedRequests<'a> {
    pub(crate) connection: &'a Connection,
}

impl UnattendedRequests<'_> {
    /// Hands an evaluation in; the id of its job.
    pub fn submit_evaluation(
        &self,
        request: &EvaluateRequest,
        taken: &SubmitOptions<'_>,
    ) -> Result<String, ClientError> {
        self.submit("/evaluate?wait=false", request, taken)
    }

    /// Has an evaluation carried out and waits for its report. The same key again is the same job again,
    /// also where this caller, its connection or the server went down meanwhile; so one that fails with
    /// [`ClientError::is_broken`] is to be asked again.
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

    /// Hands a comparison in; the id of its job.
    pub fn submit_comparison(
        &self,
        request: &CompareRequest,
        taken: &SubmitOptions<'_>,
    ) -> Result<String, ClientError> {
        self.submit("/compare?wait=false", request, taken)
    }

    /// Has a comparison carried out and waits for its report.
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
            // Whether the server has it is not known; by its key it has it once.
            Err(ClientError::Broken { .. }) => send()?,
            sent => sent?,
        };
        Ok(answer::<Accepted>(response, &url)?.value.job_id)
    }
}
