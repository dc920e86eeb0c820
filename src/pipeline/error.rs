//! What can keep an evaluation from ending with a report.

use std::time::Duration;

/// Why there is no report. Failures of the submitted kernel are reports, not errors.
#[derive(Debug, thiserror::Error)]
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
    #[error("there is no job {0}; finished jobs are kept for a while only")]
    NoSuchJob(String),
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
