//! The connection to a server, and single requests to it. The main type is [`Connection`].

use std::path::PathBuf;
use std::sync::{Arc, Once};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::Body;
use ureq::http::request::Builder;
use ureq::http::{Method, Request, Response};

use crate::error::{ClientError, Transport};
use crate::refusal::{explain, problems};
use crate::{address, tls};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit for an answer: the longest evaluation (600 s) after a long time in the queue.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(3_600);

/// Maximum size of a response including outputs, bytes.
const MAX_ANSWER_BYTES: u64 = 1 << 30;

/// Maximum number of values in a response. Each takes about 50 bytes while it is parsed. The
/// reports of the largest sweep contain about 6 million values.
const MAX_ANSWER_VALUES: u64 = 1 << 24;

/// Settings of a connection: the URL, the key, and the trusted certificates. Clones share them.
#[derive(Clone)]
pub(crate) struct Connection {
    server: Arc<Server>,
}

struct Server {
    /// The URL as the caller gave it.
    given: String,
    base: String,
    api_key: Option<String>,
    trust: tls::Trust,
    /// Ensures that the warning about an unencrypted key is logged only once.
    warned: Once,
}

/// A response, as text and parsed.
#[derive(Debug, Clone)]
pub struct Reply<T> {
    /// Text of the response, in JSON.
    pub text: String,
    pub value: T,
}

impl Connection {
    /// Creates a connection to the server at `url`. Nothing is sent yet. With `ca_cert`, the
    /// connection trusts only the certificate authorities in that file (PEM).
    ///
    /// # Errors
    /// `url` is not the URL of a server, or contains a user name or password.
    pub(crate) fn new(
        url: &str,
        api_key: Option<String>,
        ca_cert: Option<PathBuf>,
    ) -> Result<Self, ClientError> {
        let server = Server {
            given: url.to_owned(),
            base: address::base(url)?.to_owned(),
            api_key,
            trust: tls::Trust::new(ca_cert),
            warned: Once::new(),
        };
        Ok(Self { server: Arc::new(server) })
    }

    /// Returns the URL as the caller gave it.
    pub(crate) fn url(&self) -> &str {
        &self.server.given
    }

    /// Returns the URL without trailing slashes.
    pub(crate) fn base(&self) -> &str {
        &self.server.base
    }

    pub(crate) fn url_of(&self, route: &str) -> String {
        format!("{}{route}", self.server.base)
    }

    /// Posts `body` and waits for the response. If the body cannot be serialised, the error calls
    /// it `what`.
    pub(crate) fn post<T: DeserializeOwned>(
        &self,
        route: &str,
        what: &str,
        body: &impl Serialize,
    ) -> Result<Reply<T>, ClientError> {
        let url = self.url_of(route);
        answer(self.send(&url, json(what, body)?, None, ANSWER_TIMEOUT)?, &url)
    }

