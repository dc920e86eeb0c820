//! Stored baselines: the code of every case, and the conditions under which it was measured. The
//! main type is [`Baseline`].

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BaselinePin, MAX_CASES, SuiteError};
use warpgauge_contract::EvaluateRequest;

/// Longest name of a baseline, and of a case, bytes.
const MAX_NAME_BYTES: usize = 128;

/// A baseline as it is kept. Stored numbers decide nothing: its code is built and run again beside
/// every candidate.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Baseline {
    /// Its name.
    pub name: String,
    /// The device, driver and method that it is for.
    pub pin: BaselinePin,
    /// The suite that it is of.
    pub suite: String,
    /// Commit of the code, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The gate's job that it was promoted from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promoted_from: Option<String>,
    /// When it was stored, seconds since 1970.
    pub stored_unix_s: f64,
    /// The contracts with their kernels, by case.
    pub cases: BTreeMap<String, EvaluateRequest>,
}

/// A baseline in a list: without its code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineSummary {
    /// Its name.
    pub name: String,
    /// The device, driver and method that it is for.
    pub pin: BaselinePin,
    /// The suite that it is of.
    pub suite: String,
    /// Commit of the code, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The gate's job that it was promoted from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promoted_from: Option<String>,
    /// When it was stored, seconds since 1970.
    pub stored_unix_s: f64,
    /// Names of its cases.
    pub cases: Vec<String>,
}

/// What `POST /baselines` takes.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewBaseline {
    /// Its name: letters, digits, `.`, `_`, `-`; one of that name is replaced.
    pub name: String,
    /// The suite that it is of.
    #[serde(default = "default_suite")]
    pub suite: String,
    /// The cases, 1–200: each is compiled and run once before the baseline is stored.
    pub cases: Vec<BaselineCase>,
    /// The device, driver and method that it must be for; it is refused if this server has others.
    /// Default: those it was run with here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<BaselinePin>,
    /// Commit of the code, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// One case of a baseline.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineCase {
    /// Its name, as in the suite.
    pub name: String,
    /// The contract with its kernel.
    pub contract: EvaluateRequest,
}

/// What `POST /baselines/{name}/promote` takes.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Promotion {
    /// A job of `POST /gate` whose verdict is `PASS`; its candidate becomes the baseline.
    pub job_id: String,
}

fn default_suite() -> String {
    "suite".to_owned()
}

impl Baseline {
    /// Returns the baseline without its code.
    pub fn summary(&self) -> BaselineSummary {
        BaselineSummary {
            name: self.name.clone(),
            pin: self.pin.clone(),
            suite: self.suite.clone(),
            commit: self.commit.clone(),
            promoted_from: self.promoted_from.clone(),
            stored_unix_s: self.stored_unix_s,
            cases: self.cases.keys().cloned().collect(),
        }
    }
}

/// Checks the name of a baseline, which occurs in URLs and on command lines.
///
/// # Errors
/// The allowed form of a name.
pub fn check_baseline_name(name: &str) -> Result<(), SuiteError> {
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let fits = (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.chars().all(letters)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if fits {
        return Ok(());
    }
    let message = format!(
        "must be 1 to {MAX_NAME_BYTES} letters, digits, `.`, `_` or `-`, a letter or digit first"
    );
    Err(SuiteError::Value { at: "name".to_owned(), message })
}

impl NewBaseline {
    /// Checks everything that needs no device.
    ///
    /// # Errors
    /// The first problem, with its path.
    pub fn check(&self) -> Result<(), SuiteError> {
        let refuse = |at: String, message: String| Err(SuiteError::Value { at, message });
        check_baseline_name(&self.name)?;
        let texts = [("suite", Some(&self.suite), 1024), ("commit", self.commit.as_ref(), 255)];
        for (at, text, most) in texts {
            let fits =
                |text: &String| text.len() <= most && !text.chars().any(warpgauge_model::is_hidden);
            if !text.is_none_or(fits) {
                return refuse(at.to_owned(), format!("must be at most {most} printable bytes"));
            }
        }
        if !(1..=MAX_CASES).contains(&self.cases.len()) {
            let message = format!("has {} entries; give 1 to {MAX_CASES}", self.cases.len());
            return refuse("cases".to_owned(), message);
        }
        let mut names = BTreeSet::new();
        for (index, case) in self.cases.iter().enumerate() {
            let fits = (1..=MAX_NAME_BYTES).contains(&case.name.len())
                && !case.name.chars().any(warpgauge_model::is_hidden);
            if !fits || !names.insert(&case.name) {
                let message = format!("must be unique, 1 to {MAX_NAME_BYTES} printable bytes");
                return refuse(format!("cases[{index}].name"), message);
            }
        }
        Ok(())
    }
}
