//! Types of the gate's report in JSON. The main type is [`GateReport`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CasePolicy, GateOutcome, GateReason, SuiteVerdict};
use warpgauge_contract::{MatrixUsed, TensorUsed};
use warpgauge_report::{CountComparison, DeviceReport, KernelVerdict, VerdictBy};
use warpgauge_statistics::paired::PairedComparison;

/// Report of a run of the gate. Later reports of version 1 may have additional fields; no field is
/// removed or renamed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateReport {
    /// Version of this format: 1.
    pub schema_version: u32,
    /// Version of warpgauge.
    pub warpgauge_version: String,
    /// Id of the run's job, on the server or in the local store. Absent in reports of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// URL of the page that shows the run in a browser. Absent unless the server's address is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// Name of the suite, as the caller gave it.
    pub suite: String,
    /// Baseline of the comparison.
    pub baseline: BaselineReport,
    /// Commit of the candidate, with `-dirty` if files differ from the commit. Absent if it is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Branch of the candidate. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Start of the run, seconds since the Unix epoch.
    pub started_unix_s: u64,
    /// Duration of the run, seconds.
    pub duration_s: f64,
    /// Verdict on the suite.
    pub verdict: SuiteVerdict,
    /// Exit code of the command: 0 pass, 1 error, 2 regression, 3 inconclusive, 4 invalid.
    pub exit_code: u8,
    /// Basis of the verdict, in one sentence.
    pub statement: String,
    /// Basis of the outcomes. Absent if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict_by: Option<VerdictBy>,
    /// Device that ran baseline and candidate. Absent if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceReport>,
    /// Method of timing. Absent if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<MethodReport>,
    /// Number of cases by outcome.
    pub totals: Totals,
    /// Notes on the run.
    pub notes: Vec<String>,
    /// Sparse matrices that contracts of the suite name, with the content that was used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matrices: Vec<MatrixUsed>,
    /// Shared tensors that contracts of the suite name, with the content that was copied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tensors: Vec<TensorUsed>,
    /// Cases: those of the suite in its order, then those that only the baseline has.
    pub cases: Vec<CaseReport>,
}

/// Baseline of a run of the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineReport {
    /// Kind of the baseline.
    pub kind: BaselineKind,
    /// Name of the baseline, as the caller gave it.
    pub name: String,
    /// Commit of the baseline. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// Kind of a baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BaselineKind {
    /// Commit of the suite's repository.
    Git,
    /// Directory.
    Directory,
    /// Stored baseline, which the request names.
    Stored,
    /// Contracts in the request.
    Inline,
}

/// Method of timing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MethodReport {
    /// Method of one sample, as in the report of an evaluation.
    pub method: String,
    /// Version of the method.
    pub method_version: u32,
    /// Version of the driver. Absent if the device does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
}

/// Number of cases by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GateTotals")]
pub struct Totals {
    /// Number of cases with the outcome PASS.
    pub pass: u32,
    /// Number of cases with the outcome IMPROVED.
    pub improved: u32,
    /// Number of cases with the outcome INCONCLUSIVE.
    pub inconclusive: u32,
    /// Number of cases with the outcome ERROR.
    pub error: u32,
    /// Number of cases with the outcome MISSING.
    pub missing: u32,
    /// Number of cases with the outcome NEW. Absent in reports of older versions.
    #[serde(default)]
    pub new: u32,
    /// Number of cases with the outcome REGRESSION.
    pub regression: u32,
    /// Number of cases with the outcome INVALID.
    pub invalid: u32,
}

/// Result of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GateCaseReport")]
pub struct CaseReport {
    /// Name of the case.
    pub name: String,
    /// Quantity that must not grow: `time`, or the name of a count.
    pub metric: String,
    /// File of the candidate's kernel, or of its contract if the contract contains the kernel, as the suite names it.
    /// Absent if the request had no files, and in reports of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line of `file` at which the kernel begins, from 1. Absent if it was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Outcome of the case.
    pub outcome: GateOutcome,
    /// Reason for the outcome.
    pub reason: GateReason,
    /// Verdict on the candidate's kernel. Absent if no kernel ran, and in reports of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_verdict: Option<KernelVerdict>,
    /// Explanation of the outcome. Empty if the reason and the numbers are enough.
    pub detail: String,
    /// Whether this outcome prevents the suite from passing.
    pub blocking: bool,
    /// Policy of the case. The margin includes the calibrated floor.
    pub policy: CasePolicy,
    /// Calibration of the case, from comparisons with itself. Absent if the case was not calibrated on this device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<CalibrationReport>,
    /// p-value of the slowdown beyond the margin, corrected for multiple looks and for the number
    /// of cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adjusted_p: Option<f64>,
    /// Time of the baseline in its evaluation, milliseconds: the median, or the mean if some
    /// launches may do the work of others. Present only on a GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_ms: Option<f64>,
    /// Time of the candidate in its evaluation, milliseconds, like `baseline_ms`. Present only on a
    /// GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_ms: Option<f64>,
    /// Ends of the 95 % confidence interval of the candidate's median, milliseconds. Empty if there
    /// is no interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidate_ci_ms: Vec<f64>,
    /// Counts of a candidate without a baseline. Present only on the emulated device.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub candidate_counts: BTreeMap<String, u64>,
    /// Memory in which a result could have been kept from one timed launch of the candidate to the next. The times
    /// are then weaker evidence, because inputs do not vary. Empty if inputs vary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weaker_for: Vec<String>,
    /// Whether baseline and candidate have the same machine code, apart from names. Absent if the
    /// codes cannot be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identical_code: Option<bool>,
    /// Comparison of the candidate with the baseline, which is the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<PairedComparison>,
    /// Second comparison, in fresh processes. Absent unless the candidate seemed slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<PairedComparison>,
    /// Counts that decide the outcome. Present only on the emulated device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<CountComparison>,
    /// Duration of the case, seconds.
    pub duration_s: f64,
}

/// Calibration of a case: its comparison with itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationReport {
    /// Largest relative difference when the case was compared with itself.
    pub floor: f64,
    /// Smallest relative slowdown that the gate of this suite detects with a probability of 95 %.
    pub minimum_detectable_effect: f64,
    /// Reasons why the case is advisory and cannot fail the suite. Empty if the case can fail the
    /// suite.
    pub advisory: Vec<String>,
}

impl Totals {
    /// Counts the outcomes of these cases.
    pub fn of(cases: &[CaseReport]) -> Self {
        let mut totals = Self::default();
        for case in cases {
            *match case.outcome {
                GateOutcome::Pass => &mut totals.pass,
                GateOutcome::Improved => &mut totals.improved,
                GateOutcome::Inconclusive => &mut totals.inconclusive,
                GateOutcome::Error => &mut totals.error,
                GateOutcome::Missing => &mut totals.missing,
                GateOutcome::New => &mut totals.new,
                GateOutcome::Regression => &mut totals.regression,
                GateOutcome::Invalid => &mut totals.invalid,
            } += 1;
        }
        totals
    }
}
