//! The suite file: the kernels that the gate checks, and their policies. The main type is
//! [`Suite`].

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Component, Path};

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use warpgauge_contract::BodyFormat;
use warpgauge_model::PresetName;
use warpgauge_statistics::{COMPARED_COUNTS, Preset};

/// Maximum size of a suite file, bytes.
pub const MAX_SUITE_BYTES: u64 = 1 << 20;

/// Maximum number of cases of one suite.
pub const MAX_CASES: usize = 200;

/// Maximum length of a case name, bytes.
const MAX_NAME_BYTES: usize = 128;

/// Maximum length of a path, bytes.
const MAX_PATH_BYTES: usize = 1024;

/// Version of the format that this program reads.
const VERSION: u32 = 1;

/// Reason why a file is not a valid suite.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// The file cannot be parsed.
    #[error("the suite cannot be read: {0}")]
    Parse(warpgauge_contract::ParseError),
    /// A value is invalid.
    #[error("{at}: {message}")]
    Value {
        at: String,
        /// The expected and the actual value, and a remedy.
        message: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// Preset of the measurement.
    pub preset: PresetName,
    /// Effect of a case that the candidate lacks.
    pub on_missing: OnMissing,
    /// Policy of cases without their own policy.
    pub defaults: CasePolicy,
    /// Cases in the file's order; at least one.
    pub cases: Vec<CaseSpec>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseSpec {
    /// Name, unique in the suite.
    pub name: String,
    /// Path of the contract file, relative to the suite.
    pub contract: String,
    /// Path of a kernel that replaces the contract's, relative to the suite.
    pub source: Option<String>,
    /// Quantity that must not grow.
    pub metric: GateMetric,
    pub policy: CasePolicy,
}

/// Quantity that must not grow. It is serialised as `time` or as the name of a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateMetric {
    /// Time on a GPU; warp instructions and sectors of global memory on the emulated device.
    Time,
    /// One exact count, which is available only on the emulated device.
    Count(&'static str),
}

impl GateMetric {
    fn parse(name: &str) -> Option<Self> {
        if name == "time" {
            return Some(Self::Time);
        }
        COMPARED_COUNTS.into_iter().find(|count| *count == name).map(Self::Count)
    }
}

impl Serialize for GateMetric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GateMetric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let unknown = || D::Error::custom(format!("{name:?} is not a metric of the gate"));
        Self::parse(&name).ok_or_else(unknown)
    }
}

impl fmt::Display for GateMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Time => "time",
            Self::Count(name) => name,
        })
    }
}

/// Policy of a case: which differences from the baseline the gate accepts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CasePolicy {
    /// Relative margin τ. Smaller slowdowns are not called regressions. A calibrated floor widens
    /// the margin.
    pub margin: f64,
    /// Relative slowdown Δ. A case passes only if the measurement excludes such a slowdown.
    pub delta: f64,
    /// Maximum probability that the gate calls any regression in a suite of unchanged kernels.
    pub alpha: f64,
    /// Relative increase of a count that passes. It applies only on the emulated device.
    pub count_margin: f64,
    /// Effect of an inconclusive case on the suite.
    pub on_inconclusive: OnInconclusive,
    /// Whether the case is advisory: it never fails the suite.
    pub advisory: bool,
}

/// Effect of an inconclusive case on the suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnInconclusive {
    /// The suite is inconclusive.
    #[default]
    Fail,
    /// The report contains a warning.
    Warn,
    /// The case has no effect on the suite.
    Pass,
}

/// Effect on the suite of a case that only the baseline has. A case that only the candidate has is new, and its
/// candidate is always checked alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnMissing {
    /// The suite ends with an error.
    #[default]
    Fail,
    /// The report contains a warning.
    Warn,
}

/// Content of the suite file, before it is checked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SuiteFile {
    pub(super) version: u32,
    pub(super) preset: Option<PresetName>,
    #[serde(default)]
    pub(super) on_missing: OnMissing,
    #[serde(default)]
    pub(super) defaults: PolicyFile,
    pub(super) cases: Vec<CaseFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaseFile {
    pub(super) name: String,
    pub(super) contract: String,
    pub(super) source: Option<String>,
    pub(super) metric: Option<String>,
    #[serde(default)]
    pub(super) policy: PolicyFile,
}

/// Policy of a case: which differences from the baseline the gate accepts. Missing fields have the suite's values, or else the preset's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PolicySpec")]
pub struct PolicyFile {
    /// Relative margin τ, 0.0001–0.25. Smaller slowdowns are not called regressions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// Relative slowdown Δ, 0.0002–0.5; at least two margins. A case passes only if the measurement
    /// excludes such a slowdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// Maximum probability that the gate calls any regression in a suite of unchanged kernels, 0.000001–0.2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// Relative increase of a count that passes, 0–1. It applies only on the emulated device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count_margin: Option<f64>,
    /// Effect of an inconclusive case on the suite: `fail`, `warn` or `pass`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_inconclusive: Option<OnInconclusive>,
    /// Whether the case is advisory: it never fails the suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advisory: Option<bool>,
}

impl Suite {
    /// Parses a suite in YAML or JSON.
    ///
    /// # Errors
    ///
    /// Returns an error for invalid syntax, unknown keys, values out of range, duplicate names, or
    /// a suite without cases. The error names the field and a remedy.
    pub fn parse(bytes: &[u8]) -> Result<Self, SuiteError> {
        let file: SuiteFile =
            warpgauge_contract::parse(BodyFormat::Yaml, bytes).map_err(SuiteError::Parse)?;
        Self::checked(file)
    }

