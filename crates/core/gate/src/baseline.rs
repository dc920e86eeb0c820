//! Stored baselines: the code of every case, and the conditions under which it was measured. The
//! main type is [`Baseline`].

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BaselinePin, MAX_CASES, SuiteError};
use warpgauge_contract::EvaluateRequest;

/// Maximum length of the name of a baseline or a case, bytes.
const MAX_NAME_BYTES: usize = 128;

/// Stored baseline. Stored times are not used for decisions: the gate builds and runs the baseline's code again with
/// every candidate.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Baseline {
    /// Name of the baseline.
    pub name: String,
    /// Device, driver and method for which the baseline is valid.
    pub pin: BaselinePin,
    /// Name of the suite.
    pub suite: String,
    /// Commit of the code. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Job of the gate whose candidate became the baseline. Absent if the baseline was stored directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promoted_from: Option<String>,
    /// Time at which the baseline was stored, seconds since the Unix epoch.
    pub stored_unix_s: f64,
    /// Contracts with their kernels, by the name of the case.
    pub cases: BTreeMap<String, EvaluateRequest>,
}

/// Stored baseline in a list, without its code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineSummary {
    /// Name of the baseline.
    pub name: String,
    /// Device, driver and method for which the baseline is valid.
    pub pin: BaselinePin,
    /// Name of the suite.
    pub suite: String,
    /// Commit of the code. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Job of the gate whose candidate became the baseline. Absent if the baseline was stored directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promoted_from: Option<String>,
    /// Time at which the baseline was stored, seconds since the Unix epoch.
    pub stored_unix_s: f64,
    /// Names of the cases.
    pub cases: Vec<String>,
}

/// Request of `POST /baselines`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewBaseline {
    /// Name of the baseline: letters, digits, `.`, `_` and `-`, at most 128 bytes. It replaces an earlier baseline of
    /// the same name.
    pub name: String,
    /// Name of the suite.
    #[serde(default = "default_suite")]
    pub suite: String,
    /// Cases, 1–200. Each is compiled and run once before the baseline is stored.
    pub cases: Vec<BaselineCase>,
    /// Device, driver and method for which the baseline must be valid. The server rejects the
    /// baseline if its device, driver or method differs. Default: those with which the cases ran on
    /// the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<BaselinePin>,
    /// Commit of the code, for reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// Case of a baseline.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineCase {
    /// Name of the case, as in the suite.
    pub name: String,
    /// Contract with its kernel.
    pub contract: EvaluateRequest,
}

/// Request of `POST /baselines/{name}/promote`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Promotion {
    /// Job of `POST /gate` with the verdict `PASS`, whose candidate becomes the baseline.
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

/// Checks the name of a baseline. Names occur in URLs and on command lines.
///
/// # Errors
/// Returns the allowed form of a name if the name is invalid.
pub fn check_baseline_name(name: &str) -> Result<(), SuiteError> {
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let fits = (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.chars().all(letters)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if fits {
        return Ok(());
    }
    let message = format!(
        "must be 1 to {MAX_NAME_BYTES} letters, digits, `.`, `_` or `-`, and begin with a letter \
         or digit"
    );
    Err(SuiteError::Value { at: "name".to_owned(), message })
}

impl NewBaseline {
    /// Checks all parts of the request that can be checked without a device.
    ///
    /// # Errors
    /// Returns the first problem, with its path in the request.
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
