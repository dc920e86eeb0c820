//! The interface to the service that runs jobs. The main type is [`JobBackend`].

use std::fmt;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use warpgauge_contract::ParseError;
use warpgauge_job_views::{JobEvent, JobView};
use warpgauge_service::{ArtifactKind, DeviceView, ExecError, JobRequest, ServiceError};

/// Future that returns the result of a backend operation.
pub type JobBackendFuture<'a, T> = BoxFuture<'a, Result<T, JobBackendError>>;

/// Submits and reads the jobs of one caller. Other callers cannot see these jobs.
pub trait JobBackend: Send + Sync + 'static {
    /// Returns the id of the caller. It is empty if there is only one caller.
    fn owner(&self) -> &str {
        ""
    }

    /// Returns the URL of a job's page, if the server's address is known.
    fn page_of(&self, _job_id: &str) -> Option<String> {
        None
    }

    /// Submits a job. Returns its id once the job can be read.
    fn submit(&self, order: JobOrder) -> JobBackendFuture<'_, String>;

    /// Returns the events of a job, beginning with its current state. The last event is the job's
    /// end.
    fn watch<'a>(&'a self, job_id: &'a str) -> JobBackendFuture<'a, BoxStream<'static, JobEvent>>;

    /// Returns a job, with its report if it has ended.
    fn job<'a>(&'a self, job_id: &'a str) -> JobBackendFuture<'a, JobView>;

    fn cancel<'a>(&'a self, job_id: &'a str) -> JobBackendFuture<'a, ()>;

    /// Returns the devices of the machine.
    fn devices(&self) -> JobBackendFuture<'_, Vec<DeviceView>>;

    /// Returns an artifact of a job. In a comparison, it is the artifact of the named kernel.
    fn artifact<'a>(
        &'a self,
        job_id: &'a str,
        kind: ArtifactKind,
        kernel: Option<&'a str>,
    ) -> JobBackendFuture<'a, ArtifactBytes>;
}

/// A job to submit.
#[derive(Debug)]
pub struct JobOrder {
    pub request: JobRequest,
    /// The agent's label for the job.
    pub label: Option<String>,
    /// Idempotency key. A submission with the same key returns the same job.
    pub idempotency_key: Option<String>,
}

/// The content of an artifact.
pub struct ArtifactBytes {
    pub bytes: Vec<u8>,
}

/// Reason why an operation failed, with the error codes of the HTTP API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobBackendError {
    /// Stable error code.
    pub code: String,
    /// Description of the failure, with its place and a remedy.
    pub message: String,
    /// JSON path of the invalid argument.
    pub path: Option<String>,
}

impl JobBackendError {
    /// Creates an error that does not refer to an argument.
    pub fn new(code: impl fmt::Display, message: impl Into<String>) -> Self {
        Self { code: code.to_string(), message: message.into(), path: None }
    }

    /// Creates an error that refers to an argument.
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

/// Returns the HTTP API's code for the error.
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
