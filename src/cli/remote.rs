//! A warpgauge server as the place where a command is carried out.

use std::sync::Once;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::Body;
pub(super) use ureq::http::Method;
use ureq::http::request::Builder;
use ureq::http::{Request, Response};

use super::address;
pub(super) use super::address::endpoint;
use super::args::Target;
use super::tls::{self, CertificateFileError};
use crate::exit::Exit;

/// How long to try to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an answer may take: the longest evaluation (600 s) and a long queue before it.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(3_600);

/// Largest answer, bytes: outputs travel in it.
const MAX_ANSWER_BYTES: u64 = 1 << 30;

/// Problems of one request that are shown.
const MAX_PROBLEMS: usize = 50;

/// Why the server gave no report.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// Not an address.
    #[error("{url:?} is not the address of a server; expected e.g. https://gpu-host:8000")]
    Url {
        /// What came.
        url: String,
    },
    /// A name and a password in the address, which logs and other users would see.
    #[error("an address has no name and password in it: give {url}, and the key with --api-key")]
    Login {
        /// What came, without them.
        url: String,
    },
    /// The file of certificates to trust does not serve.
    #[error("the certificates to trust cannot be had")]
    Certificates(#[from] CertificateFileError),
    /// The server does not show who it is.
    #[error("no encrypted connection to {url}: {problem}")]
    Tls {
        /// Where.
        url: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// Nobody answers there.
    #[error(
        "no server answers at {url}; start one there (`warpgauge serve`), check the address, or \
         leave out --server to use this machine"
    )]
    Connect {
        /// Where.
        url: String,
        /// Why not.
        source: ureq::Error,
    },
    /// The connection broke, or nothing came in time.
    #[error("the server at {url} gave no answer")]
    Broken {
        /// Where.
        url: String,
        /// Why not.
        source: ureq::Error,
    },
    /// The server refuses.
    #[error("{url} answered {status}: {message}")]
    Refused {
        /// Where.
        url: String,
        /// HTTP status.
        status: u16,
        /// Its explanation, readable.
        message: String,
        /// When it is worth trying again, where it says so.
        retry_after: Option<Duration>,
    },
    /// An answer that is no report.
    #[error("the answer of {url} is not understood: {message}; is it a warpgauge server?")]
    Answer {
        /// Where.
        url: String,
        /// What does not fit.
        message: String,
    },
}

impl RemoteError {
    /// Whether the same may work a moment later: nobody has said no.
    pub(super) fn is_broken(&self) -> bool {
        match self {
            RemoteError::Connect { .. } | RemoteError::Broken { .. } => true,
            RemoteError::Refused { status, .. } => matches!(status, 429 | 502..=504),
            RemoteError::Url { .. }
            | RemoteError::Login { .. }
            | RemoteError::Certificates(_)
            | RemoteError::Tls { .. }
            | RemoteError::Answer { .. } => false,
        }
    }

    /// Whether the answer did not come in time.
    pub(super) fn is_late(&self) -> bool {
        matches!(self, RemoteError::Broken { source: ureq::Error::Timeout(_), .. })
    }

    /// When it is worth trying again, where the server says so.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            RemoteError::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            RemoteError::Url { .. } | RemoteError::Login { .. } | RemoteError::Certificates(_) => {
                Exit::Usage
            }
            RemoteError::Refused { status, .. } => Exit::of_http_status(*status),
            RemoteError::Tls { .. }
            | RemoteError::Connect { .. }
            | RemoteError::Broken { .. }
            | RemoteError::Answer { .. } => Exit::Environment,
        }
    }
}

/// Posts `body` and gives the answer, as text and understood.
pub(super) fn post<T: DeserializeOwned>(
    target: &Target,
    server: &str,
    route: &str,
    body: &Value,
) -> Result<(String, T), RemoteError> {
    let url = endpoint(server, route)?;
    answer(send(target, &url, body.to_string(), None, ANSWER_TIMEOUT)?, &url)
}

