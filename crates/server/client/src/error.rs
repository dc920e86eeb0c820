//! Why a server gave no answer, or none to be used.

use std::time::Duration;

use warpgauge_model::ErrorCode;

use crate::tls::CertificateFileError;

/// Why there is no answer. `Display` says what, where and what to do; `source` why.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
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
        source: Transport,
    },
    /// The connection broke, or nothing came in time.
    #[error("the server at {url} gave no answer")]
    Broken {
        /// Where.
        url: String,
        /// Why not.
        source: Transport,
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
        /// Codes of what it has against the request.
        problems: Vec<String>,
        /// When it is worth trying again, where it says so.
        retry_after: Option<Duration>,
    },
    /// An answer that is none of this API.
    #[error("the answer of {url} is not understood: {message}; is it a warpgauge server?")]
    Answer {
        /// Where.
        url: String,
        /// What does not fit.
        message: String,
    },
    /// The server went away from a job that it had accepted.
    #[error(
        "job {job} is at {server}, which does not answer; when it is back, `warpgauge jobs wait {job} \
         --server {server}` waits for the job's end, and `warpgauge jobs show {job} --server {server}` \
         shows its report"
    )]
    JobLost {
        /// The job.
        job: String,
        /// Where it is.
        server: String,
        /// What the last attempt to ask came to.
        source: Box<ClientError>,
    },
    /// The server took a run of the gate, and was not to be reached then.
    #[error(
        "lost sight of job {job}, which may go on without us; once the server is there again, \
         `warpgauge jobs show {job} --server {server}` has its report"
    )]
    GateLost {
        /// The job.
        job: String,
        /// Where.
        server: String,
        /// What came in between.
        source: Box<ClientError>,
    },
    /// A run of the gate that ended without a report.
    #[error(transparent)]
    GateEnded(Box<EndedJob>),
    /// A suite that does not fit into a request.
    #[error(
        "the suite does not fit into one request: {cases} cases travel with the code of both sides; \
         split the suite, or have the server's limit raised"
    )]
    SuiteTooLarge {
        /// Cases of the suite.
        cases: usize,
        /// What the server said, with the limit.
        source: Box<ClientError>,
    },
    /// Whoever waited was interrupted; the job was cancelled, if it could be.
    #[error("interrupted")]
    Interrupted,
    /// A bug in warpgauge.
    #[error("internal error: {0}")]
    Internal(String),
}

/// A job that ended without a report.
#[derive(Debug, thiserror::Error)]
#[error(
    "job {job} ended as {how} ({code}): {message}; this is no verdict. \
     `warpgauge jobs show {job} --server {server}` has it"
)]
pub struct EndedJob {
    /// The job.
    pub job: String,
    /// Where.
    pub server: String,
    /// Its state.
    pub how: &'static str,
    /// Stable code of why.
    pub code: ErrorCode,
    /// Why.
    pub message: String,
}

/// What went wrong between here and a server.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Transport(pub(crate) ureq::Error);

impl ClientError {
    /// The server was there, and its answer did not come to its end.
    pub(crate) fn broken(url: &str, source: std::io::Error) -> Self {
        Self::Broken { url: url.to_owned(), source: Transport(ureq::Error::Io(source)) }
    }

    /// Whether the same may work a moment later: nobody has said no.
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

    /// Whether the answer did not come in time.
    pub fn is_late(&self) -> bool {
        matches!(self, Self::Broken { source: Transport(ureq::Error::Timeout(_)), .. })
    }

    /// When it is worth trying again, where the server says so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// What is wrong, without the advice for people: for a remark where it is acted on already.
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
