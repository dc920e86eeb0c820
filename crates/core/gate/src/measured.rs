//! Converts the measurements of a suite to the cases of its report. The main type is
//! [`MeasuredCase`].

use std::collections::BTreeMap;

use super::report::{CalibrationReport, CaseReport};
use super::{
    CalibratedCase, CaseEvidence, CasePolicy, CaseSpec, JudgedCase, OnMissing, SuiteVerdict,
    decide, suite_verdict, to_confirm,
};
use warpgauge_model::DeviceKind;
use warpgauge_report::{CompareResponse, EvaluateResponse, KernelVerdict};

/// A case with its measurements so far.
#[derive(Debug, Clone)]
pub struct MeasuredCase {
    pub spec: CaseSpec,
    /// Policy after the calibration was applied.
    pub policy: CasePolicy,
    /// Calibration of the case, if it applies.
    pub calibrated: Option<CalibratedCase>,
    /// Evidence of the first comparison.
    pub first: CaseEvidence,
    /// Verdict on the candidate's kernel; `None` if it was not run.
    pub kernel_verdict: Option<KernelVerdict>,
    /// Evidence of a second comparison in fresh processes.
    pub confirmation: Option<CaseEvidence>,
    /// Times of the baseline and of the candidate in their evaluations, milliseconds.
    pub own_ms: [Option<f64>; 2],
    /// Ends of the 95 % confidence interval of the candidate's median; empty if there is none.
    pub own_ci_ms: Vec<f64>,
    /// Counts of the candidate without a baseline.
    pub own_counts: BTreeMap<String, u64>,
    /// Memory in which the candidate could have kept results of earlier launches.
    pub weaker_for: Vec<String>,
    /// Whether baseline and candidate have the same machine code.
    pub identical_code: Option<bool>,
    /// Duration, seconds.
    pub duration_s: f64,
}

impl MeasuredCase {
    /// Creates a case without measurements, with the reason.
    pub fn unmeasured(spec: CaseSpec, why: CaseEvidence) -> Self {
        let policy = spec.policy;
        Self {
            spec,
            policy,
            calibrated: None,
            first: why,
            kernel_verdict: None,
            confirmation: None,
            own_ms: [None; 2],
            own_ci_ms: Vec::new(),
            own_counts: BTreeMap::new(),
            weaker_for: Vec::new(),
            identical_code: None,
            duration_s: 0.0,
        }
    }

    /// Sets the result of the first comparison.
    pub fn set_first(&mut self, response: &CompareResponse) {
        self.first = CaseEvidence::of(response, self.spec.metric);
        self.kernel_verdict = Some(response.kernel_verdict());
        self.identical_code = response.candidates.first().and_then(|one| one.identical_code);
        if matches!(self.first, CaseEvidence::Identical) {
            // The kernels were launched only a few times for their outputs, so their times are
            // meaningless.
            self.identical_code = Some(true);
        } else if response.device.as_ref().is_some_and(|device| device.kind == DeviceKind::Cuda) {
            let own = response.candidates.first().map(|one| &one.evaluation);
            self.own_ms = [median_ms(Some(&response.reference)), median_ms(own)];
            self.own_ci_ms = own.and_then(median_ci_ms).unwrap_or_default();
            self.weaker_for = own.map(could_be_kept).unwrap_or_default();
        } else {
            // Counts are exact, so a calibration with the noise of another device does not apply.
            self.policy = self.spec.policy;
            self.calibrated = None;
        }
    }

    /// Sets the result of a candidate without a baseline.
    pub fn set_alone(&mut self, report: &EvaluateResponse, evidence: CaseEvidence) {
        self.first = evidence;
        self.kernel_verdict = Some(report.kernel_verdict());
        let CaseEvidence::Alone { counts, .. } = &self.first else { return };
        if report.device.as_ref().is_some_and(|device| device.kind == DeviceKind::Cuda) {
            self.own_ms = [None, median_ms(Some(report))];
            self.own_ci_ms = median_ci_ms(report).unwrap_or_default();
            self.weaker_for = could_be_kept(report);
        }
        self.own_counts.clone_from(counts);
    }

    fn judged(&self) -> JudgedCase<'_> {
        JudgedCase {
            policy: &self.policy,
            first: &self.first,
            confirmation: self.confirmation.as_ref(),
        }
    }
}

