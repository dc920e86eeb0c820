//! What can keep an evaluation from ending with a report.

use std::error::Error;
use std::time::Duration;

use crate::compile::CompileError;
use crate::contract::ContractError;
use crate::worker::LeaseError;

/// Why there is no report. Failures of the submitted kernel are reports, not errors.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ServiceError {
    /// The contract is not valid: every problem found, each with its path.
    #[error("the contract is not valid: {}", .0.iter().map(|p| format!("{}: {}", p.path, p.message)).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<Problem>),
    /// No device is free and the queue is full.
    #[error("{waiting} evaluations are waiting already; try again in {} s", .retry_after.as_secs().max(1))]
    QueueFull {
        /// Evaluations waiting.
        waiting: usize,
        /// When it is worth trying again.
        retry_after: Duration,
    },
    /// No such job.
    #[error("there is no job {0}; ended jobs are kept until they are old or take too much room")]
    NoSuchJob(String),
    /// The caller has as many jobs as it may have.
    #[error("{message}; try again in {} s", .retry_after.as_secs().max(1))]
    QuotaExceeded {
        /// Which quota, and how much of it is used.
        message: String,
        /// When it is worth trying again.
        retry_after: Duration,
    },
    /// The idempotency key was used before, for something else.
    #[error(
        "the idempotency key was used before with a different request, for job {job_id}; use a new \
         key for a new request"
    )]
    IdempotencyConflict {
        /// The job that the key stands for.
        job_id: String,
    },
    /// The job was cancelled while its caller waited.
    #[error("job {job_id} was cancelled")]
    Cancelled {
        /// The job.
        job_id: String,
    },
    /// The job ended without a report, some time ago or in another process.
    #[error("job {job_id} failed ({code}): {message}")]
    JobFailed {
        /// The job.
        job_id: String,
        /// Stable code.
        code: String,
        /// Why.
        message: String,
    },
    /// No such baseline.
    #[error("there is no baseline {0}; GET /baselines lists those that there are")]
    NoSuchBaseline(String),
    /// What is there does not fit what is asked for.
    #[error("{message}")]
    Conflict {
        /// Stable code.
        code: &'static str,
        /// What differs, and what to do.
        message: String,
    },
    /// The caller may not do that.
    #[error("{0}")]
    Forbidden(String),
    /// The job is there, and does not have what is asked for.
    #[error("there is no {what}: {reason}")]
    NoArtifact {
        /// What is asked for, and of which job.
        what: String,
        /// Why there is none, and what would help.
        reason: String,
    },
    /// The job had what is asked for, and it is not kept any more.
    #[error("{what} is not kept any more: {reason}")]
    ArtifactGone {
        /// What is asked for, and of which job.
        what: String,
        /// Why it went, and what would help.
        reason: String,
    },
    /// The server is going down.
    #[error("the server is shutting down; send the request again to another or later")]
    ShuttingDown,
    /// This machine lacks something: says what, and what to do.
    #[error("{0}")]
    Unavailable(String),
    /// Our bug or a broken machine. The detail goes to the log, `id` to the caller.
    #[error("internal error {id}: {message}")]
    Internal {
        /// Finds the log line.
        id: String,
        /// What failed, without internals.
        message: String,
    },
}

/// One thing wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// JSON path of the field.
    pub path: String,
    /// Stable code.
    pub code: String,
    /// What was expected, what came, what to do.
    pub message: String,
}

impl From<ContractError> for Problem {
    fn from(error: ContractError) -> Self {
        Self { path: error.path, code: error.code.to_string(), message: error.message }
    }
}

/// The request does not fit: every problem found.
pub(super) fn invalid(errors: Vec<ContractError>) -> ServiceError {
    ServiceError::Invalid(errors.into_iter().map(Problem::from).collect())
}

/// Our bug or a broken machine: the whole chain goes to the log under an id, the id to the caller.
pub(super) fn internal(operation: &str, error: &(dyn Error + 'static)) -> ServiceError {
    let id = uuid::Uuid::new_v4().to_string();
    tracing::error!(%id, operation, error = chain(error), "internal error");
    ServiceError::Internal { id, message: format!("{operation} failed; the server's log says why") }
}

/// An error and its sources on one line.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// A compilation that ended without a verdict on the source.
pub(super) fn from_compile(error: CompileError) -> ServiceError {
    match error {
        CompileError::Rejected(failure) => ServiceError::Invalid(vec![Problem {
            path: "kernel".to_owned(),
            code: failure.code.to_owned(),
            message: failure.message,
        }]),
        CompileError::Internal { .. } => internal("compiling", &error),
        other => ServiceError::Unavailable(chain(&other)),
    }
}

/// No device was to be had.
pub(super) fn from_lease(error: LeaseError) -> ServiceError {
    match error {
        LeaseError::QueueFull { waiting, retry_after } => {
            ServiceError::QueueFull { waiting, retry_after }
        }
        LeaseError::ShuttingDown => ServiceError::ShuttingDown,
        other => ServiceError::Unavailable(chain(&other)),
    }
}
