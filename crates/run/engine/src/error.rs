//! Errors of compilers and devices, as those of an executor.

use std::time::Duration;

use warpgauge_compile::CompileError;
pub(crate) use warpgauge_executor::{ExecError, Problem, chain, internal, invalid};
use warpgauge_model::FailureCode;
use warpgauge_worker::LeaseError;

/// A compilation that ended without a verdict on the source.
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
        // As long as a compilation takes that is next.
        CompileError::QueueFull { waiting } => {
            ExecError::QueueFull { waiting, retry_after: Duration::from_secs(2) }
        }
        CompileError::Internal { .. } => internal("compiling", &error),
        other => ExecError::Unavailable(chain(&other)),
    }
}

/// No device was to be had.
pub(crate) fn from_lease(error: LeaseError) -> ExecError {
    match error {
        LeaseError::QueueFull { waiting, retry_after } => {
            ExecError::QueueFull { waiting, retry_after }
        }
        LeaseError::ShuttingDown => ExecError::ShuttingDown,
        other => ExecError::Unavailable(chain(&other)),
    }
}
