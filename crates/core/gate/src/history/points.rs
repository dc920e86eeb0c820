//! Points of the history: the result of one run for a case. The main type is [`HistoryPoint`].

use std::cmp::Ordering;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SeriesKey;
use crate::GateOutcome;
use crate::report::{CaseReport, GateReport};
use warpgauge_contract::EvaluateRequest;
use warpgauge_model::{DeviceKind, Regime};
use warpgauge_report::{CountComparison, EvaluateResponse, ResponseStatus};

/// Maximum length of a generated case name, bytes.
const MAX_CASE_BYTES: usize = 200;

/// Result of a case in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryPoint {
    /// Case, device, driver and method.
    pub key: SeriesKey,
    /// Time of the measurement, seconds since the Unix epoch.
    pub unix_s: f64,
    /// Kind of the run.
    pub source: PointSource,
    /// Id of the job. Absent if no job is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// Commit of the code. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Branch of the code. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Outcome in the gate; for an evaluation, `PASS` or `INVALID`.
    pub verdict: GateOutcome,
    /// Outcomes of single counts that differ from the outcome of the case, e.g. of a count that did not grow in a
    /// case with a regression. Absent in points of older versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub count_verdicts: BTreeMap<String, GateOutcome>,
    /// Time that ranks the kernel, milliseconds: the median, or the mean if some launches may do
    /// the work of others. Present only on a GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ms: Option<f64>,
    /// Lower end of the median's 95 % confidence interval, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci_low_ms: Option<f64>,
    /// Upper end of the median's 95 % confidence interval, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci_high_ms: Option<f64>,
    /// Exact counts of one launch. Present only on the emulated device.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
}

/// Kind of the run that a point comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PointSource {
    /// Evaluation.
    Evaluation,
    /// Run of the gate.
    Gate,
}

/// Returns the case of an evaluation: the kernel's name with a fingerprint of its arguments and
/// launch. A different implementation with the same arguments is the same case. Tensor content in
/// the request is not part of the fingerprint.
pub fn case_of(request: &EvaluateRequest) -> String {
    let metadata = request.kernel.metadata.as_ref();
    let name = metadata.and_then(|metadata| metadata.kernel_name.as_deref()).unwrap_or("kernel");
    let io = request.kernel.io.as_ref();
    let mut hash = blake3::Hasher::new();
    // A part that cannot be serialised is left out, which merges series instead of failing.
    for arg in io.map_or(&[][..], |io| &io.args) {
        let spec = arg.tensor_spec.as_ref();
        hash.update(&json(&(&arg.name, arg.kind, arg.role, &arg.value)));
        hash.update(&json(&spec.map(|spec| (&spec.shape, &spec.dtype, &spec.init))));
    }
    hash.update(&json(&io.and_then(|io| io.launch.as_ref())));
    hash.update(&json(&request.measure.cache));
    if request.measure.regime != Regime::default() {
        // The default regime is left out, so that series from versions without regimes continue.
        hash.update(&json(&request.measure.regime));
    }
    let fingerprint = hash.finalize().to_hex();
    let mut name = name.to_owned();
    while name.len() > MAX_CASE_BYTES {
        name.pop();
    }
    format!("{name}-{}", &fingerprint[..8])
}

fn json(part: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(part).unwrap_or_default()
}

/// Returns the point of an evaluation of a case; `None` if nothing was measured.
pub fn of_evaluation(case: &str, report: &EvaluateResponse, unix_s: f64) -> Option<HistoryPoint> {
    let device = report.device.as_ref()?;
    let measurement = report.measurement.as_ref()?;
    if report.status == ResponseStatus::Error || report.kernel_exec_result.runtime.is_none() {
        return None;
    }
    let key = SeriesKey {
        case: case.to_owned(),
        kind: device.kind,
        device: device.name.clone(),
        driver: measurement.gpu.as_ref().and_then(|gpu| gpu.driver.clone()),
        cuda: device.cuda_version.clone(),
        method: measurement.method.clone(),
        method_version: measurement.method_version,
    };
    let timed = measurement.summary.as_ref().filter(|_| device.kind == DeviceKind::Cuda);
    let ranked = timed.and(report.kernel_exec_result.runtime_stats);
    // The interval applies only to the median.
    let interval = timed.filter(|_| ranked.is_some_and(|stats| stats.ranked_by.is_median()));
    let counts = report.counted.map(|counted| {
        BTreeMap::from([
            ("warp_instructions".to_owned(), counted.warp_instructions),
            ("global_sectors".to_owned(), counted.global_sectors),
        ])
    });
    let counts = counts.filter(|_| device.kind == DeviceKind::Emulator).unwrap_or_default();
    let measured = timed.is_some() || !counts.is_empty();
    measured.then(|| HistoryPoint {
        key,
        unix_s,
        source: PointSource::Evaluation,
        job_id: Some(report.job_id.clone()),
        commit: None,
        branch: None,
        verdict: GateOutcome::Pass,
        count_verdicts: BTreeMap::new(),
        median_ms: ranked.map(|stats| stats.ranked_ms()),
        ci_low_ms: interval.and_then(|summary| summary.median_ci_low),
        ci_high_ms: interval.and_then(|summary| summary.median_ci_high),
        counts,
    })
}

