//! Verdicts of answers. The main type is [`Verdict`].

use schemars::JsonSchema;
use serde::Serialize;

use warpgauge_report::KernelVerdict;
use warpgauge_statistics::CountedVerdict;
use warpgauge_statistics::paired::PairedVerdict;

/// Result of a call: the verdict on a kernel, or the state of its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// Every checked output is correct.
    Correct,
    /// An output is wrong, or another check failed.
    Wrong,
    /// The kernel does not compile.
    NotCompiled,
    /// The kernel passes, but a useless kernel would pass too.
    Weak,
    /// The kernel crashed, hung or ran out of a resource.
    Failed,
    /// The kernel ran, and the contract contains no expectation.
    NotChecked,
    /// There is no verdict, because of a problem of the service or the machine.
    Error,
    /// The candidate is faster than the reference.
    Faster,
    /// The candidate is slower than the reference.
    Slower,
    /// The candidate is as fast as the reference.
    Same,
    /// The measurement shows neither that the candidate is faster or slower nor that it is as fast.
    Inconclusive,
    /// The candidate does less counted work than the reference.
    LessWork,
    /// The candidate does more counted work than the reference.
    MoreWork,
    /// The candidate does as much counted work as the reference.
    SameWork,
    /// The candidate does more work of one kind and less of another.
    MixedWork,
    /// The candidate is correct, but was not compared.
    NotCompared,
    /// The job has ended with a report.
    Completed,
    /// The job is running.
    Running,
    /// The job was cancelled.
    Cancelled,
    /// The job ended without a report.
    JobFailed,
    /// The request was rejected.
    Refused,
}

impl Verdict {
    /// Returns the words with which an answer begins.
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
