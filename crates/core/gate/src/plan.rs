//! What a run of the gate is to do: a suite, the code of both sides, and what it rests on.

use serde::{Deserialize, Serialize};

use super::report::BaselineReport;
use super::{
    BaselinePin, Calibration, CaseEvidence, CasePair, CasePolicy, CaseSpec, MeasuredCase,
    OnMissing, with_calibration,
};
use warpgauge_contract::EvaluateRequest;
use warpgauge_model::{PresetName, Regime};

/// Share of wrong calls among the advisory cases that are called slower, at most.
pub const ADVISORY_RATE: f64 = 0.05;

/// A suite with the code of both sides, ready to be measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GatePlan {
    /// The suite's name in the report.
    pub suite: String,
    /// How much time to spend on precision.
    pub preset: PresetName,
    /// What a case is that the candidate lacks.
    pub on_missing: OnMissing,
    /// The cases: those of the suite in its order, then those that only the baseline has.
    pub cases: Vec<PlannedCase>,
    /// What the candidate is compared with.
    pub baseline: BaselineReport,
    /// What the baseline is pinned to, if it is.
    pub pin: Option<BaselinePin>,
    /// What the cases showed against themselves.
    pub calibration: Option<Calibration>,
    /// Whether kernels that are the same image with the same launch are measured.
    pub measure_identical: bool,
    /// Commit of the candidate, where it is known.
    pub commit: Option<String>,
    /// What to know besides.
    pub notes: Vec<String>,
}

/// A case, and its code.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlannedCase {
    /// The case.
    pub spec: CaseSpec,
    /// Which sides have it.
    pub code: CaseCode,
}

/// The code of a case, on the sides that have it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaseCode {
    /// Baseline and candidate.
    Both(Box<CasePair>),
    /// The candidate alone: it is checked on its own.
    New {
        /// Its contract.
        contract: Box<EvaluateRequest>,
        /// What the baseline lacks.
        why: String,
    },
    /// The baseline alone, and what to do about it.
    Removed(String),
}

impl PlannedCase {
    /// The contract of the candidate, unless it has removed the case.
    pub fn candidate(&self) -> Option<&EvaluateRequest> {
        match &self.code {
            CaseCode::Both(sides) => Some(&sides.candidate),
            CaseCode::New { contract, .. } => Some(contract),
            CaseCode::Removed(_) => None,
        }
    }

    /// What of the candidate's contract the gate does not use, in words.
    pub fn unused(&self) -> Option<String> {
        match &self.code {
            CaseCode::Both(sides) => sides.unused(),
            CaseCode::New { contract, .. } => (contract.measure.regime != Regime::Isolated)
                .then(|| "the gate does not use `measure.regime`".to_owned()),
            CaseCode::Removed(_) => None,
        }
    }
}

impl GatePlan {
    /// The cases with nothing measured.
    pub fn unmeasured(&self) -> Vec<MeasuredCase> {
        let case = |planned: &PlannedCase| {
            let spec = planned.spec.clone();
            let calibrated = self.calibration.as_ref().and_then(|all| all.cases.get(&spec.name));
            let why = match &planned.code {
                CaseCode::Removed(why) => CaseEvidence::Missing(why.clone()),
                CaseCode::Both(_) | CaseCode::New { .. } => {
                    CaseEvidence::Error("it was not come to".to_owned())
                }
            };
            let mut case = MeasuredCase::unmeasured(spec, why);
            case.policy = with_calibration(case.policy, calibrated);
            case.calibrated = calibrated.cloned();
            case
        };
        self.cases.iter().map(case).collect()
    }
}

/// The error probability that the first comparison of each case is made with: α over the cases that
/// may fail the suite; of an advisory case [`ADVISORY_RATE`] over those.
pub fn first_alphas(policies: &[CasePolicy]) -> Vec<f64> {
    let advisory = policies.iter().filter(|policy| policy.advisory).count();
    let family = policies.len() - advisory;
    let alpha = |policy: &CasePolicy| match policy.advisory {
        true => ADVISORY_RATE / advisory as f64,
        false => policy.alpha / family as f64,
    };
    policies.iter().map(alpha).collect()
}