    pub(super) fn checked(file: SuiteFile) -> Result<Self, SuiteError> {
        if file.version != VERSION {
            let message =
                format!("is {}; this program reads version {VERSION} of the format", file.version);
            return Err(refused("version", message));
        }
        if file.cases.is_empty() {
            return Err(refused("cases", "is empty; name at least one case"));
        }
        if file.cases.len() > MAX_CASES {
            let message =
                format!("has {} entries; split suites of more than {MAX_CASES}", file.cases.len());
            return Err(refused("cases", message));
        }
        let preset = file.preset.unwrap_or(PresetName::Ci);
        let defaults = file.defaults.over(preset_policy(preset));
        defaults.check("defaults")?;
        let mut names = BTreeSet::new();
        let mut cases = Vec::new();
        for (index, case) in file.cases.into_iter().enumerate() {
            let case = case.checked(&format!("cases[{index}]"), defaults)?;
            if !names.insert(case.name.clone()) {
                let message =
                    format!("{:?} is the name of an earlier case; names must be unique", case.name);
                return Err(refused(&format!("cases[{index}].name"), message));
            }
            cases.push(case);
        }
        Ok(Self { preset, on_missing: file.on_missing, defaults, cases })
    }
}

impl CaseSpec {
    /// Returns a case that only the baseline has, with its policy.
    pub fn removed(name: String, policy: CasePolicy) -> Self {
        Self { name, contract: String::new(), source: None, metric: GateMetric::Time, policy }
    }
}

impl CaseFile {
    fn checked(self, at: &str, defaults: CasePolicy) -> Result<CaseSpec, SuiteError> {
        let fits = (1..=MAX_NAME_BYTES).contains(&self.name.len())
            && !self.name.chars().any(warpgauge_model::is_hidden)
            && self.name.trim() == self.name;
        if !fits {
            let message = format!(
                "must be 1 to {MAX_NAME_BYTES} printable bytes with no space at either end"
            );
            return Err(refused(&format!("{at}.name"), message));
        }
        check_path(&format!("{at}.contract"), &self.contract)?;
        if let Some(source) = &self.source {
            check_path(&format!("{at}.source"), source)?;
        }
        let name = self.metric.as_deref().unwrap_or("time");
        let metric = GateMetric::parse(name).ok_or_else(|| {
            let known = COMPARED_COUNTS.join(", ");
            refused(&format!("{at}.metric"), format!("must be `time`, or a count: {known}"))
        })?;
        let policy = self.policy.over(defaults);
        policy.check(&format!("{at}.policy"))?;
        Ok(CaseSpec {
            name: self.name,
            contract: self.contract,
            source: self.source,
            metric,
            policy,
        })
    }
}

impl PolicyFile {
    fn over(self, below: CasePolicy) -> CasePolicy {
        CasePolicy {
            margin: self.margin.unwrap_or(below.margin),
            delta: self.delta.unwrap_or(below.delta),
            alpha: self.alpha.unwrap_or(below.alpha),
            count_margin: self.count_margin.unwrap_or(below.count_margin),
            on_inconclusive: self.on_inconclusive.unwrap_or(below.on_inconclusive),
            advisory: self.advisory.unwrap_or(below.advisory),
        }
    }
}

impl From<CasePolicy> for PolicyFile {
    fn from(policy: CasePolicy) -> Self {
        Self {
            margin: Some(policy.margin),
            delta: Some(policy.delta),
            alpha: Some(policy.alpha),
            count_margin: Some(policy.count_margin),
            on_inconclusive: Some(policy.on_inconclusive),
            advisory: Some(policy.advisory),
        }
    }
}

impl CasePolicy {
    fn check(&self, at: &str) -> Result<(), SuiteError> {
        let ranges = [
            ("margin", self.margin, 1e-4..=0.25),
            ("delta", self.delta, 2e-4..=0.5),
            ("alpha", self.alpha, 1e-6..=0.2),
            ("count_margin", self.count_margin, 0.0..=1.0),
        ];
        for (field, value, range) in ranges {
            if !range.contains(&value) {
                let (from, to) = range.into_inner();
                let message =
                    format!("is {value}; it must be a relative value from {from} to {to}");
                return Err(refused(&format!("{at}.{field}"), message));
            }
        }
        if self.delta < 2.0 * self.margin {
            let message = format!(
                "is {}, which is too close to the margin for a confidence interval between them; give at \
                 least two margins ({})",
                self.delta,
                2.0 * self.margin
            );
            return Err(refused(&format!("{at}.delta"), message));
        }
        Ok(())
    }
}

/// Returns the default policy of a preset.
fn preset_policy(preset: PresetName) -> CasePolicy {
    let preset = Preset::builtin(preset);
    CasePolicy {
        margin: preset.compare.margin,
        delta: preset.gate.delta,
        alpha: preset.compare.alpha,
        count_margin: 0.0,
        on_inconclusive: OnInconclusive::Fail,
        advisory: false,
    }
}

fn check_path(at: &str, path: &str) -> Result<(), SuiteError> {
    let relative = Path::new(path).components().all(|part| {
        matches!(part, Component::Normal(_) | Component::CurDir | Component::ParentDir)
    });
    let fits = (1..=MAX_PATH_BYTES).contains(&path.len()) && !path.contains('\0');
    if relative && fits {
        return Ok(());
    }
    Err(refused(
        at,
        "must be a path relative to the suite file, because the baseline uses the \
                     same path",
    ))
}

fn refused(at: &str, message: impl Into<String>) -> SuiteError {
    SuiteError::Value { at: at.to_owned(), message: message.into() }
}

#[cfg(test)]
mod tests;
