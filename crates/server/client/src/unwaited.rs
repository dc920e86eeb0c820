//! Jobs that are handed in and not waited for, and what they leave.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use ureq::http::{Method, Request};

use warpgauge_contract::{CompareRequest, EvaluateRequest};
use warpgauge_report::EvaluateResponse;

use crate::connection::{ANSWER_TIMEOUT, Client, answer, json};
use crate::error::{ClientError, Transport};
use crate::routes::{encoded, job_route};

/// How long a server may take to accept a job: its body travels in that time.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(120);

/// How long an artifact may take: some are made on demand.
const ARTIFACT_TIMEOUT: Duration = Duration::from_secs(120);

/// Largest artifact, bytes.
const MAX_ARTIFACT_BYTES: u64 = 64 << 20;

/// Answer of an operation with `wait=false`.
#[derive(Deserialize)]
struct Accepted {
    job_id: String,
}

/// Answer of `GET /devices`.
#[derive(Deserialize)]
struct Devices<T> {
    devices: Vec<T>,
}

/// How a job is to be taken.
#[derive(Debug, Clone, Default)]
pub struct Taken<'a> {
    /// The caller's own name for it.
    pub label: Option<&'a str>,
    /// The same key again is the same job again; without one the request has one of its own.
    pub idempotency_key: Option<&'a str>,
}

/// Every method fails where the server does not answer, refuses, or answers something else.
impl Client {
    /// Hands an evaluation in; the id of its job.
    pub fn submit_evaluation(
        &self,
        request: &EvaluateRequest,
        taken: &Taken<'_>,
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
        let url = self.url_of("/evaluate");
        let response = self.send(&url, json("request", request)?, Some(key), ANSWER_TIMEOUT)?;
        Ok(answer(response, &url)?.value)
    }

    /// Hands a comparison in; the id of its job.
    pub fn submit_comparison(
        &self,
        request: &CompareRequest,
        taken: &Taken<'_>,
    ) -> Result<String, ClientError> {
        self.submit("/compare?wait=false", request, taken)
    }

    fn submit(
        &self,
        route: &str,
        request: &impl Serialize,
        taken: &Taken<'_>,
    ) -> Result<String, ClientError> {
        let label = taken.label.map_or(String::new(), |label| format!("&label={}", encoded(label)));
        let url = self.url_of(&format!("{route}{label}"));
        let body = json("request", request)?;
        let own = uuid::Uuid::new_v4().to_string();
        let key = Some(taken.idempotency_key.unwrap_or(&own));
        let send = || self.send(&url, body.clone(), key, ACCEPT_TIMEOUT);
        let response = match send() {
            // Whether the server has it is not known; by its key it has it once.
            Err(ClientError::Broken { .. }) => send()?,
            sent => sent?,
        };
        Ok(answer::<Accepted>(response, &url)?.value.job_id)
    }

    /// The devices of the server, as it describes them.
    pub fn devices<T: DeserializeOwned>(&self) -> Result<Vec<T>, ClientError> {
        Ok(self.ask::<Devices<T>>(Method::GET, "/devices")?.value.devices)
    }

    /// What a job left under that name; in a comparison, of the kernel that is named.
    pub fn artifact(
        &self,
        job_id: &str,
        name: &str,
        kernel: Option<&str>,
    ) -> Result<Vec<u8>, ClientError> {
        let kernel = kernel.map_or(String::new(), |kernel| format!("?kernel={}", encoded(kernel)));
        let route = job_route(job_id, &format!("/artifacts/{}{kernel}", encoded(name)));
        let url = self.url_of(&route);
        let request = Request::builder().method(Method::GET).uri(&url);
        let response = self.call(&url, request, ARTIFACT_TIMEOUT)?;
        let content =
            response.into_body().into_with_config().limit(MAX_ARTIFACT_BYTES).read_to_vec();
        content.map_err(|source| ClientError::Broken { url, source: Transport(source) })
    }
}