/// Returns the points of a run of the gate, one for each measured candidate.
pub fn of_gate(report: &GateReport) -> Vec<HistoryPoint> {
    let (Some(device), Some(method)) = (&report.device, &report.method) else {
        return Vec::new();
    };
    let point = |case: &CaseReport| {
        let counts = case.counts.iter().map(|one| (one.count.clone(), one.candidate));
        let mut counts = counts.collect::<BTreeMap<_, _>>();
        counts.extend(case.candidate_counts.clone());
        if case.candidate_ms.is_none() && counts.is_empty() {
            return None;
        }
        Some(HistoryPoint {
            key: SeriesKey {
                case: case.name.clone(),
                kind: device.kind,
                device: device.name.clone(),
                driver: method.driver.clone(),
                cuda: device.cuda_version.clone(),
                method: method.method.clone(),
                method_version: method.method_version,
            },
            unix_s: report.started_unix_s as f64,
            source: PointSource::Gate,
            job_id: report.job_id.clone(),
            commit: report.commit.clone(),
            branch: report.branch.clone(),
            verdict: case.outcome,
            count_verdicts: count_verdicts(case),
            median_ms: case.candidate_ms,
            ci_low_ms: case.candidate_ci_ms.first().copied(),
            ci_high_ms: case.candidate_ci_ms.get(1).copied(),
            counts,
        })
    };
    report.cases.iter().filter_map(point).collect()
}

/// Returns the outcomes of counts that differ from the case's outcome. A count that did not grow by more than its
/// margin passes, and a count that fell is improved, regardless of the others.
fn count_verdicts(case: &CaseReport) -> BTreeMap<String, GateOutcome> {
    let moved = [GateOutcome::Improved, GateOutcome::Regression, GateOutcome::Inconclusive];
    if !moved.contains(&case.outcome) {
        return BTreeMap::new();
    }
    let verdict = |one: &CountComparison| {
        let limit = one.reference as f64 * (1.0 + case.policy.count_margin);
        match one.candidate.cmp(&one.reference) {
            Ordering::Less => GateOutcome::Improved,
            Ordering::Greater if one.candidate as f64 > limit => case.outcome,
            _ => GateOutcome::Pass,
        }
    };
    let verdicts = case.counts.iter().map(|one| (one.count.clone(), verdict(one)));
    verdicts.filter(|(_, verdict)| *verdict != case.outcome).collect()
}

impl HistoryPoint {
    /// Splits a point into one point for each of its metrics, with the metric's name and value.
    pub fn by_metric(&self) -> Vec<(String, f64, HistoryPoint)> {
        let time = self.median_ms.map(|ms| {
            let alone = HistoryPoint {
                counts: BTreeMap::new(),
                count_verdicts: BTreeMap::new(),
                ..self.clone()
            };
            ("time".to_owned(), ms, alone)
        });
        let counts = self.counts.iter().map(|(name, count)| {
            let counts = BTreeMap::from([(name.clone(), *count)]);
            let own = self.count_verdicts.get(name).map(|verdict| (name.clone(), *verdict));
            let alone = HistoryPoint {
                median_ms: None,
                ci_low_ms: None,
                ci_high_ms: None,
                counts,
                count_verdicts: own.into_iter().collect(),
                ..self.clone()
            };
            (name.clone(), *count as f64, alone)
        });
        time.into_iter().chain(counts).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_count_that_did_not_move_passes_whatever_the_case_is() {
        let case = |outcome: &str, counts: [u64; 3]| {
            let count = |name: &str, candidate: u64| {
                let ratio = candidate as f64 / 100.0;
                json!({"count": name, "reference": 100, "candidate": candidate, "ratio": ratio})
            };
            let [a, b, c] = counts;
            let case = json!({
                "name": "c", "metric": "time", "outcome": outcome, "reason": "less_work",
                "detail": "", "blocking": false, "duration_s": 0.1,
                "policy": {"margin": 0.005, "delta": 0.02, "alpha": 0.01, "count_margin": 0.05,
                           "on_inconclusive": "fail", "advisory": false},
                "counts": [count("a", a), count("b", b), count("c", c)],
            });
            count_verdicts(&serde_json::from_value(case).unwrap())
        };
        let map = |list: &[(&str, GateOutcome)]| {
            list.iter().map(|(name, verdict)| ((*name).to_owned(), *verdict)).collect()
        };
        let (pass, improved) = (GateOutcome::Pass, GateOutcome::Improved);
        let expected: BTreeMap<_, _> = map(&[("b", pass), ("c", pass)]);
        assert_eq!(case("IMPROVED", [90, 100, 104]), expected);
        assert_eq!(case("REGRESSION", [90, 100, 110]), map(&[("a", improved), ("b", pass)]));
        assert_eq!(case("PASS", [100, 100, 100]), BTreeMap::new());
        assert_eq!(case("INVALID", [90, 100, 110]), BTreeMap::new());
    }

    #[test]
    fn times_of_different_conditions_are_different_cases() {
        let case = |measure: Value| {
            let kernel = json!({"kernel_type": "ptx", "source_code": "x"});
            let request = json!({"kernel": kernel, "measure": measure});
            case_of(&serde_json::from_value(request).unwrap())
        };
        let usual = case(json!({}));
        assert_eq!(usual, case(json!({"regime": "isolated", "max_time": 1.0})));
        let sustained = case(json!({"regime": "sustained"}));
        assert!(usual != sustained && usual != case(json!({"cache": "hot"})));
        assert_ne!(sustained, case(json!({"regime": "sustained", "cache": "hot"})));
    }
}
