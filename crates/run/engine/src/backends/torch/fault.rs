//! Failures of submissions, with the codes and messages of reports.

use crate::error::ExecError;
use warpgauge_model::FailureCode;
use warpgauge_torch::{RunnerError, RunnerFault};

/// Stage at which a submission failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Running its module, or constructing its object.
    Load,
    /// Generating inputs, or calling the submission.
    Call,
}

/// Component that caused a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blame {
    Submission,
    /// The cause is the submission or an overloaded machine. A retry with other runners shows which
    /// of the two.
    Unsure,
    /// The process from which runners are forked has ended.
    Parent,
    /// This machine failed, not the submission.
    Machine,
}

/// Failure of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failed {
    pub stage: Stage,
    pub code: FailureCode,
    pub message: String,
    /// Line number in the submission's source.
    pub line: Option<u32>,
    /// The submission's part of the traceback.
    pub traceback: Option<String>,
    pub blame: Blame,
}

/// Reason why an evaluation ends before its last call.
pub(super) enum Stop {
    Candidate(Failed),
    Reference(Failed),
    /// A fault of the machine, with a message.
    Broken(String),
    /// A check of the candidate failed, and its reason is recorded.
    Wrong,
}

/// Failure codes that a runner may report. Any other code becomes the failure of a call.
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
    // These come from the compilation of an extension.
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

/// Maximum size of a message and of a traceback in a report, in bytes.
const MOST_TEXT: usize = 16 << 10;

impl Failed {
    /// Converts a runner's fault at a stage to a failure. `timeout` is the request's, in seconds.
    pub(super) fn of(fault: RunnerFault, stage: Stage, timeout: f64) -> Self {
        let plain = |code, message| Self::plain(stage, code, message);
        let of = |blame, failed| Self { blame, ..failed };
        match fault {
            RunnerFault::Refused(refusal) => Self::refused(refusal, stage),
            RunnerFault::TimedOut => plain(
                FailureCode::Timeout,
                format!(
                    "{} did not end within {timeout} s, and the process was stopped; look for endless loops, or \
                     raise `timeout` (to 600 s at most)",
                    match stage {
                        Stage::Load => "running the source and creating its object",
                        Stage::Call => "generating inputs, or a call,",
                    }
                ),
            ),
            RunnerFault::Died(how) => plain(
                FailureCode::WorkerDied,
                format!(
                    "its process ended ({how}), which happens if the submission ends it, accesses \
                     memory that it does not own, or uses more memory than available"
                ),
            ),
            RunnerFault::DiedWithParent => {
                let message =
                    "its process ended, and so did the process that reports the cause".to_owned();
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

    /// Returns the error for a failure that the submission did not cause, so that there is no
    /// verdict. Returns `None` if the submission may have caused it.
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

    /// Returns the failure for a deadline that passed while results were being judged.
    pub(super) fn late(timeout: f64) -> Self {
        let message = format!(
            "calls and the comparison of their results did not end within {timeout} s; ask \
             for fewer trials, or raise `timeout` (to 600 s at most)"
        );
        Self::plain(Stage::Call, FailureCode::Timeout, message)
    }

    /// Returns the failure for results that cannot be used.
    pub(super) fn unusable(message: String) -> Self {
        Self::plain(Stage::Call, FailureCode::UnusableOutput, bounded(message))
    }

    /// Returns the failure for a device with too little memory.
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
    format!("between its answer and the next call, the process must not run: {why}")
}

/// Truncates a long text at its beginning, since the end of a traceback is the most useful part.
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
