//! What an executor is asked to do, and what comes of it.

use serde::{Deserialize, Serialize};

use warpgauge_contract::{CompareRequest, EvaluateRequest, MatrixUsed, SweepRequest, TensorUsed};
use warpgauge_gate::GatePlan;
use warpgauge_gate::report::GateReport;
use warpgauge_model::{FailureCode, JobKind, Requirements};
use warpgauge_report::{CompareResponse, EvaluateResponse, KernelVerdict, SweepResponse};
use warpgauge_turns::Owner;

/// Work that an executor takes to its outcome. It can travel: as MessagePack, which keeps every bit of a
/// number, wherever the executor is.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkOrder {
    /// Identifies the job in reports and logs.
    pub id: String,
    /// What is to be done.
    pub work: JobWork,
    /// What it requires of the executor.
    pub requires: Requirements,
    /// Points of a sweep that may be on their way at once, at least 1.
    pub lanes: usize,
    /// In whose turn it is carried out.
    #[serde(default)]
    pub owner: Owner,
}

/// What is to be done, of any kind of job. `G` is the part of the gate: for an executor its plan, which has the
/// baseline in it; for a service the request, which may name a stored one.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobWork<G = GatePlan> {
    /// A kernel's verdict and times.
    Evaluate(Box<EvaluateRequest>),
    /// One untimed run, for its outputs.
    Execute(Box<EvaluateRequest>),
    /// Kernels beside a reference.
    Compare(Box<CompareRequest>),
    /// One contract at every point of its axes.
    Sweep(Box<SweepRequest>),
    /// A suite against its baseline.
    Gate(Box<G>),
}

impl<G> JobWork<G> {
    /// The kind of its job.
    pub fn kind(&self) -> JobKind {
        match self {
            Self::Evaluate(_) => JobKind::Evaluate,
            Self::Execute(_) => JobKind::Execute,
            Self::Compare(_) => JobKind::Compare,
            Self::Sweep(_) => JobKind::Sweep,
            Self::Gate(_) => JobKind::Gate,
        }
    }

    /// The work for an executor.
    ///
    /// # Errors
    /// The part of the gate, which has to be planned first.
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

/// What came of it; it can travel like its order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobOutcome {
    /// Of [`JobWork::Evaluate`] and [`JobWork::Execute`].
    Evaluated(Box<EvaluateResponse>),
    /// Of [`JobWork::Compare`].
    Compared(Box<CompareResponse>),
    /// Of [`JobWork::Sweep`].
    Swept(Box<SweepResponse>),
    /// Of [`JobWork::Gate`].
    Gated(Box<GateReport>),
}

impl JobOutcome {
    /// With the matrices that stand in what was asked for. Points of a sweep tell of their own.
    pub fn with_matrices(mut self, matrices: Vec<MatrixUsed>) -> Self {
        match &mut self {
            Self::Evaluated(report) => report.matrices = matrices,
            Self::Compared(report) => report.matrices = matrices,
            Self::Gated(report) => report.matrices = matrices,
            Self::Swept(_) => (),
        }
        self
    }

    /// With the shared tensors whose content stands in what was asked for. Points of a sweep tell of their
    /// own.
    pub fn with_tensors(mut self, tensors: Vec<TensorUsed>) -> Self {
        match &mut self {
            Self::Evaluated(report) => report.tensors = tensors,
            Self::Compared(report) => report.tensors = tensors,
            Self::Gated(report) => report.tensors = tensors,
            Self::Swept(_) => (),
        }
        self
    }

    /// Whether the end of the service, and not of the kernel, ended it.
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

    /// The verdict on its kernel, or the worst on several; `None` where none was run.
    pub fn verdict(&self) -> Option<KernelVerdict> {
        match self {
            Self::Evaluated(report) => Some(report.kernel_verdict()),
            Self::Compared(report) => Some(report.kernel_verdict()),
            Self::Swept(answer) => answer.verdict,
            Self::Gated(report) => report.cases.iter().filter_map(|one| one.kernel_verdict).max(),
        }
    }

    /// The evaluation that stands for it where one is shown.
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

    /// What arrives of it where it is sent.
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
