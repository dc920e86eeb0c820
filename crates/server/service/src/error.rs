//! Errors of the service: reasons why an operation has no result.

use std::error::Error;
use std::time::Duration;

use warpgauge_contract::ContractError;
pub use warpgauge_executor::{ExecError, Problem, chain};
use warpgauge_model::{ErrorCode, FailureCode};
use warpgauge_store::StoreError;

/// Suggested waiting time before a retry, if a quota was exceeded.
const QUOTA_RETRY: Duration = Duration::from_secs(5);

/// Reasons why an operation has no report. If the submitted kernel fails, there is a report, not an
/// error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ServiceError {
    /// An error of the executor, or an error of the service with the same cause.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// No device is free and the queue is full.
    #[error("{}; try again in {} s", waiting_already(*.waiting, *.own), .retry_after.as_secs().max(1))]
    QueueFull {
        /// Number of evaluations that are waiting.
        waiting: usize,
        /// Whether all of them belong to the caller, which has then used up its share of the queue.
        own: bool,
        /// Suggested waiting time before a retry.
        retry_after: Duration,
    },
    /// No such job.
    #[error("there is no job {0}; ended jobs are removed when they are old or need too much space")]
    NoSuchJob(String),
    /// The caller has as many jobs as its quota allows.
    #[error("{message}; try again in {} s", .retry_after.as_secs().max(1))]
    QuotaExceeded {
        /// The quota that was exceeded, and its use.
        message: String,
        /// Suggested waiting time before a retry.
        retry_after: Duration,
    },
    /// The idempotency key was used before with a different request.
    #[error(
        "the idempotency key was used before with a different request, for job {job_id}; use a new \
         key for a new request"
    )]
    IdempotencyConflict {
        /// The job that was created with the key.
        job_id: String,
    },
    /// The job was cancelled while its caller waited.
    #[error("job {job_id} was cancelled")]
    Cancelled { job_id: String },
    /// The job ended without a report, either earlier or in another process.
    #[error("job {job_id} failed ({code}): {message}")]
    JobFailed {
        job_id: String,
        /// Stable error code.
        code: ErrorCode,
        message: String,
    },
    /// No such baseline.
    #[error("there is no baseline `{0}`; GET /baselines lists the existing ones")]
    NoSuchBaseline(String),
    /// No such matrix.
    #[error(
        "there is no matrix {0}; GET /list_mtx lists the existing ones, POST /upload_mtx adds one"
    )]
    NoSuchMatrix(String),
    /// No such tensor.
    #[error("Tensor not found: there is no tensor {0}; GET /tensors lists the existing ones")]
    NoSuchTensor(String),
    /// The tensor existed and was removed.
    #[error("tensor {id} is gone: {reason}")]
    TensorGone {
        id: String,
        /// Stable error code.
        code: ErrorCode,
        /// Reason for the removal, with a remedy.
        reason: String,
    },
    /// The request refers to an object that does not exist or cannot be used.
    #[error("{path}: {error}")]
    Named {
        /// Path of the field that refers to the object.
        path: String,
        error: Box<ServiceError>,
    },
    /// No such lease.
    #[error(
        "there is no lease {0}: it was released, or no heartbeat arrived in time; GET \
         /tensors/{{id}}/handle returns a new one"
    )]
    NoSuchLease(String),
    /// The request conflicts with the current state.
    #[error("{message}")]
    Conflict {
        /// Stable error code.
        code: ErrorCode,
        /// The difference, with a remedy.
        message: String,
    },
    /// The caller lacks a permission.
    #[error("{0}")]
    Forbidden(String),
    /// The job exists but has no such artifact.
    #[error("there is no {what}: {reason}")]
    NoArtifact {
        /// The requested artifact and its job.
        what: String,
        /// Reason, with a remedy.
        reason: String,
    },
    /// The job had the artifact, but it has been removed.
    #[error("{what} is no longer stored: {reason}")]
    ArtifactGone {
        /// The requested artifact and its job.
        what: String,
        /// Reason for the removal, with a remedy.
        reason: String,
    },
}

fn waiting_already(waiting: usize, own: bool) -> String {
    match own {
        false => format!("{waiting} evaluations are waiting already"),
        true => format!(
            "{waiting} evaluations of this key are waiting already, which is its share of the queue \
             (devices.queue_capacity)"
        ),
    }
}

impl ServiceError {
    /// Returns the error for a request with these problems.
    pub fn invalid(problems: Vec<Problem>) -> Self {
        Self::Exec(ExecError::Invalid(problems))
    }

    /// Returns the error for a missing resource of this machine. The message names the resource and
    /// a remedy.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::Exec(ExecError::Unavailable(message.into()))
    }

    /// Returns the error for a server that is shutting down.
    pub fn shutting_down() -> Self {
        Self::Exec(ExecError::ShuttingDown)
    }

    /// Returns whether a resource of this machine was missing, so that a retry later or on another
    /// machine may succeed.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Exec(ExecError::Unavailable(_) | ExecError::RunnersLost(_)))
    }

    /// Prefixes the paths of the problems with `at`, for a part of a larger request.
    pub(super) fn within(self, at: &str) -> Self {
        self.at_paths(|path| format!("{at}.{path}"))
    }

    /// Replaces the path of each problem with the result of `path_of`.
    pub fn at_paths(self, path_of: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Exec(ExecError::Invalid(problems)) => {
                let moved = problems
                    .into_iter()
                    .map(|problem| Problem { path: path_of(&problem.path), ..problem });
                Self::invalid(moved.collect())
            }
            Self::Named { path, error } => Self::Named { path: path_of(&path), error },
            other => other,
        }
    }
}

/// Returns the error for a request whose contract has these problems.
pub(super) fn invalid(errors: Vec<ContractError>) -> ServiceError {
    warpgauge_executor::invalid(errors).into()
}

/// Logs the complete error chain under an id, and returns an error that contains only this id. For
/// bugs and broken machines.
pub(super) fn internal(operation: &str, error: &(dyn Error + 'static)) -> ServiceError {
    warpgauge_executor::internal(operation, error).into()
}

/// Converts an error of the store.
pub(super) fn refused(error: StoreError) -> ServiceError {
    match error {
        StoreError::Conflict { existing, .. } => {
            ServiceError::IdempotencyConflict { job_id: existing }
        }
        StoreError::Quota { .. } | StoreError::Full(_) => {
            ServiceError::QuotaExceeded { message: error.to_string(), retry_after: QUOTA_RETRY }
        }
        StoreError::Invalid { field, .. } => ServiceError::invalid(vec![Problem {
            path: field.to_owned(),
            code: FailureCode::OutOfRange,
            message: error.to_string(),
        }]),
        StoreError::Closed => ServiceError::shutting_down(),
        StoreError::DataDir { .. }
        | StoreError::Unreachable { .. }
        | StoreError::BadUrl { .. }
        | StoreError::Newer { .. }
        | StoreError::Older { .. }
        | StoreError::Foreign { .. }
        | StoreError::Gone { .. }
        | StoreError::Private(_)
        | StoreError::Migration { .. }
        | StoreError::Corrupt { .. }
        | StoreError::DiskFull { .. }
        | StoreError::ReadOnly { .. }
        | StoreError::Busy { .. } => {
            let text = chain(&error);
            tracing::error!(error = text, "the store failed");
            ServiceError::unavailable(error.for_callers())
        }
        // The store cannot be reached at present, and may recover.
        error if error.may_pass() => {
            let text = chain(&error);
            tracing::error!(error = text, "the store failed");
            ServiceError::unavailable(error.for_callers())
        }
        other => internal("using the store", &other),
    }
}
