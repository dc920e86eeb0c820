//! Errors of requests to a server. The main type is [`ClientError`].

use std::time::Duration;

use warpgauge_model::ErrorCode;

use crate::tls::CertificateFileError;

/// Reason why there is no answer. `Display` describes the problem, its place and a remedy; `source`
/// is the cause.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The text is not the URL of a server.
    #[error("{url:?} is not the address of a server; expected e.g. https://gpu-host:8000")]
    Url { url: String },
    /// The URL contains a user name and a password, which would be visible in logs and to other
    /// users.
    #[error(
        "the address must not contain a name and password: use {url}, and pass the key with --api-key"
    )]
    Login {
        /// The URL without user name and password.
        url: String,
    },
    /// The file of trusted certificates cannot be used.
    #[error("the trusted certificates cannot be read")]
    Certificates(#[from] CertificateFileError),
    /// The server's certificate is not accepted.
    #[error("no encrypted connection to {url}: {problem}")]
    Tls {
        url: String,
        /// Description of the problem, with a remedy.
        problem: String,
    },
    /// No server accepts the connection.
    #[error(
        "no server answers at {url}; start one there (`warpgauge serve`), check the address, or \
         omit --server to use this machine"
    )]
    Connect { url: String, source: Transport },
    /// The connection broke, or no response arrived in time.
    #[error("the server at {url} did not answer")]
    Broken { url: String, source: Transport },
    /// The server rejected the request.
    #[error("{url} answered {status}: {message}")]
    Refused {
        url: String,
        /// HTTP status.
        status: u16,
        /// Explanation why the request was rejected.
        message: String,
        /// Codes of the problems that the server found in the request.
        problems: Vec<String>,
        /// Suggested waiting time before a retry, if the server returned one.
        retry_after: Option<Duration>,
    },
    /// The response does not conform to the API of warpgauge.
    #[error("the answer of {url} is not valid: {message}; is it a warpgauge server?")]
    Answer { url: String, message: String },
    /// The server became unreachable after it had accepted a job.
    #[error(
        "job {job} is at {server}, which does not answer; once it answers again, `warpgauge jobs wait {job} \
         --server {server}` waits for the job's end, and `warpgauge jobs show {job} --server {server}` \
         shows its report"
    )]
    JobLost {
        job: String,
        /// The server that has the job.
        server: String,
        /// Error of the last attempt.
        source: Box<ClientError>,
    },
    /// The server became unreachable after it had accepted a run of the gate.
    #[error(
        "the connection to job {job} was lost, and the job may continue; once the server answers again, \
         `warpgauge jobs show {job} --server {server}` shows its report"
    )]
    GateLost {
        job: String,
        server: String,
        /// Error of the last attempt.
        source: Box<ClientError>,
    },
    /// A run of the gate ended without a report.
    #[error(transparent)]
    GateEnded(Box<EndedJob>),
    /// The suite is too large for one request.
    #[error(
        "the suite does not fit into one request: it contains {cases} cases with the code of both sides; \
         split the suite, or ask the operator to raise the server's limit"
    )]
    SuiteTooLarge {
        /// Number of cases in the suite.
        cases: usize,
        /// The server's error, with the limit.
        source: Box<ClientError>,
    },
    /// The waiting caller was interrupted. The job was cancelled if possible.
    #[error("interrupted")]
    Interrupted,
    /// A bug in warpgauge.
    #[error("internal error: {0}")]
    Internal(String),
}

/// A job that ended without a report.
#[derive(Debug, thiserror::Error)]
#[error(
    "job {job} ended as {how} ({code}): {message}; this is not a verdict. \
     `warpgauge jobs show {job} --server {server}` shows it"
)]
pub struct EndedJob {
    pub job: String,
    pub server: String,
    /// Name of the state in which the job ended.
    pub how: &'static str,
    /// Stable code of the reason why the job has no report.
    pub code: ErrorCode,
    pub message: String,
}

/// A transport error of the connection to a server.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Transport(pub(crate) ureq::Error);

impl ClientError {
    /// Returns the error for a response that ended early.
    pub(crate) fn broken(url: &str, source: std::io::Error) -> Self {
        Self::Broken { url: url.to_owned(), source: Transport(ureq::Error::Io(source)) }
    }

    /// Returns whether a retry may succeed soon, because the server has not rejected the request.
    pub fn is_broken(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Broken { .. } => true,
            Self::Refused { status, .. } => matches!(status, 429 | 502..=504),
            Self::Url { .. }
            | Self::Login { .. }
            | Self::Certificates(_)
            | Self::Tls { .. }
            | Self::Answer { .. }
            | Self::JobLost { .. }
            | Self::GateLost { .. }
            | Self::GateEnded(_)
            | Self::SuiteTooLarge { .. }
            | Self::Interrupted
            | Self::Internal(_) => false,
        }
    }

    /// Returns whether the response did not arrive in time.
    pub fn is_late(&self) -> bool {
        matches!(self, Self::Broken { source: Transport(ureq::Error::Timeout(_)), .. })
    }

    /// Returns the suggested waiting time before a retry, if the server returned one.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns the message without its remedy, for a warning that a request is retried.
    pub fn brief(&self) -> String {
        self.to_string().split([';', '\n']).next().unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_leaves_out_the_advice() {
        let full = ClientError::Refused {
            url: "http://h/jobs".to_owned(),
            status: 429,
            message: "full; come back later\n  at queue".to_owned(),
            problems: Vec::new(),
            retry_after: None,
        };
        assert_eq!(full.brief(), "http://h/jobs answered 429: full");
        assert!(full.is_broken() && !full.is_late());
    }
}
