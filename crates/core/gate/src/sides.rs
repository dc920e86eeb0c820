//! The code of a case on both sides, and the requests for its measurement. The main type is
//! [`CasePair`].

use serde::{Deserialize, Serialize};

use warpgauge_contract::{
    CompareRequest, DecisionSpec, EvaluateRequest, Isolation, ReturnOutputs, Sanitize,
};
use warpgauge_model::{PresetName, Regime, Requirements};

/// Number of timed launches if counts decide. Their purpose is to verify the kernel, not to time
/// it.
const COUNTED_TRIALS: u32 = 3;

/// The contract and kernel of a case on both sides.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CasePair {
    /// Contract before the change. Its kernel is the reference.
    pub baseline: EvaluateRequest,
    /// Contract after the change. The comparison uses its kernel and all its other settings.
    pub candidate: EvaluateRequest,
}

/// Settings of a comparison.
#[derive(Debug, Clone, Copy)]
pub struct ComparisonSettings {
    /// Preset of the measurement.
    pub preset: PresetName,
    /// Precision that the verdict needs.
    pub decision: DecisionSpec,
    /// Whether to use fresh processes, regardless of the contract.
    pub fresh: bool,
    /// Whether counts decide, so that precise times are not needed.
    pub counted: bool,
    /// Whether kernels with identical images and launches are measured.
    pub measure_identical: bool,
}

impl CasePair {
    /// Returns a pair of a contract and itself.
    pub fn itself(contract: EvaluateRequest) -> Self {
        Self { baseline: contract.clone(), candidate: contract }
    }