/// Asks without a body, and gives the answer, as text and understood.
pub(super) fn ask<T: DeserializeOwned>(
    target: &Target,
    server: &str,
    method: Method,
    route: &str,
) -> Result<(String, T), RemoteError> {
    ask_within(target, server, method, route, ANSWER_TIMEOUT)
}

/// As [`ask`], for at most `limit`.
pub(super) fn ask_within<T: DeserializeOwned>(
    target: &Target,
    server: &str,
    method: Method,
    route: &str,
    limit: Duration,
) -> Result<(String, T), RemoteError> {
    let url = endpoint(server, route)?;
    let request = Request::builder().method(method).uri(&url);
    answer(call(target, &url, request, limit)?, &url)
}

/// The body of an answer, as text and understood.
pub(super) fn answer<T: DeserializeOwned>(
    response: Response<Body>,
    url: &str,
) -> Result<(String, T), RemoteError> {
    let text = text(response, url)?;
    let parsed = understood(url, &text)?;
    Ok((text, parsed))
}

/// Opens a stream of server-sent events, after the one with the id `last`.
pub(super) fn open(
    target: &Target,
    url: &str,
    last: Option<&str>,
    patience: Duration,
) -> Result<Response<Body>, RemoteError> {
    let mut request = Request::builder().uri(url).header("Accept", "text/event-stream");
    if let Some(last) = last {
        request = request.header("Last-Event-ID", last);
    }
    call(target, url, request, patience)
}

/// An answer, or a part of one, as what it should be.
pub(super) fn understood<T: DeserializeOwned>(url: &str, text: &str) -> Result<T, RemoteError> {
    serde_json::from_str(text)
        .map_err(|error| RemoteError::Answer { url: url.to_owned(), message: error.to_string() })
}

/// A job's route, and what is `below` it.
pub(super) fn job_route(job_id: &str, below: &str) -> String {
    format!("/jobs/{}{below}", encoded(job_id))
}

/// A piece of a path or a query.
pub(super) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(byte.into());
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

fn call(
    target: &Target,
    url: &str,
    mut request: Builder,
    patience: Duration,
) -> Result<Response<Body>, RemoteError> {
    if let Some(key) = key_for(target, url) {
        request = request.header("X-API-Key", key);
    }
    let request = request.body(()).map_err(|_| RemoteError::Url { url: url.to_owned() })?;
    let response =
        agent(target, url, patience)?.run(request).map_err(|source| transport(url, source))?;
    successful(url, response)
}

/// Posts `body`, JSON; what is not a success is an error. The same `key` again is the same job again.
pub(super) fn send(
    target: &Target,
    url: &str,
    body: String,
    key: Option<&str>,
    patience: Duration,
) -> Result<Response<Body>, RemoteError> {
    let agent = agent(target, url, patience)?;
    let mut request = agent.post(url).header("Content-Type", "application/json");
    if let Some(own) = key_for(target, url) {
        request = request.header("X-API-Key", own);
    }
    if let Some(key) = key {
        request = request.header("Idempotency-Key", key);
    }
    let response = request.send(body).map_err(|source| transport(url, source))?;
    successful(url, response)
}

fn successful(url: &str, response: Response<Body>) -> Result<Response<Body>, RemoteError> {
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
    let message = match location {
        Some(there) if (300..400).contains(&status) => {
            format!("it sends callers to {there}; give that address")
        }
        _ => explain(&text, status),
    };
    Err(RemoteError::Refused { url: url.to_owned(), status, message, retry_after })
}

fn text(response: Response<Body>, url: &str) -> Result<String, RemoteError> {
    response
        .into_body()
        .into_with_config()
        .limit(MAX_ANSWER_BYTES)
        .lossy_utf8(true)
        .read_to_string()
        .map_err(|source| RemoteError::Broken { url: url.to_owned(), source })
}