    /// Sends a request without a body.
    pub(crate) fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        route: &str,
    ) -> Result<Reply<T>, ClientError> {
        self.ask_within(method, route, ANSWER_TIMEOUT)
    }

    /// Works like [`Self::ask`], with a time limit of `limit`.
    pub(crate) fn ask_within<T: DeserializeOwned>(
        &self,
        method: Method,
        route: &str,
        limit: Duration,
    ) -> Result<Reply<T>, ClientError> {
        let url = self.url_of(route);
        let request = Request::builder().method(method).uri(&url);
        answer(self.call(&url, request, limit)?, &url)
    }

    /// Opens a stream of server-sent events that begins after the event with the id `last`.
    pub(crate) fn open(
        &self,
        url: &str,
        last: Option<&str>,
        limit: Duration,
    ) -> Result<Response<Body>, ClientError> {
        let mut request = Request::builder().uri(url).header("Accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        self.call(url, request, limit)
    }

    /// Posts `body`, which is JSON. Returns an error unless the response is a success. A second
    /// call with the same `key` refers to the same job.
    pub(crate) fn send(
        &self,
        url: &str,
        body: String,
        key: Option<&str>,
        limit: Duration,
    ) -> Result<Response<Body>, ClientError> {
        let agent = self.agent(url, limit)?;
        // With this header, reports omit fields without a value. Otherwise such fields would
        // contain placeholders.
        let mut request = agent
            .post(url)
            .header("Content-Type", "application/json")
            .header("Prefer", "return=minimal");
        if let Some(own) = self.key_for(url) {
            request = request.header("X-API-Key", own);
        }
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        let response = request.send(body).map_err(|source| transport(url, source))?;
        successful(url, response)
    }

    /// Sends a request without a body. Returns an error unless the response is a success.
    pub(crate) fn call(
        &self,
        url: &str,
        mut request: Builder,
        limit: Duration,
    ) -> Result<Response<Body>, ClientError> {
        if let Some(key) = self.key_for(url) {
            request = request.header("X-API-Key", key);
        }
        let request = request.body(()).map_err(|_| ClientError::Url { url: url.to_owned() })?;
        let agent = self.agent(url, limit)?;
        let response = agent.run(request).map_err(|source| transport(url, source))?;
        successful(url, response)
    }

    /// Returns the key to send. Logs a warning once if other parties on the network can read the
    /// key.
    fn key_for(&self, url: &str) -> Option<&str> {
        let key = self.server.api_key.as_deref()?;
        if address::is_readable_by_others(url) {
            self.server.warned.call_once(|| {
                tracing::warn!(
                    "the key is sent to {url} unencrypted, so others on the network can read it; use \
                     https://, or an SSH tunnel"
                );
            });
        }
        Some(key)
    }

    fn agent(&self, url: &str, limit: Duration) -> Result<ureq::Agent, ClientError> {
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // A redirected POST would send the API key to a host that the user did not choose.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .tls_config(self.server.trust.config()?)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(limit))
            .user_agent(concat!("warpgauge/", env!("CARGO_PKG_VERSION")));
        if address::is_loopback(url) {
            // A proxy cannot reach this machine's loopback address.
            config = config.proxy(None);
        }
        Ok(config.build().new_agent())
    }
}

/// Reads and parses the body of a response.
pub(crate) fn answer<T: DeserializeOwned>(
    response: Response<Body>,
    url: &str,
) -> Result<Reply<T>, ClientError> {
    let text = text(response, url)?;
    let value = understood(url, &text)?;
    Ok(Reply { text, value })
}

/// Parses a response, or a part of one.
pub(crate) fn understood<T: DeserializeOwned>(url: &str, text: &str) -> Result<T, ClientError> {
    warpgauge_document::from_json_within(MAX_ANSWER_VALUES, text.as_bytes())
        .map_err(|error| ClientError::Answer { url: url.to_owned(), message: error.to_string() })
}

/// Serialises a body. If that fails, the error calls the body `what`.
pub(crate) fn json(what: &str, body: &impl Serialize) -> Result<String, ClientError> {
    serde_json::to_string(body)
        .map_err(|error| ClientError::Internal(format!("{what} to JSON: {error}")))
}

fn successful(url: &str, response: Response<Body>) -> Result<Response<Body>, ClientError> {
    let status = response.status().as_u16();
    if matches!(status, 200 | 202) {
        return Ok(response);
    }
    let location =
        response.headers().get("location").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let retry_after = response
        .headers()
        .get("retry-after")
        .and_then(|value| value.to_str().ok()?.trim().parse().ok())
        .map(Duration::from_secs);
    let text = text(response, url)?;
    let problems = problems(&text);
    let message = match location {
        Some(there) if (300..400).contains(&status) => {
            format!("it redirects to {there}; use that address")
        }
        _ => explain(&text, status),
    };
    Err(ClientError::Refused { url: url.to_owned(), status, message, problems, retry_after })
}

fn text(response: Response<Body>, url: &str) -> Result<String, ClientError> {
    response
        .into_body()
        .into_with_config()
        .limit(MAX_ANSWER_BYTES)
        .lossy_utf8(true)
        .read_to_string()
        .map_err(|source| ClientError::Broken { url: url.to_owned(), source: Transport(source) })
}

fn transport(url: &str, source: ureq::Error) -> ClientError {
    let url = url.to_owned();
    if let Some(problem) = tls::explain(&source) {
        return ClientError::Tls { url, problem };
    }
    let never_connected = match &source {
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => true,
        ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => true,
        ureq::Error::Io(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
        _ => false,
    };
    let source = Transport(source);
    if never_connected {
        ClientError::Connect { url, source }
    } else {
        ClientError::Broken { url, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_follow_the_address() {
        let connection = Connection::new("http://h:1/", None, None).unwrap();
        assert_eq!(connection.url_of("/jobs"), "http://h:1/jobs");
    }
}
