//! The plan of a gate run: a suite with the code of both sides and its settings. The main type is
//! [`GatePlan`].

use serde::{Deserialize, Serialize};

use super::report::BaselineReport;
use super::{
    BaselinePin, Calibration, CaseEvidence, CasePair, CasePolicy, CaseSpec, MeasuredCase,
    OnMissing, with_calibration,
};
use warpgauge_contract::EvaluateRequest;
use warpgauge_model::{PresetName, Regime};

/// Maximum expected share of false results among the advisory cases that are reported as slower.
pub const ADVISORY_RATE: f64 = 0.05;

/// A suite with the code of both sides, ready for measuring.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GatePlan {
    /// The suite's name in the report.
    pub suite: String,
    /// Preset of the measurement.
    pub preset: PresetName,
    /// Effect of a case that the candidate lacks.
    pub on_missing: OnMissing,
    /// Cases: those of the suite in its order, then those that only the baseline has.
    pub cases: Vec<PlannedCase>,
    /// Origin of the baseline.
    pub baseline: BaselineReport,
    /// Conditions to which the baseline is pinned, if any.
    pub pin: Option<BaselinePin>,
    /// Calibration of the cases.
    pub calibration: Option<Calibration>,
    /// Whether kernels with identical images and launches are measured.
    pub measure_identical: bool,
    /// Commit of the candidate, if known.
    pub commit: Option<String>,
    /// Branch of the candidate, if known; plans of older versions have none.
    #[serde(default)]
    pub branch: Option<String>,
    /// Notes for the report.
    pub notes: Vec<String>,
}

/// A case with its code.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlannedCase {
    pub spec: CaseSpec,
    /// Code of the sides that have the case.
    pub code: CaseCode,
}

/// The code of a case, for the sides that have it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaseCode {
    /// Baseline and candidate.
    Both(Box<CasePair>),
    /// Only the candidate, which is checked without a comparison.
    New {
        contract: Box<EvaluateRequest>,
        /// Description of what the baseline lacks.
        why: String,
    },
    /// Only the baseline. The text describes a remedy.
    Removed(String),
}

impl PlannedCase {
    /// Returns the contract of the candidate; `None` if the candidate has removed the case.
    pub fn candidate(&self) -> Option<&EvaluateRequest> {
        match &self.code {
            CaseCode::Both(sides) => Some(&sides.candidate),
            CaseCode::New { contract, .. } => Some(contract),
            CaseCode::Removed(_) => None,
        }
    }

    /// Returns a note about the parts of the candidate's contract that the gate does not use.
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
    /// Returns the cases in their state before any measurement.
    pub fn unmeasured(&self) -> Vec<MeasuredCase> {
        let case = |planned: &PlannedCase| {
            let spec = planned.spec.clone();
            let calibrated = self.calibration.as_ref().and_then(|all| all.cases.get(&spec.name));
            let why = match &planned.code {
                CaseCode::Removed(why) => CaseEvidence::Missing(why.clone()),
                CaseCode::Both(_) | CaseCode::New { .. } => {
                    CaseEvidence::Error("the run ended before this case".to_owned())
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

/// Returns the error probability for the first comparison of each case: α divided by the number of
/// cases that may fail the suite. For an advisory case it is [`ADVISORY_RATE`] divided by the
/// number of advisory cases.
pub fn first_alphas(policies: &[CasePolicy]) -> Vec<f64> {
    let advisory = policies.iter().filter(|policy| policy.advisory).count();
    let family = policies.len() - advisory;
    let alpha = |policy: &CasePolicy| match policy.advisory {
        true => ADVISORY_RATE / advisory as f64,
        false => policy.alpha / family as f64,
    };
    policies.iter().map(alpha).collect()
}
