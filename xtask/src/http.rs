//! An HTTP client for servers that answer in JSON: [`Client`].

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;
use ureq::Agent;

/// Maximum time to wait for an answer. It is longer than the longest timeout that a contract may
/// request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(900);

/// Maximum size of an answer, bytes.
const ANSWER_LIMIT_BYTES: u64 = 512 * 1024 * 1024;

/// A client of one server. Its connections are kept open and reused.
#[derive(Clone)]
pub struct Client {
    agent: Agent,
    url: String,
}

/// An answer of the server, with any status.
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The body; `null` if it is not JSON.
    pub body: Value,
    /// Time from the first byte sent to the last byte read.
    pub elapsed: Duration,
    /// Value of the `Retry-After` header, in seconds.
    pub retry_after: Option<u64>,
}

impl Client {
    pub fn new(url: &str) -> Self {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(ANSWER_TIMEOUT))
            .build()
            .into();
        Self { agent, url: url.to_owned() }
    }

    pub fn get(&self, path: &str) -> Result<Answer> {
        let start = Instant::now();
        let response = self.agent.get(format!("{}{path}", self.url)).call();
        finish(response, start).with_context(|| format!("GET {path}"))
    }

    pub fn post(&self, path: &str, media_type: &str, body: &[u8]) -> Result<Answer> {
        let start = Instant::now();
        let response = self
            .agent
            .post(format!("{}{path}", self.url))
            .header("content-type", media_type)
            .send(body);
        finish(response, start).with_context(|| format!("POST {path}"))
    }

    pub fn post_json(&self, path: &str, body: &Value) -> Result<Answer> {
        self.post(path, "application/json", &serde_json::to_vec(body)?)
    }
}

fn finish(
    response: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    start: Instant,
) -> Result<Answer> {
    let mut response = response.context("no answer")?;
    let retry_after =
        response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
    let bytes = response
        .body_mut()
        .with_config()
        .limit(ANSWER_LIMIT_BYTES)
        .read_to_vec()
        .context("the answer was cut off")?;
    Ok(Answer {
        status: response.status().as_u16(),
        elapsed: start.elapsed(),
        body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        retry_after,
    })
}
