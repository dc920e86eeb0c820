//! Errors of the compile stage.

use std::path::PathBuf;

use serde::Serialize;

use super::protocol::Outcome;
use super::summary::summary;
use super::tunable::Tunable;
use super::usage::ProcessUsage;
use warpgauge_model::{Diagnostic, FailureCode};

/// Remedy for a missing or unsuitable compiler.
pub(crate) const REMEDY: &str =
    "run `warpgauge toolchain install`, or see `warpgauge toolchain show` for what was found";

/// Reason why a compilation produced no artifact. Callers that share a compilation share its error,
/// so this type can be cloned.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CompileError {
    /// The submitted code or its options are at fault.
    #[error("{}", .0.message)]
    Rejected(Box<CompileFailure>),
    /// Not a failure: the kernel has several configurations, and the caller must choose one.
    #[error(
        "the kernel is tuned over {} configurations: it is compiled for one of them when it is \
         evaluated, or when the contract gives all compile-time constants that are tuned",
        .0.configurations.len()
    )]
    Tunable(Box<Tunable>),
    /// This machine lacks a compiler or another resource.
    #[error("{what}; {remedy}")]
    Environment {
        /// Description of the missing resource.
        what: String,
        remedy: String,
    },
    /// A child of this stage exceeded its time limit and was killed. For a compilation this becomes
    /// [`CompileError::Rejected`].
    #[error("it did not finish within {seconds} s and was stopped; {used}")]
    Timeout {
        /// The time limit, seconds.
        seconds: f64,
        /// Resources that the child had used.
        used: ProcessUsage,
    },
    /// A child of this stage died. For a compilation this becomes [`CompileError::Rejected`],
    /// unless another process ended the child.
    #[error("the compiler's process ended early ({}); {used}", describe_signal(*.signal))]
    Crashed {
        /// Signal that ended the child; `None` if it exited by itself.
        signal: Option<i32>,
        /// The child's output, up to a maximum length.
        log: String,
        /// Resources that the child had used.
        used: ProcessUsage,
    },
    /// Too many compilations are waiting, in total or for this owner.
    #[error("{waiting} compilations are already waiting; try again in a few seconds")]
    QueueFull {
        /// Number of waiting compilations.
        waiting: usize,
    },
    /// A bug of this program, or a failing machine.
    #[error("the compile stage failed: {what}")]
    Internal {
        /// Description of the failure.
        what: String,
    },
}

fn describe_signal(signal: Option<i32>) -> String {
    match signal {
        Some(9) => "killed, signal 9: the machine may be out of memory".into(),
        Some(signal) => format!("signal {signal}"),
        None => "it ended without an answer".into(),
    }
}

impl CompileError {
    /// Returns a rejection of the code. `code` is a stable error code.
    pub(crate) fn rejected(code: FailureCode, message: impl Into<String>) -> Self {
        Self::Rejected(Box::new(CompileFailure::new(code, message)))
    }

    /// Converts the outcome of a child that did not return the result of the requested work to an
    /// error.
    pub(crate) fn of_outcome(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Rejected { code, log, diagnostics } => {
                let message = summary(&code, &diagnostics, &log);
                Self::Rejected(Box::new(CompileFailure { code, message, diagnostics, log }))
            }
            Outcome::Toolchain { what } => Self::Environment { what, remedy: REMEDY.into() },
            Outcome::Failed { what } => Self::Internal { what },
            _ => Self::internal("the compile child sent an unexpected answer"),
        }
    }

    /// Returns an error for an internal failure of the compile stage.
    pub(crate) fn internal(what: impl Into<String>) -> Self {
        Self::Internal { what: what.into() }
    }
}

/// A rejection of the code, by the compiler or by this crate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CompileFailure {
    /// Stable code, e.g. `compilation_failed`, `unknown_kernel`.
    pub code: FailureCode,
    /// Message that a person can read.
    pub message: String,
    /// Structured messages of the compiler.
    pub diagnostics: Vec<Diagnostic>,
    /// Complete log of the compiler, up to a maximum length.
    pub log: String,
}

impl CompileFailure {
    /// Adds advice for the caller to the message, and as a note after the compiler's messages.
    pub(crate) fn advise(&mut self, advice: &str) {
        self.message.push_str("; ");
        self.message.push_str(advice);
        self.diagnostics.push(Diagnostic::note(advice));
    }

    /// Returns whether the compiler exceeded a limit or crashed. A retry would then take as long.
    pub(crate) fn is_exceeded(&self) -> bool {
        matches!(
            self.code,
            FailureCode::CompilerTimeout
                | FailureCode::CompilerCpuLimit
                | FailureCode::CompilerFileLimit
                | FailureCode::CompilerOutOfMemory
                | FailureCode::CompilerOutputTooLarge
                | FailureCode::CompilerCrashed
                | FailureCode::CompilerFailed
        )
    }

    /// Returns a rejection without a compiler log.
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), diagnostics: Vec::new(), log: String::new() }
    }
}

/// Reason why the compile stage could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum CompileSetupError {
    /// A directory could not be created or read.
    #[error("cannot {operation} {}", path.display())]
    Directory {
        /// The operation that failed.
        operation: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// A setting is out of range.
    #[error("compile setting `{name}` is {value}; it must be {expected}")]
    Setting {
        /// Name of the setting.
        name: &'static str,
        value: String,
        /// The permitted values.
        expected: &'static str,
    },
}
