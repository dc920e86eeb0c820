//! What went wrong with a submission, in the words of reports.

use crate::error::ExecError;
use warpgauge_model::FailureCode;
use warpgauge_torch::{RunnerError, RunnerFault};

/// Where a submission was when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Running its module, or making its object.
    Load,
    /// Being asked for inputs, or called.
    Call,
}

/// What is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blame {
    /// What was submitted.
    Submission,
    /// What was submitted, or a machine that has too much to do: other runners show which.
    Unsure,
    /// The process that runners are forked from, which has ended.
    Parent,
    /// This machine.
    Machine,
}

/// Why a submission did not get to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failed {
    pub stage: Stage,
    pub code: FailureCode,
    pub message: String,
    /// Line of the submission.
    pub line: Option<u32>,
    /// The submission's part of the traceback.
    pub traceback: Option<String>,
    pub blame: Blame,
}

/// Why an evaluation ends before its last call.
pub(super) enum Stop {
    Candidate(Failed),
    Reference(Failed),
    /// The machine's fault, in words.
    Broken(String),
    /// Something speaks against the candidate.
    Wrong,
}

/// What runners may say of themselves. Whatever else they say is the failure of a call.
const KNOWN: [FailureCode; 25] = [
    FailureCode::CompilationFailed,
    FailureCode::ConstructorFailed,
    FailureCode::InputsFailed,
    FailureCode::CallFailed,
    FailureCode::UnusableOutput,
    FailureCode::OutOfMemory,
    FailureCode::UnknownKernel,
    FailureCode::AmbiguousKernel,
    FailureCode::NoKernel,
    FailureCode::NotSupported,
    FailureCode::NoGradient,
    // Of what it has compiled.
    FailureCode::CompilerTimeout,
    FailureCode::CompilerCpuLimit,
    FailureCode::CompilerFileLimit,
    FailureCode::CompilerOutOfMemory,
    FailureCode::CompilerOutputTooLarge,
    FailureCode::CompilerCrashed,
    FailureCode::CompilerFailed,
    FailureCode::CompilerOptionRefused,
    FailureCode::UnknownCompilerOption,
    FailureCode::TooManyCompilerOptions,
    FailureCode::InvalidCompilerOption,
    FailureCode::WrongArchitecture,
    FailureCode::SourceTooLarge,
    FailureCode::InvalidSource,
];

/// Longest message and traceback of a report, bytes.
const MOST_TEXT: usize = 16 << 10;

impl Failed {
    /// What a fault means at a stage. `timeout`: the request's, seconds.
    pub(super) fn of(fault: RunnerFault, stage: Stage, timeout: f64) -> Self {
        let plain = |code, message| Self::plain(stage, code, message);
        let of = |blame, failed| Self { blame, ..failed };
        match fault {
            RunnerFault::Refused(refusal) => Self::refused(refusal, stage),
            RunnerFault::TimedOut => plain(
                FailureCode::Timeout,
                format!(
                    "it did not end within {timeout} s and was stopped; look for endless loops, or \
                     raise `timeout` (to 600 s at most)"
                ),
            ),
            RunnerFault::Died(how) => plain(
                FailureCode::WorkerDied,
                format!(
                    "its process ended ({how}), as it does where the submission ends it, accesses \
                     memory that is not its own, or takes more than there is"
                ),
            ),
            RunnerFault::DiedWithParent => {
                let message = "its process ended, and so did the one that reports how".to_owned();
                of(Blame::Parent, plain(FailureCode::WorkerDied, message))
            }
            RunnerFault::Running(why) => plain(FailureCode::NotStopped, must_not_run(&why)),
            RunnerFault::Woken(why) => {
                of(Blame::Unsure, plain(FailureCode::NotStopped, must_not_run(&why)))
            }
            RunnerFault::NotObserved(why) => {
                of(Blame::Machine, plain(FailureCode::NotStopped, why))
            }
            RunnerFault::Forged(what) => plain(FailureCode::ProtocolViolated, what),
        }
    }

    fn plain(stage: Stage, code: FailureCode, message: String) -> Self {
        let blame = Blame::Submission;
        Self { stage, code, message, line: None, traceback: None, blame }
    }

    /// Why there is no verdict, where the submission is not at fault.
    pub(super) fn of_environment(&self) -> Option<ExecError> {
        let what = || self.message.clone();
        match self.blame {
            Blame::Submission | Blame::Unsure => None,
            Blame::Parent => Some(ExecError::RunnersLost(what())),
            Blame::Machine => {
                let why = format!("torch kernels cannot be judged here: {}", self.message);
                Some(ExecError::Unavailable(why))
            }
        }
    }

    /// The deadline was over while what came of the calls was judged.
    pub(super) fn late(timeout: f64) -> Self {
        let message = format!(
            "calls and the comparison of what they returned did not end within {timeout} s; ask \
             for fewer trials, or raise `timeout` (to 600 s at most)"
        );
        Self::plain(Stage::Call, FailureCode::Timeout, message)
    }

    /// What came back cannot be used.
    pub(super) fn unusable(message: String) -> Self {
        Self::plain(Stage::Call, FailureCode::UnusableOutput, bounded(message))
    }

    /// The device has no memory for what is to be judged.
    pub(super) fn no_room(message: String) -> Self {
        Self::plain(Stage::Call, FailureCode::OutOfMemory, message)
    }

    fn refused(refusal: RunnerError, stage: Stage) -> Self {
        let code = FailureCode::from(refusal.code.as_str());
        let code = if KNOWN.contains(&code) { code } else { FailureCode::CallFailed };
        let traceback = Some(bounded(refusal.log)).filter(|log| !log.trim().is_empty());
        let line = refusal.line;
        Self { line, traceback, ..Self::plain(stage, code, bounded(refusal.message)) }
    }
}

fn must_not_run(why: &str) -> String {
    format!("between its answer and the next call it must not run: {why}")
}

/// The end of a text, which says most of a traceback.
fn bounded(mut text: String) -> String {
    if text.len() > MOST_TEXT {
        let mut from = text.len() - MOST_TEXT;
        while !text.is_char_boundary(from) {
            from += 1;
        }
        text.drain(..from);
    }
    text
}
