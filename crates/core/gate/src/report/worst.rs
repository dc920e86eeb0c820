//! The worst case of a run, for lists of runs. The main type is [`WorstCase`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::{change, worst_first};
use super::{CaseReport, GateReport};
use crate::GateOutcome;

/// Maximum length of a name, characters.
const MAX_NAME: usize = 128;

/// Worst case of a run of the gate: its outcome, and its change against its margin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GateWorstCase")]
pub struct WorstCase {
    /// Name of the case, at most 128 characters.
    pub name: String,
    /// Outcome of the case.
    pub outcome: GateOutcome,
    /// Quantity that must not grow: `time`, or the name of the count that grew most.
    pub metric: String,
    /// Time or count of the candidate divided by that of the baseline. Above 1, the candidate needs more. Absent if
    /// nothing was compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Lower end of the confidence interval of `ratio`. Absent for counts, which are exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci_low: Option<f64>,
    /// Upper end of the confidence interval of `ratio`. Absent for counts, which are exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci_high: Option<f64>,
    /// Relative margin of the case: a larger increase is a regression.
    pub margin: f64,
}

impl WorstCase {
    /// Returns the worst case of a report. Returns `None` if the report has no case.
    pub fn of(report: &GateReport) -> Option<Self> {
        worst_first(&report.cases).first().map(|case| Self::of_case(case))
    }

    /// Returns the change with its interval and the margin, such as `+3.00 % [+2.60 %, +3.40 %], margin 0.50 %`.
    /// Returns `None` if nothing was compared.
    pub fn change(&self) -> Option<String> {
        let what = match self.metric.as_str() {
            "time" => String::new(),
            count => format!("{count} "),
        };
        let interval = match (self.ci_low, self.ci_high) {
            (Some(low), Some(high)) => format!(" [{}, {}]", change(low), change(high)),
            _ => String::new(),
        };
        let (ratio, margin) = (change(self.ratio?), 100.0 * self.margin);
        Some(format!("{what}{ratio}{interval}, margin {margin:.2} %"))
    }

    fn of_case(case: &CaseReport) -> Self {
        let name = match case.name.chars().nth(MAX_NAME) {
            Some(_) => case.name.chars().take(MAX_NAME - 1).chain(['…']).collect(),
            None => case.name.clone(),
        };
        let outcome = case.outcome;
        // JSON has no infinite numbers.
        let finite = |number: f64| Some(number).filter(|number| number.is_finite());
        if let Some(time) = case.comparison.as_ref().and_then(|comparison| comparison.time) {
            return Self {
                name,
                outcome,
                metric: "time".to_owned(),
                ratio: finite(time.ratio),
                ci_low: finite(time.ci_low),
                ci_high: finite(time.ci_high),
                margin: case.policy.margin,
            };
        }
        let counted = case.counts.iter().filter_map(|one| Some((one, finite(one.ratio?)?)));
        let most = counted.max_by(|(_, one), (_, other)| one.total_cmp(other));
        let (ci_low, ci_high) = (None, None);
        match most {
            Some((count, ratio)) => Self {
                name,
                outcome,
                metric: count.count.clone(),
                ratio: Some(ratio),
                ci_low,
                ci_high,
                margin: case.policy.count_margin,
            },
            None => Self {
                name,
                outcome,
                metric: case.metric.clone(),
                ratio: None,
                ci_low,
                ci_high,
                margin: case.policy.margin,
            },
        }
    }
}
