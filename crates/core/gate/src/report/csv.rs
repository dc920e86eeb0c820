//! Comma-separated values, with one row per case, or one row per count if a case has counts.

use super::{CaseReport, GateReport, RenderError, words};
use warpgauge_report::CountComparison;

/// Columns, in order.
pub(super) const COLUMNS: [&str; 15] = [
    "case",
    "metric",
    "outcome",
    "blocking",
    "advisory",
    "baseline",
    "candidate",
    "ratio",
    "ci_low",
    "ci_high",
    "margin",
    "delta",
    "adjusted_p",
    "minimum_detectable_effect",
    "why",
];

/// Formats the report as CSV. `baseline` and `candidate` are milliseconds or counts.
pub(super) fn csv(report: &GateReport) -> Result<String, RenderError> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS)?;
    for case in &report.cases {
        for (count, value) in &case.candidate_counts {
            writer.write_record(new(case, count, *value))?;
        }
        if case.counts.is_empty() && case.candidate_counts.is_empty() {
            writer.write_record(timed(case))?;
        }
        for count in &case.counts {
            writer.write_record(counted(case, count))?;
        }
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn timed(case: &CaseReport) -> [String; 15] {
    let time = case.comparison.as_ref().and_then(|comparison| comparison.time);
    let effect = case.comparison.as_ref().and_then(|it| it.minimum_detectable_effect);
    row(
        case,
        &case.metric,
        [number(case.baseline_ms), number(case.candidate_ms)],
        [time.map(|it| it.ratio), time.map(|it| it.ci_low), time.map(|it| it.ci_high)],
        [case.policy.margin, case.policy.delta],
        effect,
    )
}

fn counted(case: &CaseReport, count: &CountComparison) -> [String; 15] {
    row(
        case,
        &count.count,
        [count.reference.to_string(), count.candidate.to_string()],
        [count.ratio; 3],
        [case.policy.count_margin; 2],
        None,
    )
}

/// Returns the row for one count of a candidate without a baseline.
fn new(case: &CaseReport, count: &str, value: u64) -> [String; 15] {
    row(
        case,
        count,
        [String::new(), value.to_string()],
        [None; 3],
        [case.policy.count_margin; 2],
        None,
    )
}

fn row(
    case: &CaseReport,
    metric: &str,
    [baseline, candidate]: [String; 2],
    [ratio, low, high]: [Option<f64>; 3],
    [margin, delta]: [f64; 2],
    effect: Option<f64>,
) -> [String; 15] {
    [
        plain(&case.name),
        metric.to_owned(),
        words::outcome(case.outcome).to_owned(),
        case.blocking.to_string(),
        case.policy.advisory.to_string(),
        baseline,
        candidate,
        number(ratio),
        number(low),
        number(high),
        margin.to_string(),
        delta.to_string(),
        number(case.adjusted_p),
        number(effect),
        plain(&words::why(case)),
    ]
}

fn number(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Escapes a text that a spreadsheet would interpret as a formula.
fn plain(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        format!("'{text}")
    } else {
        text.to_owned()
    }
}
