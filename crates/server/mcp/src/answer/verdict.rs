//! Verdicts of answers. The main type is [`Verdict`].

use schemars::JsonSchema;
use serde::Serialize;

use warpgauge_report::KernelVerdict;
use warpgauge_statistics::CountedVerdict;
use warpgauge_statistics::paired::PairedVerdict;

/// What came of a call: the verdict on a kernel as every other answer has it, or what else there is to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// Every output is right.
    Correct,
    /// One is not.
    Wrong,
    /// The kernel does not compile.
    NotCompiled,
    /// It passes, but a useless one would pass too.
    Weak,
    /// It crashed, hung or ran out of something.
    Failed,
    /// It ran; the contract does not say what its outputs must be.
    NotChecked,
    /// There is no verdict: the machine lacks something.
    Error,
    /// Faster than the reference.
    Faster,
    /// Slower.
    Slower,
    /// As fast.
    Same,
    /// Neither could be shown.
    Inconclusive,
    /// Less work than the reference, counted.
    LessWork,
    /// More.
    MoreWork,
    /// As much.
    SameWork,
    /// More of one kind and less of another.
    MixedWork,
    /// Right, and not compared.
    NotCompared,
    /// The job ended, and its report has the rest.
    Completed,
    /// The job goes on.
    Running,
    /// The job was cancelled.
    Cancelled,
    /// The job ended without a report.
    JobFailed,
    /// Nothing was done.
    Refused,
}

impl Verdict {
    /// Name at the beginning of an answer.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Correct => "CORRECT",
            Self::Wrong => "WRONG",
            Self::NotCompiled => "NOT COMPILED",
            Self::Weak => "WEAK",
            Self::Failed => "FAILED",
            Self::NotChecked => "NOT CHECKED",
            Self::Error => "ERROR",
            Self::Faster => "FASTER",
            Self::Slower => "SLOWER",
            Self::Same => "SAME",
            Self::Inconclusive => "INCONCLUSIVE",
            Self::LessWork => "LESS WORK",
            Self::MoreWork => "MORE WORK",
            Self::SameWork => "SAME WORK",
            Self::MixedWork => "MIXED WORK",
            Self::NotCompared => "NOT COMPARED",
            Self::Completed => "COMPLETED",
            Self::Running => "RUNNING",
            Self::Cancelled => "CANCELLED",
            Self::JobFailed => "JOB FAILED",
            Self::Refused => "REFUSED",
        }
    }
}

impl From<KernelVerdict> for Verdict {
    fn from(verdict: KernelVerdict) -> Self {
        match verdict {
            KernelVerdict::Correct => Self::Correct,
            KernelVerdict::NotChecked => Self::NotChecked,
            KernelVerdict::Weak => Self::Weak,
            KernelVerdict::Wrong => Self::Wrong,
            KernelVerdict::Failed => Self::Failed,
            KernelVerdict::NotCompiled => Self::NotCompiled,
            KernelVerdict::Error => Self::Error,
        }
    }
}

impl From<PairedVerdict> for Verdict {
    fn from(verdict: PairedVerdict) -> Self {
        match verdict {
            PairedVerdict::Faster => Self::Faster,
            PairedVerdict::Slower => Self::Slower,
            PairedVerdict::Same => Self::Same,
            PairedVerdict::Inconclusive => Self::Inconclusive,
        }
    }
}

impl From<CountedVerdict> for Verdict {
    fn from(verdict: CountedVerdict) -> Self {
        match verdict {
            CountedVerdict::LessWork => Self::LessWork,
            CountedVerdict::SameWork => Self::SameWork,
            CountedVerdict::MoreWork => Self::MoreWork,
            CountedVerdict::Mixed => Self::MixedWork,
        }
    }
}
