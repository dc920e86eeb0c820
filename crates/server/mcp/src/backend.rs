//! Where jobs are handed in and asked about.

use std::fmt;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use warpgauge_contract::ParseError;
use warpgauge_job_views::{JobEvent, JobView};
use warpgauge_service::{ArtifactKind, DeviceView, ExecError, JobRequest, ServiceError};

/// The future of a backend's answer.
pub type JobBackendFuture<'a, T> = BoxFuture<'a, Result<T, JobBackendError>>;

/// Where one caller's jobs are handed in and asked about. To everybody else they do not exist.
pub trait JobBackend: Send + Sync + 'static {
    /// What stands for the caller; empty where there is one only.
    fn owner(&self) -> &str {
        ""
    }

    /// Takes a job in; its id, once it is safe to ask about it.
    fn submit(&self, order: JobOrder) -> JobBackendFuture<'_, String>;

    /// News of a job, from where it stands to its end, which is the last.
    fn watch<'a>(&'a self, job_id: &'a str) -> JobBackendFuture<'a, BoxStream<'static, JobEvent>>;

    /// A job, with its report once it ended.
    fn job<'a>(&'a self, job_id: &'a str) -> JobBackendFuture<'a, JobView>;

    /// Ends a job before its time.
    fn cancel<'a>(&'a self, job_id: &'a str) -> JobBackendFuture<'a, ()>;

    /// The devices of the machine.
    fn devices(&self) -> JobBackendFuture<'_, Vec<DeviceView>>;

    /// What a job left beside its report; in a comparison, of the kernel that is named.
    fn artifact<'a>(
        &'a self,
        job_id: &'a str,
        kind: ArtifactKind,
        kernel: Option<&'a str>,
    ) -> JobBackendFuture<'a, ArtifactBytes>;
}

/// A job to be taken in.
#[derive(Debug)]
pub struct JobOrder {
    /// What is to be done.
    pub request: JobRequest,
    /// The agent's own name for it.
    pub label: Option<String>,
    /// The same key again is the same job again.
    pub idempotency_key: Option<String>,
}

/// The content of an artifact.
pub struct ArtifactBytes {
    /// It.
    pub bytes: Vec<u8>,
}

/// Why something was not done, as the HTTP API would say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobBackendError {
    /// Stable code, for programs.
    pub code: String,
    /// What happened, where, and what to do.
    pub message: String,
    /// JSON path of the argument at fault.
    pub path: Option<String>,
}

impl JobBackendError {
    /// A refusal that is about no argument in particular.
    pub fn new(code: impl fmt::Display, message: impl Into<String>) -> Self {
        Self { code: code.to_string(), message: message.into(), path: None }
    }

    /// An argument is at fault.
    pub fn at(path: &str, code: impl fmt::Display, message: impl Into<String>) -> Self {
        Self { path: Some(path.to_owned()), ..Self::new(code, message) }
    }
}

impl From<ParseError> for JobBackendError {
    fn from(error: ParseError) -> Self {
        let path = (!error.path.is_empty()).then(|| error.path.clone());
        Self { path, ..Self::new(&error.code, error.to_string()) }
    }
}

impl From<ServiceError> for JobBackendError {
    fn from(error: ServiceError) -> Self {
        let message = error.to_string();
        let path = match &error {
            ServiceError::Exec(ExecError::Invalid(problems)) => {
                problems.first().map(|first| first.path.clone())
            }
            ServiceError::Named { path, .. } => Some(path.clone()),
            _ => None,
        };
        Self { path, ..Self::new(code_of(&error), message) }
    }
}

/// The code that the HTTP API gives the error.
fn code_of(error: &ServiceError) -> String {
    use warpgauge_model::ErrorCode as Code;
    let code = match error {
        ServiceError::Exec(ExecError::Invalid(_)) => Code::InvalidContract,
        ServiceError::QueueFull { .. } | ServiceError::Exec(ExecError::QueueFull { .. }) => {
            Code::QueueFull
        }
        ServiceError::QuotaExceeded { .. } => Code::QuotaExceeded,
        ServiceError::NoSuchJob(_) => Code::NoSuchJob,
        ServiceError::IdempotencyConflict { .. } => Code::IdempotencyConflict,
        ServiceError::Cancelled { .. } => Code::Cancelled,
        ServiceError::JobFailed { code, .. } | ServiceError::Conflict { code, .. } => code.clone(),
        ServiceError::NoSuchBaseline(_) => Code::NoSuchBaseline,
        ServiceError::NoSuchMatrix(_) => Code::NoSuchMatrix,
        ServiceError::NoSuchTensor(_) => Code::NoSuchTensor,
        ServiceError::TensorGone { code, .. } => code.clone(),
        ServiceError::Named { error, .. } => return code_of(error),
        ServiceError::NoSuchLease(_) => Code::NoSuchLease,
        ServiceError::Forbidden(_) => Code::Forbidden,
        ServiceError::NoArtifact { .. } => Code::NoSuchArtifact,
        ServiceError::ArtifactGone { .. } => Code::ArtifactGone,
        ServiceError::Exec(ExecError::ConditionsDiffer(_)) => Code::ConditionsDiffer,
        ServiceError::Exec(ExecError::NotOffered(_)) => Code::UnmetRequirements,
        ServiceError::Exec(ExecError::ShuttingDown) => Code::ShuttingDown,
        ServiceError::Exec(ExecError::Unavailable(_) | ExecError::RunnersLost(_)) => {
            Code::Unavailable
        }
        ServiceError::Exec(ExecError::Internal { .. }) => Code::Internal,
    };
    code.to_string()
}
