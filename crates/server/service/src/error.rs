//! What can keep an evaluation from ending with a report.

use std::error::Error;
use std::time::Duration;

use warpgauge_contract::ContractError;
pub use warpgauge_executor::{ExecError, Problem, chain};
use warpgauge_model::{ErrorCode, FailureCode};
use warpgauge_store::StoreError;

/// When it is worth trying again after a quota.
const QUOTA_RETRY: Duration = Duration::from_secs(5);

/// Why there is no report. Failures of the submitted kernel are reports, not errors.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ServiceError {
    /// An error of the executor, or one of the service itself with the same cause.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// No device is free and the queue is full.
    #[error("{}; try again in {} s", waiting_already(*.waiting, *.own), .retry_after.as_secs().max(1))]
    QueueFull {
        /// Evaluations waiting.
        waiting: usize,
        /// Whether all these are the caller's, which are its share of the queue.
        own: bool,
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
        code: ErrorCode,
        /// Why.
        message: String,
    },
    /// No such baseline.
    #[error("there is no baseline {0}; GET /baselines lists those that there are")]
    NoSuchBaseline(String),
    /// No such matrix.
    #[error(
        "there is no matrix {0}; GET /list_mtx lists those that there are, POST /upload_mtx adds one"
    )]
    NoSuchMatrix(String),
    /// No such tensor.
    #[error("there is no tensor {0}; GET /tensors lists those that there are")]
    NoSuchTensor(String),
    /// There was such a tensor.
    #[error("tensor {id} is gone: {reason}")]
    TensorGone {
        /// Which.
        id: String,
        /// Stable code.
        code: ErrorCode,
        /// Why, and what to do.
        reason: String,
    },
    /// Something that the request names is not there.
    #[error("{path}: {error}")]
    Named {
        /// Where it is named.
        path: String,
        /// What is wrong with it.
        error: Box<ServiceError>,
    },
    /// No such lease.
    #[error(
        "there is no lease {0}: it was given back, or no heartbeat came in time; GET \
         /tensors/{{id}}/handle gives a new one"
    )]
    NoSuchLease(String),
    /// What is there does not fit what is asked for.
    #[error("{message}")]
    Conflict {
        /// Stable code.
        code: ErrorCode,
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
    /// The error of a request with these problems.
    pub fn invalid(problems: Vec<Problem>) -> Self {
        Self::Exec(ExecError::Invalid(problems))
    }

    /// The error of a machine that lacks something: what, and what to do.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::Exec(ExecError::Unavailable(message.into()))
    }

    /// The error of a server that is going down.
    pub fn shutting_down() -> Self {
        Self::Exec(ExecError::ShuttingDown)
    }

    /// Whether this machine lacked something, so that another one, or a later time, may do.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Exec(ExecError::Unavailable(_) | ExecError::RunnersLost(_)))
    }

    /// The error with the paths of its problems below `at`: those of a part of a request, in the whole.
    pub(super) fn within(self, at: &str) -> Self {
        match self {
            Self::Exec(ExecError::Invalid(problems)) => {
                let moved = problems
                    .into_iter()
                    .map(|problem| Problem { path: format!("{at}.{}", problem.path), ..problem });
                Self::invalid(moved.collect())
            }
            Self::Named { path, error } => Self::Named { path: format!("{at}.{path}"), error },
            other => other,
        }
    }
}

/// The error of a request with these problems of its contract.
pub(super) fn invalid(errors: Vec<ContractError>) -> ServiceError {
    warpgauge_executor::invalid(errors).into()
}

/// Our bug or a broken machine: the whole chain goes to the log under an id, the id to the caller.
pub(super) fn internal(operation: &str, error: &(dyn Error + 'static)) -> ServiceError {
    warpgauge_executor::internal(operation, error).into()
}

/// The error of an operation that the store refused.
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
        // It is away, and may come back.
        error if error.may_pass() => {
            let text = chain(&error);
            tracing::error!(error = text, "the store failed");
            ServiceError::unavailable(error.for_callers())
        }
        other => internal("using the store", &other),
    }
}
