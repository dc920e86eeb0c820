//! Kinds, states and stages of jobs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// State of a job.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// The job is accepted and waits for its turn.
    Submitted,
    /// Data is being prepared, or the job waits for a device.
    Queued,
    /// A source is being compiled.
    Compiling,
    /// Outputs are being verified.
    Validating,
    /// The kernel runs on the device, or profilers and checkers run.
    Profiling,
    /// The job ended with a report.
    Completed,
    /// The job ended without a report.
    Failed,
    /// The caller or a shutdown cancelled the job.
    Cancelled,
    /// The job ended at its deadline.
    TimedOut,
}

impl JobState {
    /// All states, in the order in which a job may reach them.
    pub const ALL: [Self; 9] = [
        Self::Submitted,
        Self::Queued,
        Self::Compiling,
        Self::Profiling,
        Self::Validating,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::TimedOut,
    ];

    /// Returns the name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Queued => "queued",
            Self::Compiling => "compiling",
            Self::Validating => "validating",
            Self::Profiling => "profiling",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
        }
    }

    /// Returns whether the state is final.
    pub fn is_end(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::TimedOut)
    }

    /// Returns the stage that is reported for a job if only its state is known.
    pub fn stage(self) -> JobStage {
        match self {
            Self::Submitted | Self::Queued => JobStage::Waiting,
            Self::Compiling => JobStage::Compiling,
            Self::Profiling => JobStage::Running,
            Self::Validating => JobStage::Verifying,
            Self::Completed | Self::Failed | Self::Cancelled | Self::TimedOut => JobStage::Ended,
        }
    }
}

/// Kind of a job: the operation that it carries out.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    /// Evaluation of a kernel, as requested by `POST /evaluate`.
    #[default]
    Evaluate,
    /// Untimed run of a kernel, as requested by `POST /execute`.
    Execute,
    /// Comparison of kernels, as requested by `POST /compare`.
    Compare,
    /// Sweep over values of a contract, as requested by `POST /sweep`.
    Sweep,
    /// Run of the gate, as requested by `POST /gate`.
    Gate,
}

impl JobKind {
    pub const ALL: [Self; 5] =
        [Self::Evaluate, Self::Execute, Self::Compare, Self::Sweep, Self::Gate];

    /// Returns the name on the wire and in databases.
    pub fn name(self) -> &'static str {
        match self {
            Self::Evaluate => "evaluate",
            Self::Execute => "execute",
            Self::Compare => "compare",
            Self::Sweep => "sweep",
            Self::Gate => "gate",
        }
    }

    /// Returns the kind with this name.
    pub fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == text)
    }
}

/// Stage of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobStage {
    /// The job is accepted and waits for its turn.
    #[default]
    Waiting,
    /// A source is being compiled.
    Compiling,
    /// Data is being prepared.
    Preparing,
    /// The job waits for a device.
    WaitingForDevice,
    /// The kernel runs.
    Running,
    /// Outputs are being verified.
    Verifying,
    /// Profilers and checkers run.
    Profiling,
    /// The job has ended.
    Ended,
}

impl JobStage {
    /// Returns the state of a job in this stage; `None` for `Ended`, which has several states.
    pub fn state(self) -> Option<JobState> {
        match self {
            Self::Waiting => Some(JobState::Submitted),
            Self::Compiling => Some(JobState::Compiling),
            Self::Preparing | Self::WaitingForDevice => Some(JobState::Queued),
            Self::Running | Self::Profiling => Some(JobState::Profiling),
            Self::Verifying => Some(JobState::Validating),
            Self::Ended => None,
        }
    }

    /// Returns a description for people.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Compiling => "compiling",
            Self::Preparing => "preparing data",
            Self::WaitingForDevice => "waiting for a device",
            Self::Running => "running on the device",
            Self::Verifying => "verifying",
            Self::Profiling => "profiling",
            Self::Ended => "done",
        }
    }
}

/// Statistics of the timed launches so far.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartialStatistics {
    /// Number of timed launches so far.
    pub trials: u32,
    /// Median time, milliseconds.
    pub median_ms: f64,
    /// Lower end of the median's 95 % confidence interval, milliseconds.
    pub ci_lower_ms: f64,
    /// Upper end of the median's 95 % confidence interval, milliseconds.
    pub ci_upper_ms: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_names_a_stage_of_that_state() {
        for state in JobState::ALL {
            let stage = state.stage();
            match state {
                // It is unknown what such a job waits for.
                JobState::Queued => assert_eq!(stage, JobStage::Waiting),
                state if state.is_end() => assert_eq!(stage.state(), None),
                state => assert_eq!(stage.state(), Some(state)),
            }
        }
    }
}
