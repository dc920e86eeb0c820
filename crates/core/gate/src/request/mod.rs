//! The request of a gate run: a suite that contains its contracts instead of naming files. The main
//! type is [`GateRequest`].

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::{BaselineKind, BaselineReport};
use super::suite::{CaseFile, PolicyFile, SuiteFile};
use super::{
    Baseline, Calibration, CaseCode, CasePair, CaseSpec, GatePlan, OnMissing, PlannedCase, Suite,
    SuiteError,
};
use warpgauge_contract::EvaluateRequest;
use warpgauge_model::PresetName;

/// Maximum length of the name of a suite, and of the origin of a baseline, bytes. Both may be
/// paths.
const MAX_PATH_BYTES: usize = 1024;

/// Maximum length of the name of a commit or a branch, bytes.
const MAX_COMMIT_BYTES: usize = 255;

/// Maximum number of notes of a request, and maximum length of each, bytes.
const MAX_NOTES: usize = 16;
const MAX_NOTE_BYTES: usize = 4096;

/// Request of `POST /gate`: a suite with its kernels, and their baseline.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GateRequest {
    /// Name of the suite in reports.
    #[serde(default = "default_suite")]
    pub suite: String,
    /// Preset of precision and time. Default: `ci`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<PresetName>,
    /// Effect of a case that only the baseline has: `fail` or `warn`. A case that only the suite has is new, and its
    /// candidate is checked alone.
    #[serde(default)]
    pub on_missing: OnMissing,
    /// Policy of all cases. Missing fields have the preset's values.
    #[serde(default)]
    pub defaults: PolicyFile,
    /// Cases, 1–200.
    pub cases: Vec<GateCase>,
    /// Name of a stored baseline. Without it, each case has its own baseline or is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Origin of the cases' own baselines, for the report: `git`, `directory` or `inline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_origin: Option<BaselineOrigin>,
    /// Cases that only the baseline's suite has, if the cases have their own baselines; at most
    /// 200.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<RemovedCase>,
    /// Calibration of this suite, from `warpgauge gate calibrate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// Whether to time cases whose image and launch are identical to the baseline's.
    #[serde(default)]
    pub measure_identical: bool,
    /// Commit of the candidate, for the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Branch of the candidate, for the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Notes for the report: at most 16, each of at most 4096 bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Origin of the cases' own baselines.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineOrigin {
    /// Kind of the baseline: `git`, `directory` or `inline`.
    pub kind: BaselineKind,
    /// Name of the baseline, as the caller gave it.
    pub name: String,
    /// Commit of the baseline. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

impl From<BaselineOrigin> for BaselineReport {
    fn from(BaselineOrigin { kind, name, commit }: BaselineOrigin) -> Self {
        Self { kind, name, commit }
    }
}

/// Case that only the baseline's suite has.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RemovedGateCase")]
pub struct RemovedCase {
    /// Name of the case. It must be unique, and differ from the names of the suite's cases.
    pub name: String,
    /// Quantity that must not grow, as in the baseline's suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Policy of the case in the baseline's suite. Missing fields have the values of this suite.
    #[serde(default)]
    pub policy: PolicyFile,
}

/// Case of a suite, with its contracts.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GateCase {
    /// Name of the case, unique in the suite.
    pub name: String,
    /// Quantity that must not grow: `time` (default), or the name of a count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Policy of the case. Missing fields have the values of the suite.
    #[serde(default)]
    pub policy: PolicyFile,
    /// Contract with the candidate kernel.
    pub contract: EvaluateRequest,
    /// Contract with the baseline kernel. Without it, and without a stored baseline that has the case, the case is
    /// new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<EvaluateRequest>,
}

/// Returns a case whose contract is in the request.
fn inline(name: &str, metric: Option<&String>, policy: PolicyFile) -> CaseFile {
    CaseFile {
        name: name.to_owned(),
        contract: "inline".to_owned(),
        source: None,
        metric: metric.cloned(),
        policy,
    }
}

/// Describes a baseline that is part of the request and has no origin.
fn inline_baseline() -> BaselineReport {
    BaselineReport { kind: BaselineKind::Inline, name: "as given".to_owned(), commit: None }
}

/// Returns the reason why the baseline has no code for a new case.
fn new_to(baseline: &BaselineReport) -> String {
    let what = match baseline.kind {
        BaselineKind::Git | BaselineKind::Directory => "lacks files of the case",
        BaselineKind::Stored | BaselineKind::Inline => "does not have the case",
    };
    format!("the baseline {} {what}", baseline.name)
}

fn default_suite() -> String {
    "suite".to_owned()
}

impl GateRequest {
    /// Returns the candidates' contracts by case. They become the baseline when the run is
    /// promoted.
    pub fn contracts(&self) -> BTreeMap<String, EvaluateRequest> {
        self.cases.iter().map(|case| (case.name.clone(), case.contract.clone())).collect()
    }

