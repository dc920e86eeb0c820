//! Conversion of compiler and device errors to executor errors.

use std::time::Duration;

use warpgauge_compile::CompileError;
pub(crate) use warpgauge_executor::{ExecError, Problem, chain, internal, invalid};
use warpgauge_model::FailureCode;
use warpgauge_worker::LeaseError;

/// Converts a compiler error to an error of the executor.
pub(crate) fn from_compile(error: CompileError) -> ExecError {
    match error {
        CompileError::Rejected(failure) => ExecError::Invalid(vec![Problem {
            path: "kernel".to_owned(),
            code: failure.code,
            message: failure.message,
        }]),
        CompileError::Tunable(_) => ExecError::Invalid(vec![Problem {
            path: "kernel".to_owned(),
            code: FailureCode::SeveralConfigurations,
            message: error.to_string(),
        }]),
        // The retry delay is about the time of one compilation.
        CompileError::QueueFull { waiting } => {
            ExecError::QueueFull { waiting, retry_after: Duration::from_secs(2) }
        }
        CompileError::Internal { .. } => internal("compiling", &error),
        other => ExecError::Unavailable(chain(&other)),
    }
}

/// Converts the error of a lease that was not granted.
pub(crate) fn from_lease(error: LeaseError) -> ExecError {
    match error {
        LeaseError::QueueFull { waiting, retry_after } => {
            ExecError::QueueFull { waiting, retry_after }
        }
        LeaseError::ShuttingDown => ExecError::ShuttingDown,
        other => ExecError::Unavailable(chain(&other)),
    }
}
