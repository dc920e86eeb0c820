//! Orders for an executor, and their outcomes.

use serde::{Deserialize, Serialize};

use warpgauge_contract::{
    CompareRequest, EvaluateRequest, MatrixUsed, RequestWarning, SweepRequest, TensorUsed,
};
use warpgauge_gate::report::{GateReport, WorstCase};
use warpgauge_gate::{GatePlan, SuiteVerdict};
use warpgauge_model::{FailureCode, JobKind, Requirements};
use warpgauge_report::{
    CompareResponse, EvaluateResponse, KernelExecResult, KernelVerdict, SweepResponse,
};
use warpgauge_turns::Owner;

/// An order for an executor. It can be sent to an executor on any machine as MessagePack, which
/// preserves every bit of a number.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkOrder {
    /// Identifies the job in reports and logs.
    pub id: String,
    pub work: JobWork,
    /// Requirements that the executor must meet.
    pub requires: Requirements,
    /// Maximum number of points of a sweep that run at the same time, at least 1.
    pub lanes: usize,
    /// Owner that the order is charged to.
    #[serde(default)]
    pub owner: Owner,
}

/// The work of a job, of any kind. `G` is the work of a gate. For an executor it is the gate's
/// plan, which contains the baseline. For a service it is the request, which may name a stored
/// baseline.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobWork<G = GatePlan> {
    /// Verification and timing of a kernel.
    Evaluate(Box<EvaluateRequest>),
    /// One untimed run that returns the outputs.
    Execute(Box<EvaluateRequest>),
    /// Comparison of kernels with a reference.
    Compare(Box<CompareRequest>),
    /// Evaluation of one contract at every point of its axes.
    Sweep(Box<SweepRequest>),
    /// Comparison of a suite with its baseline.
    Gate(Box<G>),
}

impl<G> JobWork<G> {
    /// Returns the kind of the job.
    pub fn kind(&self) -> JobKind {
        match self {
            Self::Evaluate(_) => JobKind::Evaluate,
            Self::Execute(_) => JobKind::Execute,
            Self::Compare(_) => JobKind::Compare,
            Self::Sweep(_) => JobKind::Sweep,
            Self::Gate(_) => JobKind::Gate,
        }
    }

    /// Converts the work of a service to that of an executor.
    ///
    /// # Errors
    /// Returns the work of a gate, which must be planned first.
    pub fn planned(self) -> Result<JobWork, Box<G>> {
        Ok(match self {
            Self::Evaluate(request) => JobWork::Evaluate(request),
            Self::Execute(request) => JobWork::Execute(request),
            Self::Compare(request) => JobWork::Compare(request),
            Self::Sweep(request) => JobWork::Sweep(request),
            Self::Gate(gate) => return Err(gate),
        })
    }
}

/// The outcome of an order. Like an order, it can be sent to another machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobOutcome {
    /// Outcome of [`JobWork::Evaluate`] and [`JobWork::Execute`].
    Evaluated(Box<EvaluateResponse>),
    /// Outcome of [`JobWork::Compare`].
    Compared(Box<CompareResponse>),
    /// Outcome of [`JobWork::Sweep`].
    Swept(Box<SweepResponse>),
    /// Outcome of [`JobWork::Gate`].
    Gated(Box<GateReport>),
}

impl JobOutcome {
    /// Adds the matrices that the request used. Points of a sweep report their own matrices.
    pub fn with_matrices(mut self, matrices: Vec<MatrixUsed>) -> Self {
        match &mut self {
            Self::Evaluated(report) => report.matrices = matrices,
            Self::Compared(report) => report.matrices = matrices,
            Self::Gated(report) => report.matrices = matrices,
            Self::Swept(_) => (),
        }
        self
    }

    /// Adds the shared tensors that the request used. Points of a sweep report their own tensors.
    pub fn with_tensors(mut self, tensors: Vec<TensorUsed>) -> Self {
        match &mut self {
            Self::Evaluated(report) => report.tensors = tensors,
            Self::Compared(report) => report.tensors = tensors,
            Self::Gated(report) => report.tensors = tensors,
            Self::Swept(_) => (),
        }
        self
    }

    /// Adds the warnings about fields that were ignored or filled in when the request was read.
    pub fn with_warnings(mut self, warnings: Vec<RequestWarning>) -> Self {
        match &mut self {
            Self::Evaluated(report) => report.warnings = warnings,
            Self::Compared(report) => report.warnings = warnings,
            Self::Gated(_) | Self::Swept(_) => (),
        }
        self
    }

    /// Returns whether the job ended because the service shut down, not because of the kernel.
    pub fn was_stopped(&self) -> bool {
        let stopped = |report: &EvaluateResponse| {
            report.failure.as_ref().is_some_and(|failure| failure.code == FailureCode::ShuttingDown)
        };
        match self {
            Self::Evaluated(report) => stopped(report),
            Self::Compared(report) => {
                stopped(&report.reference)
                    || report.candidates.iter().any(|one| stopped(&one.evaluation))
            }
            Self::Swept(_) | Self::Gated(_) => false,
        }
    }

    /// Returns the verdict on the kernel, or the worst verdict on several kernels; `None` if no
    /// kernel ran.
    pub fn verdict(&self) -> Option<KernelVerdict> {
        match self {
            Self::Evaluated(report) => Some(report.kernel_verdict()),
            Self::Compared(report) => Some(report.kernel_verdict()),
            Self::Swept(answer) => answer.verdict,
            Self::Gated(report) => report.cases.iter().filter_map(|one| one.kernel_verdict).max(),
        }
    }

