//! Wire types of the answer to a comparison. The main type is [`CompareResponse`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    DeviceReport, EvaluateResponse, KernelExecResult, KernelVerdict, ResponseStatus, RuntimeStats,
    Timings,
};
use warpgauge_code::listing::CodeDiff;
use warpgauge_contract::{MatrixUsed, RequestWarning, TensorUsed};
use warpgauge_statistics::paired::{PairedComparison, Ranking};
use warpgauge_statistics::{CountedComparison, CountedRank};

/// The report of a comparison. `ref_runtime` and `kernel_exec_result` have the names and meaning of
/// the CUDA Evaluation Server's response.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CompareResponse {
    /// Identifies the job at `/jobs/{job_id}`.
    pub job_id: String,
    /// `success`: the comparison ran to an end, whatever its verdict.
    pub status: ResponseStatus,
    /// The verdict on the candidates, the worst of theirs. Which is faster does not matter here. Absent
    /// in reports that earlier versions stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<KernelVerdict>,
    /// Statistics of the reference's launch times, milliseconds; the placeholder has zeros.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ref_runtime: Option<RuntimeStats>,
    /// Verdict and times of `custom_kernel`, or of the first candidate.
    pub kernel_exec_result: KernelExecResult,
    /// Product name of the device; the placeholder is `CPU`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<String>,
    /// Name of the host that answers, beside placeholders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_name: Option<String>,
    /// Address at which the caller reached the host that answers, beside placeholders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_ip: Option<String>,
    /// The device that ran the kernels. Absent where the CPU did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceReport>,
    /// What verdicts and ranks rest on: times on a GPU, counts on the emulated device, nothing
    /// for torch kernels on the CPU.
    #[serde(default)]
    pub verdict_by: VerdictBy,
    /// `custom_kernel`, or the first candidate, side by side with the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<PairedComparison>,
    /// Why there is no comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<String>,
    /// The sparse matrices that the contract named, and what was under these names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matrices: Vec<MatrixUsed>,
    /// The shared tensors that the contract named, as they were copied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tensors: Vec<TensorUsed>,
    /// What the request had that is ignored, and what it lacked that was filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<RequestWarning>,
    /// Order of the reference (index 0) and those candidates (from index 1) that were compared,
    /// where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranking: Option<Ranking>,
    /// `custom_kernel`, or the first candidate, beside the reference in counts of one launch, on the
    /// emulated device. It says nothing of times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<CountedComparison>,
    /// On the emulated device: order of the reference (index 0) and those candidates (from index 1)
    /// that are right, where there are several, by their counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counted_ranking: Vec<CountedRank>,
    /// The reference's own evaluation.
    pub reference: EvaluateResponse,
    /// Each candidate, in the order of the request.
    pub candidates: Vec<CandidateReport>,
    /// Where the wall-clock time went, all runs together, milliseconds.
    pub timings: Timings,
}

impl CompareResponse {
    /// Returns the verdict on the candidates: the stored one, or else the worst of theirs.
    pub fn kernel_verdict(&self) -> KernelVerdict {
        self.verdict.unwrap_or_else(|| CandidateReport::worst(&self.candidates))
    }

    /// Returns the evaluation that represents the comparison in lists of jobs: that of the first
    /// candidate.
    pub fn first_evaluation(&self) -> EvaluateResponse {
        let mut report = self.candidates[0].evaluation.clone();
        report.timings = self.timings;
        report
    }
}

/// What verdicts rest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VerdictBy {
    /// Times, side by side: `comparison` and `ranking`.
    #[default]
    Times,
    /// Exact counts of one launch: `counted` and `counted_ranking`. They say nothing of times.
    Counts,
    /// Nothing: torch kernels on the CPU, and kernels beside them, are found right or wrong. Times of the CPU rank
    /// nothing.
    Nothing,
}

/// One candidate of a comparison.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CandidateReport {
    /// Its name; `custom` for `custom_kernel`.
    pub name: String,
    /// Its own evaluation.
    pub evaluation: EvaluateResponse,
    /// Side by side with the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<PairedComparison>,
    /// Why there is no comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<String>,
    /// Whether it is the reference's machine code, but for names. Absent where that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identical_code: Option<bool>,
    /// Whether it was not measured because its image, to the last byte that bears on how it runs,
    /// and its launch are the reference's; its outputs were checked all the same.
    #[serde(default)]
    pub same_image: bool,
    /// Beside the reference in counts of one launch, on the emulated device. It says nothing of
    /// times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<CountedComparison>,
    /// How its code differs from the reference's. Absent where it is the same machine code, and
    /// where `no_code_diff` says why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_diff: Option<CodeDiff>,
    /// Why the codes cannot be compared, and what would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_code_diff: Option<String>,
    /// Deterministic counts of one launch beside the reference's, on the emulated device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<CountComparison>,
}

impl CandidateReport {
    /// Returns the worst verdict on these kernels.
    pub fn worst(candidates: &[CandidateReport]) -> KernelVerdict {
        let verdicts = candidates.iter().map(|one| one.evaluation.kernel_verdict());
        verdicts.max().unwrap_or(KernelVerdict::Error)
    }
}

/// A count of both kernels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountComparison {
    /// What was counted, by the emulator's name.
    pub count: String,
    /// The reference's.
    pub reference: u64,
    /// The candidate's.
    pub candidate: u64,
    /// Candidate over reference; absent where the reference has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
}
