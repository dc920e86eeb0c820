//! Errors that keep an order from having an outcome.

use std::error::Error;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use warpgauge_contract::ContractError;
use warpgauge_model::FailureCode;

/// Why there is no outcome. Failures of the submitted kernel are outcomes, not errors.
#[derive(Debug, Clone, Serialize, Deserialize, thiserror::Error)]
pub enum ExecError {
    /// The contract is not valid: every problem found, each with its path.
    #[error("the contract is not valid: {}", .0.iter().map(|p| format!("{}: {}", p.path, p.message)).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<Problem>),
    /// No device is free and the queue is full.
    #[error("{waiting} evaluations are waiting already; try again in {} s", .retry_after.as_secs().max(1))]
    QueueFull {
        /// Number of waiting evaluations.
        waiting: usize,
        /// When a retry is worthwhile.
        retry_after: Duration,
    },
    /// The measuring conditions of this executor differ from those that the order requires.
    #[error("{0}")]
    ConditionsDiffer(String),
    /// This executor does not meet the order's requirements; it was sent to the wrong one.
    #[error("{0}")]
    NotOffered(String),
    /// The executor is shutting down.
    #[error("the server is shutting down; send the request again to another or later")]
    ShuttingDown,
    /// This machine lacks something. The text includes a remedy.
    #[error("{0}")]
    Unavailable(String),
    /// Runners of a torch kernel ended or failed for a reason other than the kernel, at each retry.
    #[error(
        "the processes that ran this torch kernel were lost each time ({0}); the kernel is not at fault: send \
         the request again, or to a machine that has less to do"
    )]
    RunnersLost(String),
    /// A bug of this program or a broken machine. The details go to the log, `id` to the caller.
    #[error("internal error {id}: {message}")]
    Internal {
        /// Identifies the log line.
        id: String,
        /// The failed operation, without internals.
        message: String,
    },
}

/// A problem of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// JSON path of the field.
    pub path: String,
    /// Stable code.
    pub code: FailureCode,
    /// Expected and actual value, and a remedy.
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

/// Returns the error for a bug of this program or a broken machine. Writes the error with its
/// sources to the log under an id, which the caller gets.
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
