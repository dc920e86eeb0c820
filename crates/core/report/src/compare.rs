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

/// Report of a comparison. `ref_runtime` and `kernel_exec_result` have the names and meaning of the CUDA Evaluation
/// Server's response.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CompareResponse {
    /// Id of the job, at `/jobs/{job_id}`.
    pub job_id: String,
    /// `success` if the comparison ran to its end, whatever the verdict.
    pub status: ResponseStatus,
    /// Worst verdict on the correctness of a candidate. It does not depend on which kernel is faster. Absent in
    /// reports that earlier versions stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<KernelVerdict>,
    /// Statistics of the reference's launch times, milliseconds. The placeholder has zeros.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ref_runtime: Option<RuntimeStats>,
    /// Correctness and times of `custom_kernel`, or of the first candidate.
    pub kernel_exec_result: KernelExecResult,
    /// Product name of the device. The placeholder is `CPU`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<String>,
    /// Name of the host that answers. Absent in an answer without placeholders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_name: Option<String>,
    /// Address at which the caller reached the host that answers. Absent in an answer without placeholders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_ip: Option<String>,
    /// Device that ran the kernels. Absent for torch kernels on the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceReport>,
    /// Basis of the verdicts and ranks: times on a GPU, counts on the emulated device, or nothing for torch kernels
    /// on the CPU.
    #[serde(default)]
    pub verdict_by: VerdictBy,
    /// Comparison of the times of `custom_kernel`, or of the first candidate, with the reference's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<PairedComparison>,
    /// Reason why the times were not compared. Absent if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<String>,
    /// Sparse matrices that the contract names, with the content that was used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matrices: Vec<MatrixUsed>,
    /// Shared tensors that the contract names, with the content that was copied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tensors: Vec<TensorUsed>,
    /// Fields of the request that are ignored, and fields that were missing and were filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<RequestWarning>,
    /// Ranking by time of the reference (index 0) and of the candidates whose times were compared
    /// (from index 1). Absent if only two kernels were compared, for torch kernels, and if no times
    /// were compared, as on the emulated device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranking: Option<Ranking>,
    /// Comparison of the counts of one launch of `custom_kernel`, or of the first candidate, with
    /// the reference's, on the emulated device. Counts say nothing about times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<CountedComparison>,
    /// Ranking by counts, on the emulated device, of the reference (index 0) and of the correct
    /// candidates (from index 1). Absent if only two kernels were compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counted_ranking: Vec<CountedRank>,
    /// Evaluation of the reference.
    pub reference: EvaluateResponse,
    /// Candidates, in the order of the request.
    pub candidates: Vec<CandidateReport>,
    /// Wall-clock time by stage, all runs together, milliseconds.
    pub timings: Timings,
}

impl CompareResponse {
    /// Returns the verdict on the candidates: the stored one, or else the worst of all candidates.
    pub fn kernel_verdict(&self) -> KernelVerdict {
        self.verdict.unwrap_or_else(|| CandidateReport::worst(&self.candidates))
    }

    /// Returns the evaluation that represents the comparison in lists of jobs. It is the evaluation
    /// of the first candidate.
    pub fn first_evaluation(&self) -> EvaluateResponse {
        let mut report = self.candidates[0].evaluation.clone();
        report.timings = self.timings;
        report
    }
}

/// Basis of the verdicts and ranks of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VerdictBy {
    /// Times, measured side by side: `comparison` and `ranking`.
    #[default]
    Times,
    /// Exact counts of one launch: `counted` and `counted_ranking`. Counts say nothing about times.
    Counts,
    /// Nothing. Torch kernels on the CPU, and kernels that are compared with them, get only a
    /// verdict on correctness. Times of the CPU are not ranked.
    Nothing,
}

/// Candidate of a comparison.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CandidateReport {
    /// Name of the candidate; `custom` for `custom_kernel`.
    pub name: String,
    /// Separate evaluation of the candidate.
    pub evaluation: EvaluateResponse,
    /// Comparison of the candidate's times with the reference's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<PairedComparison>,
    /// Reason why the times were not compared. Absent if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<String>,
    /// Whether the candidate has the same machine code as the reference, apart from names. Absent if the codes cannot
    /// be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identical_code: Option<bool>,
    /// Whether the candidate was not timed because its image and launch are identical to the reference's. The images
    /// then agree in every byte that affects execution. The outputs were checked nevertheless.
    #[serde(default)]
    pub same_image: bool,
    /// Comparison of the counts of one launch with the reference's, on the emulated device. Counts
    /// say nothing about times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<CountedComparison>,
    /// Differences between the code of the candidate and that of the reference. Absent if both have the same machine
    /// code, or if `no_code_diff` gives a reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_diff: Option<CodeDiff>,
    /// Reason why the codes cannot be compared, with a remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_code_diff: Option<String>,
    /// Deterministic counts of one launch of the candidate and of the reference, on the emulated
    /// device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<CountComparison>,
}

impl CandidateReport {
    /// Returns the worst verdict on these candidates.
    pub fn worst(candidates: &[CandidateReport]) -> KernelVerdict {
        let verdicts = candidates.iter().map(|one| one.evaluation.kernel_verdict());
        verdicts.max().unwrap_or(KernelVerdict::Error)
    }
}

/// Count of one launch of the reference and of the candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountComparison {
    /// Name of the count in the emulated device.
    pub count: String,
    /// Count of the reference.
    pub reference: u64,
    /// Count of the candidate.
    pub candidate: u64,
    /// Count of the candidate divided by that of the reference. Absent if the reference's count is
    /// 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
}