    /// Returns the verdict on the suite of a gate.
    pub fn decision(&self) -> Option<SuiteVerdict> {
        self.gated().map(|report| report.verdict)
    }

    /// Returns the worst case of a gate.
    pub fn worst_case(&self) -> Option<WorstCase> {
        self.gated().and_then(WorstCase::of)
    }

    fn gated(&self) -> Option<&GateReport> {
        match self {
            Self::Gated(report) => Some(report),
            Self::Evaluated(_) | Self::Compared(_) | Self::Swept(_) => None,
        }
    }

    /// Returns the result for the kernel, or for the first candidate.
    fn kernel_result(&self) -> Option<&KernelExecResult> {
        match self {
            Self::Evaluated(report) => Some(&report.kernel_exec_result),
            Self::Compared(report) => {
                report.candidates.first().map(|one| &one.evaluation.kernel_exec_result)
            }
            Self::Swept(_) | Self::Gated(_) => None,
        }
    }

    /// Returns the name of the kernel, or of the first candidate.
    pub fn kernel(&self) -> Option<&str> {
        self.kernel_result()?.metadata.kernel_name.as_deref()
    }

    /// Returns the median time of the kernel or of the first candidate, milliseconds.
    pub fn median_ms(&self) -> Option<f64> {
        self.kernel_result()?.runtime_stats.as_ref().map(|stats| stats.median)
    }

    /// Returns the report of the kernel or of the first candidate. `None` for a sweep and for a
    /// gate.
    pub fn evaluation(&self) -> Option<EvaluateResponse> {
        match self {
            Self::Evaluated(report) => Some((**report).clone()),
            Self::Compared(report) => Some(report.first_evaluation()),
            Self::Swept(_) | Self::Gated(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Debug;

    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};
    use warpgauge_gate::GateRequest;

    use super::*;

    /// Returns a value after it was serialised and deserialised.
    fn sent<T: Serialize + DeserializeOwned>(value: &T) -> T {
        rmp_serde::from_slice(&rmp_serde::to_vec_named(value).unwrap()).unwrap()
    }

    fn assert_travels<T: Serialize + DeserializeOwned + Debug>(value: &T) {
        assert_eq!(format!("{:?}", sent(value)), format!("{value:?}"));
    }

    fn contract() -> Value {
        json!({"kernel": {
            "source_code": "extern \"C\" __global__ void k(float* x, float a) { *x = a; }",
            "kernel_type": "cuda",
            "metadata": {"kernel_name": "k"},
            "io": {
                "args": [
                    {"name": "x", "type": "tensor", "role": "output",
                     "tensor_spec": {"shape": [1], "dtype": "float32"}},
                    {"name": "a", "type": "float", "value": 0.1, "role": "input"},
                ],
                "launch": {"grid": {"x": 1}, "block": {"x": 32}},
            },
        }})
    }

    fn of<T: DeserializeOwned>(value: Value) -> Box<T> {
        Box::new(serde_json::from_value(value).unwrap())
    }

    #[test]
    fn an_order_arrives_as_it_was_sent() {
        let kernel = contract()["kernel"].clone();
        let comparison = json!({"ref_kernel": kernel, "custom_kernel": kernel});
        let mut sweep = contract();
        sweep["axes"] = json!({"n": [1, 2]});
        let suite = json!({
            "suite": "s",
            "cases": [
                {"name": "both", "contract": contract(), "baseline": contract()},
                {"name": "new", "contract": contract(), "metric": "warp_instructions"},
            ],
        });
        let plan = of::<GateRequest>(suite).plan(None).unwrap();
        let works = [
            JobWork::Evaluate(of(contract())),
            JobWork::Execute(of(contract())),
            JobWork::Compare(of(comparison)),
            JobWork::Sweep(of(sweep)),
            JobWork::Gate(Box::new(plan)),
        ];
        for work in works {
            let requires = Requirements {
                gpu_model: Some("H200".to_owned()),
                tools: BTreeSet::from(["ncu".to_owned()]),
                ..Requirements::default()
            };
            let (id, owner) = ("job".to_owned(), Owner::named("a"));
            assert_travels(&WorkOrder { id, work, requires, lanes: 3, owner });
        }
    }

    #[test]
    fn an_outcome_arrives_as_it_was_sent() {
        let text = include_str!("../../../../openapi/examples/report.json");
        let report: Value = serde_json::from_str(text).unwrap();
        assert_travels(&JobOutcome::Evaluated(of(report.clone())));
        let text = include_str!("../../../../openapi/examples/comparison.json");
        let comparison: Value = serde_json::from_str(text).unwrap();
        let candidate = json!({
            "name": "custom", "identical_code": false, "evaluation": report,
            "comparison": comparison,
        });
        let compared = json!({
            "job_id": "1", "status": "success", "device": report["device"],
            "kernel_exec_result": report["kernel_exec_result"], "timings": report["timings"],
            "comparison": comparison, "reference": report, "candidates": [candidate],
        });
        assert_travels(&JobOutcome::Compared(of(compared)));
        let report: SweepResponse =
            serde_json::from_str(include_str!("../../../../openapi/examples/sweep.json")).unwrap();
        assert_travels(&JobOutcome::Swept(Box::new(report)));
        let report: GateReport =
            serde_json::from_str(include_str!("../../../../openapi/examples/gate.json")).unwrap();
        assert_travels(&JobOutcome::Gated(Box::new(report)));
    }
}
