//! Types of the gate's report in JSON. The main type is [`GateReport`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CasePolicy, GateOutcome, GateReason, SuiteVerdict};
use warpgauge_contract::{MatrixUsed, TensorUsed};
use warpgauge_report::{CountComparison, DeviceReport, KernelVerdict, VerdictBy};
use warpgauge_statistics::paired::PairedComparison;

/// What a run of the gate found. Version 1 gains fields, and loses and renames none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateReport {
    /// Version of this format: 1.
    pub schema_version: u32,
    /// Version of warpgauge.
    pub warpgauge_version: String,
    /// The job that the run was, at the server or in the store of the machine that ran it; absent in
    /// reports of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The suite file, as it was named.
    pub suite: String,
    /// What the working tree was compared with.
    pub baseline: BaselineReport,
    /// Commit of the candidate, with `-dirty` where files differ from it; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// When the run began, seconds since 1970.
    pub started_unix_s: u64,
    /// How long it took, seconds.
    pub duration_s: f64,
    /// Verdict on the suite.
    pub verdict: SuiteVerdict,
    /// Exit code of the command: 0 pass, 1 error, 2 regression, 3 inconclusive, 4 invalid.
    pub exit_code: u8,
    /// What the verdict rests on, in one sentence.
    pub statement: String,
    /// What outcomes rest on; absent if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict_by: Option<VerdictBy>,
    /// The device that ran both sides; absent if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceReport>,
    /// How times were taken; absent if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<MethodReport>,
    /// How many cases have which outcome.
    pub totals: Totals,
    /// What to know besides.
    pub notes: Vec<String>,
    /// The sparse matrices that contracts of the suite named, and what was under these names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matrices: Vec<MatrixUsed>,
    /// The shared tensors that contracts of the suite named, as they were copied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tensors: Vec<TensorUsed>,
    /// The cases: those of the suite in its order, then those that only the baseline has.
    pub cases: Vec<CaseReport>,
}

/// What the working tree was compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineReport {
    /// What it is.
    pub kind: BaselineKind,
    /// As it was named.
    pub name: String,
    /// The commit that the name stood for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// Where a baseline comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BaselineKind {
    /// A commit of the suite's repository.
    Git,
    /// A directory.
    Directory,
    /// A stored one, by its name.
    Stored,
    /// What came with the request.
    Inline,
}

/// How times were taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MethodReport {
    /// What one sample is.
    pub method: String,
    /// Version of the method.
    pub method_version: u32,
    /// Version of the driver, where the device reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
}

/// How many cases have which outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GateTotals")]
pub struct Totals {
    /// PASS.
    pub pass: u32,
    /// IMPROVED.
    pub improved: u32,
    /// INCONCLUSIVE.
    pub inconclusive: u32,
    /// ERROR.
    pub error: u32,
    /// MISSING.
    pub missing: u32,
    /// NEW; absent in reports of older versions, which had none.
    #[serde(default)]
    pub new: u32,
    /// REGRESSION.
    pub regression: u32,
    /// INVALID.
    pub invalid: u32,
}

/// One case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GateCaseReport")]
pub struct CaseReport {
    /// Its name.
    pub name: String,
    /// What must not grow: `time`, or the name of a count.
    pub metric: String,
    /// What the gate says.
    pub outcome: GateOutcome,
    /// Why.
    pub reason: GateReason,
    /// The verdict on the candidate's kernel. Absent where none was run, and in reports of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_verdict: Option<KernelVerdict>,
    /// Why, in words; empty where the reason and the numbers say all.
    pub detail: String,
    /// Whether this outcome is why the suite does not pass.
    pub blocking: bool,
    /// What the case lets pass, with the calibrated floor in its margin.
    pub policy: CasePolicy,
    /// What the case showed against itself, if it was calibrated for this device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<CalibrationReport>,
    /// p-value of the slowdown beyond the margin, corrected for the looks and over the suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adjusted_p: Option<f64>,
    /// Median time of the baseline on its own, milliseconds; on a GPU only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_ms: Option<f64>,
    /// Median time of the candidate on its own, milliseconds; on a GPU only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_ms: Option<f64>,
    /// Ends of that median's 95 % confidence interval, milliseconds; empty where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidate_ci_ms: Vec<f64>,
    /// Counts of a candidate that there is nothing to compare with; on the emulated device only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub candidate_counts: BTreeMap<String, u64>,
    /// Where a result could have been kept from one timed launch of the candidate to the next: inputs
    /// do not vary, so that its times are weaker evidence. Empty where they do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weaker_for: Vec<String>,
    /// Whether both are the same machine code, but for names. Absent where that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identical_code: Option<bool>,
    /// Baseline and candidate side by side; the baseline is the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<PairedComparison>,
    /// The same again in fresh processes, where the first seemed slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<PairedComparison>,
    /// Counts that the outcome rests on; on the emulated device only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<CountComparison>,
    /// How long the case took, seconds.
    pub duration_s: f64,
}

/// What a case showed against itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationReport {
    /// Largest difference with itself, relative.
    pub floor: f64,
    /// Least slowdown, relative, that this suite's gate finds in 95 of 100 cases.
    pub minimum_detectable_effect: f64,
    /// Why the case only informs; empty if it carries the gate.
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
