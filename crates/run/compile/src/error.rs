//! Why a compilation gave no artifact.

use std::path::PathBuf;

use serde::Serialize;

use super::protocol::Outcome;
use super::summary::summary;
use super::tunable::Tunable;
use super::usage::ProcessUsage;
use warpgauge_model::{Diagnostic, FailureCode};

/// What to do about a toolchain that does not serve.
pub(crate) const REMEDY: &str =
    "run `warpgauge toolchain install`, or see `warpgauge toolchain show` for what was found";

/// Why a compilation gave no artifact. Cloneable: callers that share one compilation share its end.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CompileError {
    /// The submitted code or its options are at fault.
    #[error("{}", .0.message)]
    Rejected(Box<CompileFailure>),
    /// Nothing is wrong: the kernel has several configurations, and one has to be chosen.
    #[error(
        "the kernel is tuned over {} configurations: it is compiled for one of them when it is \
         evaluated, or when the contract gives all compile-time constants that are tuned",
        .0.configurations.len()
    )]
    Tunable(Box<Tunable>),
    /// Something is missing on this machine.
    #[error("{what}; {remedy}")]
    Environment {
        /// What is missing.
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// A child of this stage took too long and was killed. Of a compilation it is
    /// [`CompileError::Rejected`].
    #[error("it did not finish within {seconds} s and was stopped; {used}")]
    Timeout {
        /// The limit.
        seconds: f64,
        /// What it had taken.
        used: ProcessUsage,
    },
    /// A child of this stage died. Of a compilation it is [`CompileError::Rejected`], unless somebody
    /// else ended it.
    #[error("the compiler's process ended early ({}); {used}", describe_signal(*.signal))]
    Crashed {
        /// Signal that ended it; `None` if it exited by itself.
        signal: Option<i32>,
        /// What it wrote before, bounded.
        log: String,
        /// What it had taken.
        used: ProcessUsage,
    },
    /// Too many compilations wait already, of all callers or of this one.
    #[error("{waiting} compilations are waiting already; try again in a few seconds")]
    QueueFull {
        /// How many.
        waiting: usize,
    },
    /// A bug of ours, or a machine that fails.
    #[error("the compile stage failed: {what}")]
    Internal {
        /// What happened.
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
    /// Rejects the code with a stable `code`.
    pub(crate) fn rejected(code: FailureCode, message: impl Into<String>) -> Self {
        Self::Rejected(Box::new(CompileFailure::new(code, message)))
    }

    /// What the child's answer comes to where it is none of the things that were asked for.
    pub(crate) fn of_outcome(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Rejected { code, log, diagnostics } => {
                let message = summary(&code, &diagnostics, &log);
                Self::Rejected(Box::new(CompileFailure { code, message, diagnostics, log }))
            }
            Outcome::Toolchain { what } => Self::Environment { what, remedy: REMEDY.into() },
            Outcome::Failed { what } => Self::Internal { what },
            _ => Self::internal("the compile child answered another question"),
        }
    }

    /// Reports a failure of ours.
    pub(crate) fn internal(what: impl Into<String>) -> Self {
        Self::Internal { what: what.into() }
    }
}

/// A rejection: what the compiler, or we, have against the code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CompileFailure {
    /// Stable code, e.g. `compilation_failed`, `unknown_kernel`.
    pub code: FailureCode,
    /// One text for people.
    pub message: String,
    /// Messages of the compiler, structured.
    pub diagnostics: Vec<Diagnostic>,
    /// Its complete log, bounded.
    pub log: String,
}

impl CompileFailure {
    /// Whether the compiler could not be let finish, or broke: to try again costs as much.
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

    /// A rejection without a compiler's log.
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), diagnostics: Vec::new(), log: String::new() }
    }
}

/// The compile stage could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum CompileSetupError {
    /// A directory could not be made or read.
    #[error("cannot {operation} {}", path.display())]
    Directory {
        /// What was tried.
        operation: &'static str,
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A setting is out of its range.
    #[error("compile setting `{name}` is {value}; it must be {expected}")]
    Setting {
        /// Which.
        name: &'static str,
        /// What it is.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
}