    /// Checks all parts of the request that can be checked without a device.
    ///
    /// # Errors
    /// Returns the first problem, with its path in the request.
    pub fn check(&self) -> Result<Suite, SuiteError> {
        let refuse =
            |at: String, message: &str| Err(SuiteError::Value { at, message: message.to_owned() });
        self.check_texts()?;
        if let Some(calibration) = &self.calibration {
            calibration.verify().map_err(|error| SuiteError::Value {
                at: "calibration".to_owned(),
                message: error.to_string(),
            })?;
        }
        let own = self.cases.iter().position(|case| case.baseline.is_some());
        if let (Some(index), Some(_)) = (own, &self.baseline) {
            let message = "a stored baseline is named, too; give only one of them";
            return refuse(format!("cases[{index}].baseline"), message);
        }
        if let Some(of) = &self.baseline_origin
            && (of.kind == BaselineKind::Stored || self.baseline.is_some())
        {
            let message = "is for cases with their own baselines: git, directory or inline; give \
                           it without `baseline`";
            return refuse("baseline_origin".to_owned(), message);
        }
        let case = |case: &GateCase| inline(&case.name, case.metric.as_ref(), case.policy);
        let suite = self.suite_of(self.cases.iter().map(case).collect())?;
        let own = self.cases.iter().map(|case| case.name.as_str()).collect::<BTreeSet<_>>();
        if self.baseline.is_some() && !self.removed.is_empty() {
            return refuse("removed".to_owned(), "follows from the stored baseline; leave it out");
        }
        if let Some(index) = self.removed.iter().position(|case| own.contains(case.name.as_str())) {
            return refuse(format!("removed[{index}].name"), "is the name of a case of the suite");
        }
        self.removed_cases()?;
        Ok(suite)
    }

    fn check_texts(&self) -> Result<(), SuiteError> {
        let of = self.baseline_origin.as_ref();
        let texts = [
            ("suite", Some(&self.suite), MAX_PATH_BYTES),
            ("commit", self.commit.as_ref(), MAX_COMMIT_BYTES),
            ("branch", self.branch.as_ref(), MAX_COMMIT_BYTES),
            ("baseline_origin.name", of.map(|of| &of.name), MAX_PATH_BYTES),
            ("baseline_origin.commit", of.and_then(|of| of.commit.as_ref()), MAX_COMMIT_BYTES),
        ];
        let texts = texts.into_iter().map(|(at, text, most)| (at.to_owned(), text, most));
        let notes = self.notes.iter().enumerate();
        let notes = notes.map(|(at, note)| (format!("notes[{at}]"), Some(note), MAX_NOTE_BYTES));
        for (at, text, most) in texts.chain(notes) {
            let fits = |text: &String| {
                (1..=most).contains(&text.len()) && !text.chars().any(warpgauge_model::is_hidden)
            };
            if !text.is_none_or(fits) {
                let message = format!("must be 1 to {most} printable bytes");
                return Err(SuiteError::Value { at, message });
            }
        }
        if self.notes.len() > MAX_NOTES {
            let message = format!("has {} entries; give at most {MAX_NOTES}", self.notes.len());
            return Err(SuiteError::Value { at: "notes".to_owned(), message });
        }
        Ok(())
    }

    fn suite_of(&self, cases: Vec<CaseFile>) -> Result<Suite, SuiteError> {
        Suite::checked(SuiteFile {
            version: 1,
            preset: self.preset,
            on_missing: self.on_missing,
            defaults: self.defaults,
            cases,
        })
    }

    /// Returns the removed cases with their policies.
    fn removed_cases(&self) -> Result<Vec<CaseSpec>, SuiteError> {
        if self.removed.is_empty() {
            return Ok(Vec::new());
        }
        let case = |case: &RemovedCase| inline(&case.name, case.metric.as_ref(), case.policy);
        match self.suite_of(self.removed.iter().map(case).collect()) {
            Ok(suite) => Ok(suite.cases),
            Err(SuiteError::Value { at, message }) => {
                Err(SuiteError::Value { at: at.replacen("cases", "removed", 1), message })
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the plan of the run; `stored` is the baseline that the request names, if any.
    ///
    /// # Errors
    /// Returns the errors of [`GateRequest::check`].
    pub fn plan(self, stored: Option<Baseline>) -> Result<GatePlan, SuiteError> {
        let suite = self.check()?;
        let removed = self.removed_cases()?;
        let (pin, mut theirs, baseline) = match stored {
            Some(stored) => {
                let report = BaselineReport {
                    kind: BaselineKind::Stored,
                    name: stored.name,
                    commit: stored.commit,
                };
                (Some(stored.pin), stored.cases, report)
            }
            None => {
                let report = self.baseline_origin.map_or_else(inline_baseline, Into::into);
                (None, BTreeMap::new(), report)
            }
        };
        let mut cases = Vec::new();
        for (spec, case) in suite.cases.into_iter().zip(self.cases) {
            let candidate = case.contract;
            let code = match case.baseline.or_else(|| theirs.remove(&spec.name)) {
                Some(baseline) => CaseCode::Both(Box::new(CasePair { baseline, candidate })),
                None => CaseCode::New { contract: Box::new(candidate), why: new_to(&baseline) },
            };
            cases.push(PlannedCase { spec, code });
        }
        // Removing a case must not make it pass.
        let own = cases.iter().map(|case| case.spec.name.clone()).collect::<BTreeSet<_>>();
        let stored = theirs.into_keys().filter(|name| !own.contains(name));
        let stored = stored.map(|name| CaseSpec::removed(name, suite.defaults));
        let removed = removed.into_iter().chain(stored).map(|spec| PlannedCase {
            spec,
            code: CaseCode::Removed(
                "the baseline has the case, but the suite does not; restore it, or accept its \
                 removal with `on_missing: warn`"
                    .to_owned(),
            ),
        });
        cases.extend(removed.collect::<Vec<_>>());
        Ok(GatePlan {
            suite: self.suite,
            preset: suite.preset,
            on_missing: suite.on_missing,
            cases,
            baseline,
            pin,
            calibration: self.calibration,
            measure_identical: self.measure_identical,
            commit: self.commit,
            branch: self.branch,
            notes: self.notes,
        })
    }
}

#[cfg(test)]
mod tests;