/// Returns the reason why times of a kernel are not reliable enough for a gate, if its launch
/// leaves a part of the GPU idle. Its time then depends on the multiprocessors that its blocks
/// happen to get.
pub fn idle_multiprocessors(response: &CompareResponse) -> Option<String> {
    let device = response.device.as_ref()?;
    let candidate = response.candidates.first().map(|one| &one.evaluation);
    let sides = [Some(&response.reference), candidate].into_iter().flatten();
    let blocks = sides.filter_map(|side| side.measurement.as_ref()?.grid_blocks).min()?;
    let few = device.kind == DeviceKind::Cuda && blocks < u64::from(device.multiprocessors);
    few.then(|| {
        format!(
            "its {blocks} blocks are fewer than the GPU's {} multiprocessors",
            device.multiprocessors
        )
    })
}

/// Returns the memory in which a kernel could keep a result for later launches. It is empty if all
/// inputs vary.
fn could_be_kept(report: &EvaluateResponse) -> Vec<String> {
    let state = report.measurement.as_ref().and_then(|measured| measured.state.as_ref());
    state.map(|state| state.not_known.clone()).unwrap_or_default()
}

fn median_ms(report: Option<&EvaluateResponse>) -> Option<f64> {
    let stats = report?.kernel_exec_result.runtime_stats.as_ref()?;
    Some(stats.ranked_ms())
}

fn median_ci_ms(report: &EvaluateResponse) -> Option<Vec<f64>> {
    let summary = report.measurement.as_ref()?.summary.as_ref()?;
    Some(vec![summary.median_ci_low?, summary.median_ci_high?])
}

/// Applies a calibration to a policy. The floor widens the margin, and Δ is at least twice the
/// margin. A case with reasons to be advisory becomes advisory.
pub fn with_calibration(policy: CasePolicy, calibrated: Option<&CalibratedCase>) -> CasePolicy {
    let Some(calibrated) = calibrated else {
        return policy;
    };
    let margin = policy.margin.max(calibrated.floor);
    CasePolicy {
        margin,
        delta: policy.delta.max(2.0 * margin),
        advisory: policy.advisory || !calibrated.advisory.is_empty(),
        ..policy
    }
}

/// Returns the indices of the cases that need a second comparison in fresh processes.
pub fn unconfirmed(cases: &[MeasuredCase]) -> Vec<usize> {
    to_confirm(&cases.iter().map(MeasuredCase::judged).collect::<Vec<_>>())
}

/// Returns the cases for the report, and the verdict on the suite.
pub fn conclude(cases: &[MeasuredCase], on_missing: OnMissing) -> (Vec<CaseReport>, SuiteVerdict) {
    let verdicts = decide(&cases.iter().map(MeasuredCase::judged).collect::<Vec<_>>());
    let reports = cases.iter().zip(verdicts).map(|(case, verdict)| {
        let alone = suite_verdict([(verdict.outcome, case.policy)], on_missing);
        let of = |evidence: Option<&CaseEvidence>| match evidence {
            Some(CaseEvidence::Times(comparison)) => Some(comparison.as_ref().clone()),
            _ => None,
        };
        CaseReport {
            name: case.spec.name.clone(),
            metric: case.spec.metric.to_string(),
            // Only the command line has files.
            file: None,
            line: None,
            outcome: verdict.outcome,
            reason: verdict.reason,
            kernel_verdict: case.kernel_verdict,
            detail: verdict.detail,
            blocking: alone != SuiteVerdict::Pass,
            policy: case.policy,
            calibration: case.calibrated.as_ref().map(|one| CalibrationReport {
                floor: one.floor,
                minimum_detectable_effect: one.minimum_detectable_effect,
                advisory: one.advisory.clone(),
            }),
            adjusted_p: verdict.adjusted_p,
            baseline_ms: case.own_ms[0],
            candidate_ms: case.own_ms[1],
            candidate_ci_ms: case.own_ci_ms.clone(),
            candidate_counts: case.own_counts.clone(),
            weaker_for: case.weaker_for.clone(),
            identical_code: case.identical_code,
            comparison: of(Some(&case.first)),
            confirmation: of(case.confirmation.as_ref()),
            counts: match &case.first {
                CaseEvidence::Counts(counts) => counts.clone(),
                _ => Vec::new(),
            },
            duration_s: case.duration_s,
        }
    });
    let reports = reports.collect::<Vec<_>>();
    let outcomes = reports.iter().map(|case| (case.outcome, case.policy));
    let verdict = suite_verdict(outcomes, on_missing);
    (reports, verdict)
}
