//! A warpgauge server as the place where a command is carried out.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::Body;
pub(super) use ureq::http::Method;
use ureq::http::request::Builder;
use ureq::http::{Request, Response, Uri};

use super::args::Target;
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
    #[error("{url:?} is not the address of a server; expected e.g. http://gpu-host:8000")]
    Url {
        /// What came.
        url: String,
    },
    /// This build has no TLS.
    #[error(
        "{url}: this program speaks plain HTTP only; use http://, through an SSH tunnel where the \
         network is not to be trusted"
    )]
    Tls {
        /// What came.
        url: String,
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
            RemoteError::Url { .. } | RemoteError::Tls { .. } | RemoteError::Answer { .. } => false,
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
            RemoteError::Url { .. } | RemoteError::Tls { .. } => Exit::Usage,
            RemoteError::Refused { status, .. } => Exit::of_http_status(*status),
            RemoteError::Connect { .. }
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
    if let Some(key) = &target.api_key {
        request = request.header("X-API-Key", key);
    }
    let request = request.body(()).map_err(|_| RemoteError::Url { url: url.to_owned() })?;
    let response = agent(url, patience).run(request).map_err(|source| transport(url, source))?;
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
    let mut request = agent(url, patience).post(url).header("Content-Type", "application/json");
    if let Some(key) = &target.api_key {
        request = request.header("X-API-Key", key);
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

pub(super) fn endpoint(server: &str, route: &str) -> Result<String, RemoteError> {
    let refuse = || RemoteError::Url { url: server.to_owned() };
    let base = server.trim_end_matches('/');
    let uri: Uri = base.parse().map_err(|_| refuse())?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http"), Some(host)) if !host.is_empty() && uri.query().is_none() => {
            Ok(format!("{base}{route}"))
        }
        (Some("https"), _) => Err(RemoteError::Tls { url: server.to_owned() }),
        _ => Err(refuse()),
    }
}

fn agent(url: &str, patience: Duration) -> ureq::Agent {
    let mut config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        // A redirected POST would carry the API key to a place nobody named.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_global(Some(patience))
        .user_agent(concat!("warpgauge/", env!("CARGO_PKG_VERSION")));
    if is_loopback(url) {
        // A proxy cannot reach our loopback.
        config = config.proxy(None);
    }
    config.build().new_agent()
}

fn is_loopback(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else {
        return false;
    };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn transport(url: &str, source: ureq::Error) -> RemoteError {
    let url = url.to_owned();
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
    fn addresses() {
        assert_eq!(endpoint("http://h:1/", "/evaluate").unwrap(), "http://h:1/evaluate");
        assert_eq!(endpoint("http://h/base", "/x").unwrap(), "http://h/base/x");
        for wrong in ["h:8000", "", "ftp://h", "http://", "http://h/?q=1", "http://a b"] {
            assert!(matches!(endpoint(wrong, "/x"), Err(RemoteError::Url { .. })), "{wrong:?}");
        }
        assert!(matches!(endpoint("https://h", "/x"), Err(RemoteError::Tls { .. })));
    }

    #[test]
    fn what_is_in_a_path_stays_one_piece() {
        assert_eq!(encoded("a-b_c.d~9"), "a-b_c.d~9");
        assert_eq!(encoded("../ä?b=c&d#%"), "..%2F%C3%A4%3Fb%3Dc%26d%23%25");
    }

    #[test]
    fn loopback_is_told_from_the_network() {
        for url in ["http://localhost:1/x", "http://127.0.0.2/x", "http://[::1]:8000/x"] {
            assert!(is_loopback(url), "{url}");
        }
        for url in ["http://localhost.example/x", "http://10.0.0.1/x", "http://[::2]/x"] {
            assert!(!is_loopback(url), "{url}");
        }
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