    /// Returns the comparison of the candidate's kernel with the baseline's. All other settings are
    /// from the candidate's contract.
    pub fn comparison(&self, manner: &ComparisonSettings) -> CompareRequest {
        let candidate = self.candidate.clone();
        let tolerance = candidate.tolerance.unwrap_or_default();
        let mut measure = candidate.measure;
        measure.preset = manner.preset;
        measure.regime = Regime::Isolated;
        let mut num_trials = candidate.num_trials;
        if manner.counted {
            measure.min_warmup_time = Some(0.0);
            num_trials = Some(COUNTED_TRIALS);
        }
        CompareRequest {
            ref_kernel: self.baseline.kernel.clone(),
            custom_kernel: Some(candidate.kernel),
            candidates: Vec::new(),
            num_trials,
            timeout: candidate.timeout,
            atol: tolerance.atol,
            rtol: tolerance.rtol,
            required_matched_ratio: tolerance.required_matched_ratio,
            allow_non_finite: tolerance.allow_non_finite,
            compare_as: candidate.compare_as,
            allow_weak: candidate.allow_weak,
            work: candidate.work,
            measure,
            isolation: if manner.fresh { Isolation::Fresh } else { candidate.isolation },
            requires: candidate.requires,
            profile: None,
            decision: Some(manner.decision),
            measure_identical: manner.measure_identical,
            matrices: Vec::new(),
            tensors: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Returns the candidate's requirements for the device.
    pub fn requires(&self) -> &Requirements {
        &self.candidate.requires
    }

    /// Returns the candidate's contract with the baseline's kernel.
    pub fn baseline_as_candidate(&self) -> EvaluateRequest {
        let mut kernel = self.baseline.kernel.clone();
        if let Some(io) = &self.candidate.kernel.io {
            kernel = kernel.as_reference(io, self.candidate.kernel.kernel_type);
        }
        EvaluateRequest { kernel, ..self.candidate.clone() }
    }

    /// Returns a note about the parts of the candidate's contract that a comparison does not use.
    pub fn unused(&self) -> Option<String> {
        let contract = &self.candidate;
        let fields = [
            ("keep_outputs", !contract.keep_outputs.is_empty()),
            ("measure.regime", contract.measure.regime != Regime::Isolated),
            ("profile", contract.profile.is_some()),
            ("return_outputs", contract.return_outputs != ReturnOutputs::None),
            ("sanitize", contract.sanitize != Sanitize::Off),
        ];
        let used = fields.iter().filter(|(_, there)| *there);
        let names = used.map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>();
        (!names.is_empty()).then(|| format!("a comparison does not use {}", names.join(", ")))
    }
}

/// Returns the evaluation of a case without a baseline: the kernel is compiled, run, and checked
/// against its contract. If `timed` is true, it is also timed for the history.
pub fn alone(
    contract: &EvaluateRequest,
    manner: &ComparisonSettings,
    timed: bool,
) -> EvaluateRequest {
    let mut request = contract.clone();
    request.measure.preset = manner.preset;
    // The regime is the same as in comparisons, so that times of a case are comparable.
    request.measure.regime = Regime::Isolated;
    if manner.counted || !timed {
        request.measure.min_warmup_time = Some(0.0);
        request.num_trials = Some(COUNTED_TRIALS);
    }
    if !timed {
        request.sanitize = Sanitize::Off;
    }
    request.profile = None;
    request.return_outputs = ReturnOutputs::None;
    request.keep_outputs.clear();
    request
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn contract(more: serde_json::Value) -> EvaluateRequest {
        let mut contract = json!({"kernel": {"kernel_type": "ptx", "source_code": "x"}});
        contract.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(contract).unwrap()
    }

    fn manner(counted: bool, fresh: bool) -> ComparisonSettings {
        ComparisonSettings {
            preset: PresetName::Ci,
            decision: DecisionSpec::default(),
            fresh,
            counted,
            measure_identical: false,
        }
    }

    #[test]
    fn all_but_the_kernel_is_the_candidates() {
        let baseline = contract(json!({"timeout": 1.0, "num_trials": 7}));
        let own = json!({"timeout": 2.0, "num_trials": 9, "tolerance": {"rtol": 0.5},
            "measure": {"preset": "quick", "cache": "hot"}});
        let mut candidate = contract(own);
        candidate.kernel.source_code = Some("y".to_owned());
        let sides = CasePair { baseline, candidate };
        let made = sides.comparison(&manner(false, false));
        assert_eq!(made.ref_kernel.source_code.as_deref(), Some("x"));
        assert_eq!(made.custom_kernel.unwrap().source_code.as_deref(), Some("y"));
        assert_eq!((made.timeout, made.num_trials), (2.0, Some(9)));
        assert_eq!((made.atol, made.rtol), (None, Some(0.5)));
        assert_eq!(made.measure.preset, PresetName::Ci);
        assert!(!made.measure_identical);
        let counted = sides.comparison(&manner(true, true));
        assert_eq!((counted.num_trials, counted.isolation), (Some(3), Isolation::Fresh));
    }

    /// A change may move a kernel to another language. Each side keeps the arguments specific to
    /// its language.
    #[test]
    fn the_baseline_takes_the_candidates_arguments_but_no_constants_of_another_language() {
        let n = json!({"name": "n", "type": "int", "value": 1});
        let block = json!({"name": "BLOCK", "type": "int", "value": 8, "is_meta": true});
        let kernel = |kind: &str, args: serde_json::Value, launch: serde_json::Value| {
            let io = json!({"args": args, "launch": launch});
            contract(json!({"kernel": {"kernel_type": kind, "source_code": "x", "io": io}}))
        };
        let cuda = || kernel("cuda", json!([n]), json!({"grid": {"x": 1}, "block": {"x": 32}}));
        let triton = || kernel("triton", json!([n, block]), json!({"grid": {"x": 4}}));
        let sides = CasePair { baseline: cuda(), candidate: triton() };
        let io = sides.baseline_as_candidate().kernel.io.unwrap();
        assert_eq!(io.args.len(), 1);
        assert!(io.launch.unwrap().block.is_some());
        let sides = CasePair { baseline: triton(), candidate: cuda() };
        let io = sides.baseline_as_candidate().kernel.io.unwrap();
        assert_eq!(io.args.iter().map(|arg| arg.is_meta).collect::<Vec<_>>(), [false, true]);
        assert!(io.launch.unwrap().block.is_none());
    }

    #[test]
    fn a_case_on_its_own_keeps_what_judges_it() {
        let more = json!({"expected": {"c": {"kernel": {"kernel_type": "ptx"}}}, "profile": {},
            "sanitize": true, "return_outputs": "all", "num_trials": 50});
        let contract = contract(more);
        let timed = alone(&contract, &manner(false, false), true);
        assert_eq!((timed.num_trials, timed.expected.len()), (Some(50), 1));
        assert!(timed.sanitize != Sanitize::Off && timed.profile.is_none());
        assert_eq!(timed.return_outputs, ReturnOutputs::None);
        let checked = alone(&contract, &manner(false, false), false);
        assert_eq!((checked.num_trials, checked.sanitize), (Some(3), Sanitize::Off));
    }

    #[test]
    fn what_is_left_out_is_told() {
        assert_eq!(CasePair::itself(contract(json!({}))).unused(), None);
        let more = json!({"expected": {"c": {"kernel": {"kernel_type": "ptx"}}}, "profile": {}});
        let told = CasePair::itself(contract(more)).unused().unwrap();
        assert_eq!(told, "a comparison does not use `profile`");
    }

    #[test]
    fn the_gate_knows_no_steady_load() {
        let contract = contract(json!({"measure": {"regime": "sustained", "cache": "hot"}}));
        assert_eq!(alone(&contract, &manner(false, false), true).measure.regime, Regime::Isolated);
        let sides = CasePair::itself(contract);
        assert_eq!(sides.comparison(&manner(false, false)).measure.regime, Regime::Isolated);
        assert_eq!(sides.unused().unwrap(), "a comparison does not use `measure.regime`");
    }
}
