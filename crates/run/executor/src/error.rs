//! Errors that leave an order without an outcome.

use std::error::Error;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use warpgauge_contract::ContractError;
use warpgauge_model::FailureCode;

/// Why an order has no outcome. Failures of the submitted kernel are outcomes, not errors.
#[derive(Debug, Clone, Serialize, Deserialize, thiserror::Error)]
pub enum ExecError {
    /// The contract is not valid. Contains every problem that was found, with its path.
    #[error("the contract is not valid: {}", .0.iter().map(|p| format!("{}: {}", p.path, p.message)).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<Problem>),
    /// No device is free and the queue is full.
    #[error("{waiting} evaluations are waiting already; try again in {} s", .retry_after.as_secs().max(1))]
    QueueFull {
        /// Number of waiting evaluations.
        waiting: usize,
        /// Time after which a retry is worthwhile.
        retry_after: Duration,
    },
    /// The measuring conditions of this executor differ from those that the order requires.
    #[error("{0}")]
    ConditionsDiffer(String),
    /// This executor does not meet the order's requirements: the order was sent to the wrong
    /// executor.
    #[error("{0}")]
    NotOffered(String),
    /// The executor is shutting down.
    #[error("the server is shutting down; send the request again later or to another server")]
    ShuttingDown,
    /// This machine lacks a required component. The text includes a remedy.
    #[error("{0}")]
    Unavailable(String),
    /// Runners of a torch kernel ended or failed in all attempts, for a reason other than the
    /// kernel.
    #[error(
        "the processes that ran this torch kernel were lost each time ({0}); the kernel is not at fault: send \
         the request again, or to a machine with less load"
    )]
    RunnersLost(String),
    /// A bug of this program or a fault of the machine. The details are in the log; the caller gets
    /// `id`.
    #[error("internal error {id}: {message}")]
    Internal {
        /// Id of the log line.
        id: String,
        /// The operation that failed, without internal details.
        message: String,
    },
}

/// A problem in a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// JSON path of the field.
    pub path: String,
    /// Stable code for programs.
    pub code: FailureCode,
    /// The expected and the actual value, and a remedy.
    pub message: String,
}

impl From<ContractError> for Problem {
    fn from(error: ContractError) -> Self {
        Self { path: error.path, code: error.code, message: error.message }
    }
}

/// Returns the error for an invalid request, with all problems.
pub fn invalid(errors: Vec<ContractError>) -> ExecError {
    ExecError::Invalid(errors.into_iter().map(Problem::from).collect())
}

/// Returns the error for a bug of this program or a fault of the machine. Writes the error with its
/// sources to the log, under an id that the caller gets.
pub fn internal(operation: &str, error: &(dyn Error + 'static)) -> ExecError {
    let (id, message) = logged(operation, error);
    ExecError::Internal { id, message }
}

/// Writes an internal error to the log. Returns the id of the log line, and the message for
/// callers.
pub fn logged(operation: &str, error: &(dyn Error + 'static)) -> (String, String) {
    let id = uuid::Uuid::new_v4().to_string();
    tracing::error!(%id, operation, error = chain(error), "internal error");
    (id, format!("{operation} failed; the server's log says why"))
}

/// Formats an error and its sources on one line.
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