/// The key to send, with a warning, once, where others can read it on the way.
fn key_for<'t>(target: &'t Target, url: &str) -> Option<&'t String> {
    static WARNED: Once = Once::new();
    let key = target.api_key.as_ref()?;
    if address::is_readable_by_others(url) {
        WARNED.call_once(|| {
            tracing::warn!(
                "the key goes to {url} unencrypted: whoever is on the way can read it; use https://, \
                 or an SSH tunnel"
            );
        });
    }
    Some(key)
}

fn agent(target: &Target, url: &str, patience: Duration) -> Result<ureq::Agent, RemoteError> {
    let mut config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        // A redirected POST would carry the API key to a place nobody named.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .tls_config(tls::config(target.ca_cert())?)
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_global(Some(patience))
        .user_agent(concat!("warpgauge/", env!("CARGO_PKG_VERSION")));
    if address::is_loopback(url) {
        // A proxy cannot reach our loopback.
        config = config.proxy(None);
    }
    Ok(config.build().new_agent())
}

fn transport(url: &str, source: ureq::Error) -> RemoteError {
    let url = url.to_owned();
    if let Some(problem) = tls::explain(&source) {
        return RemoteError::Tls { url, problem };
    }
    let never_connected = match &source {
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => true,
        ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => true,
        ureq::Error::Io(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
        _ => false,
    };
    if never_connected {
        RemoteError::Connect { url, source }
    } else {
        RemoteError::Broken { url, source }
    }
}

/// The readable part of an error body: `error`, where it points, and every problem it lists.
pub(super) fn explain(body: &str, status: u16) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(body) else {
        let start: String = body.trim().chars().take(300).collect();
        return if start.is_empty() { "no explanation".to_owned() } else { start };
    };
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let mut message = text("error")
        .or_else(|| text("detail"))
        .or_else(|| text("message"))
        .unwrap_or("no explanation")
        .to_owned();
    if let Some(code) = text("code") {
        message.push_str(&format!(" [{code}]"));
    }
    if let (Some(line), Some(column)) =
        (fields.get("line").and_then(Value::as_u64), fields.get("column").and_then(Value::as_u64))
    {
        message.push_str(&format!(" (line {line}, column {column})"));
    }
    let problems = fields.get("validation_errors").and_then(Value::as_array);
    for problem in problems.into_iter().flatten().take(MAX_PROBLEMS) {
        let part = |name: &str| problem.get(name).and_then(Value::as_str).unwrap_or("?");
        message.push_str(&format!("\n  {}: {}", part("field"), part("message")));
    }
    let listed = problems.is_some_and(|list| !list.is_empty());
    if let Some(path) = text("path").filter(|_| !listed) {
        message.push_str(&format!("\n  at {path}"));
    }
    if status == 401 {
        message.push_str("\n  give the key with --api-key or WARPGAUGE_API_KEY");
    }
    if status == 413 {
        message.push_str("\n  the operator can raise `server.body_limit_bytes`");
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_path_stays_one_piece() {
        assert_eq!(encoded("a-b_c.d~9"), "a-b_c.d~9");
        assert_eq!(encoded("../ä?b=c&d#%"), "..%2F%C3%A4%3Fb%3Dc%26d%23%25");
    }

    #[test]
    fn error_bodies_become_readable() {
        let body = r#"{"status": "client_error", "error": "the contract is not valid",
            "code": "invalid_contract", "path": "kernel", "validation_errors": [
            {"field": "kernel.io.args[0].name", "message": "empty", "type": "invalid_value"}]}"#;
        assert_eq!(
            explain(body, 400),
            "the contract is not valid [invalid_contract]\n  kernel.io.args[0].name: empty"
        );
        assert_eq!(
            explain(r#"{"error": "no", "path": "a.b", "line": 3, "column": 4}"#, 400),
            "no (line 3, column 4)\n  at a.b"
        );
        assert!(explain(r#"{"error": "no key"}"#, 401).contains("WARPGAUGE_API_KEY"));
        assert_eq!(explain("<html>Bad Gateway</html>", 502), "<html>Bad Gateway</html>");
        assert_eq!(explain("", 500), "no explanation");
    }
}
