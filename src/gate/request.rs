//! A run of the gate that travels: the suite with its contracts in it, instead of files.

use std::collections::{BTreeMap, BTreeSet};

use poem_openapi::Object;
use serde::{Deserialize, Serialize};

use super::report::{BaselineKind, BaselineReport};
use super::suite::{CaseFile, PolicyFile, SuiteFile};
use super::{
    Baseline, Calibration, CaseSpec, GatePlan, OnMissing, PlannedCase, Sides, Suite, SuiteError,
};
use crate::contract::{EvaluateRequest, PresetName};

/// Longest name of a suite, and of a commit, bytes.
const MAX_TEXT_BYTES: usize = 255;

/// What `POST /gate` takes: a suite with its kernels, and what to compare them with.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(Object)]
#[oai(deny_unknown_fields, skip_serializing_if_is_none)]
pub struct GateRequest {
    /// The suite's name in reports.
    #[serde(default = "default_suite")]
    #[oai(default = "default_suite")]
    pub suite: String,
    /// Time spent on precision; default `ci`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<PresetName>,
    /// What a case is that only one side has: `fail` or `warn`.
    #[serde(default)]
    #[oai(default)]
    pub on_missing: OnMissing,
    /// A policy for all cases; what is left out is the preset's.
    #[serde(default)]
    #[oai(default)]
    pub defaults: PolicyFile,
    /// The cases, 1–200.
    pub cases: Vec<GateCase>,
    /// A stored baseline by its name. Without it every case brings its own, or is missing there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// What `warpgauge gate calibrate` wrote for this suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// Whether cases are measured whose machine code and launch are the baseline's.
    #[serde(default)]
    #[oai(default)]
    pub measure_identical: bool,
    /// Commit of the candidate, for the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// One case of a suite that travels.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(Object)]
#[oai(deny_unknown_fields, skip_serializing_if_is_none)]
pub struct GateCase {
    /// Its name, unique in the suite.
    pub name: String,
    /// What must not grow: `time` (default), or the name of a count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// What it lets pass; what is left out is the suite's.
    #[serde(default)]
    #[oai(default)]
    pub policy: PolicyFile,
    /// The contract with the kernel to judge.
    pub contract: EvaluateRequest,
    /// The contract with the kernel to compare it with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<EvaluateRequest>,
}

fn default_suite() -> String {
    "suite".to_owned()
}

impl GateRequest {
    /// The contracts with the kernels to judge, by case: what becomes a baseline when it is promoted.
    pub fn contracts(&self) -> BTreeMap<String, EvaluateRequest> {
        self.cases.iter().map(|case| (case.name.clone(), case.contract.clone())).collect()
    }

    /// Checks everything that can be checked without devices.
    ///
    /// # Errors
    /// The first thing that is wrong, with its path.
    pub fn check(&self) -> Result<Suite, SuiteError> {
        let refuse =
            |at: String, message: &str| Err(SuiteError::Value { at, message: message.to_owned() });
        let texts = [("suite", Some(&self.suite)), ("commit", self.commit.as_ref())];
        for (at, text) in texts {
            let fits = |text: &String| {
                (1..=MAX_TEXT_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
            };
            if !text.is_none_or(fits) {
                return refuse(at.to_owned(), "must be 1 to 255 printable bytes");
            }
        }
        if let Some(calibration) = &self.calibration {
            calibration.verify().map_err(|error| SuiteError::Value {
                at: "calibration".to_owned(),
                message: error.to_string(),
            })?;
        }
        let own = self.cases.iter().position(|case| case.baseline.is_some());
        if let (Some(index), Some(_)) = (own, &self.baseline) {
            let message = "a stored baseline is named, too; give one of them";
            return refuse(format!("cases[{index}].baseline"), message);
        }
        let case = |case: &GateCase| CaseFile {
            name: case.name.clone(),
            contract: "inline".to_owned(),
            source: None,
            metric: case.metric.clone(),
            policy: case.policy,
        };
        Suite::checked(SuiteFile {
            version: 1,
            preset: self.preset,
            on_missing: self.on_missing,
            defaults: self.defaults,
            cases: self.cases.iter().map(case).collect(),
        })
    }

    /// What the run is to do; `stored` is the baseline that the request names, if it names one.
    ///
    /// # Errors
    /// As [`GateRequest::check`].
    pub fn plan(self, stored: Option<Baseline>) -> Result<GatePlan, SuiteError> {
        let suite = self.check()?;
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
                let report = BaselineReport {
                    kind: BaselineKind::Inline,
                    name: "as given".to_owned(),
                    commit: None,
                };
                (None, BTreeMap::new(), report)
            }
        };
        let mut cases = Vec::new();
        for (spec, case) in suite.cases.into_iter().zip(self.cases) {
            let of_baseline = case.baseline.or_else(|| theirs.remove(&spec.name));
            let sides = of_baseline
                .map(|baseline| Sides { baseline, candidate: case.contract })
                .ok_or_else(|| {
                    format!(
                        "the baseline {} has no such case; a new case passes once it is in the \
                         baseline, or at once with `on_missing: warn`",
                        baseline.name
                    )
                });
            cases.push(PlannedCase { spec, sides });
        }
        // Removing a case is no way to pass.
        let own = cases.iter().map(|case| case.spec.name.clone()).collect::<BTreeSet<_>>();
        let removed = theirs.into_keys().filter(|name| !own.contains(name));
        let removed = removed.map(|name| PlannedCase {
            spec: CaseSpec::removed(name, suite.defaults),
            sides: Err("the baseline has it, the suite does not; put it back, or accept its \
                        removal with `on_missing: warn`"
                .to_owned()),
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
            notes: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests;
