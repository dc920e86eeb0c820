//! Plain text for a terminal.

use super::{GateReport, words};
use crate::GateOutcome;

/// Formats the whole result as lines of plain text.
pub fn text(report: &GateReport) -> String {
    let width = report.cases.iter().map(|case| case.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for case in &report.cases {
        let name = &case.name;
        let advisory = if case.policy.advisory { " (advisory)" } else { "" };
        text.push_str(&format!("{:<12}  {name:<width$}", words::outcome(case.outcome)));
        let measured = words::measured(case);
        if !measured.is_empty() {
            text.push_str(&format!("  {measured}"));
        }
        text.push_str(&format!("{advisory}\n"));
        if !matches!(case.outcome, GateOutcome::Pass | GateOutcome::Improved) {
            text.push_str(&format!("              {}\n", words::why(case)));
        }
        if let Some(effect) = words::detectable(case) {
            text.push_str(&format!("              detects slowdowns of {effect} or more\n"));
        }
    }
    text.push_str(&format!(
        "\n{}: {} on {}, against {}; {:.1} s\n{}\n",
        report.verdict.name(),
        words::totals(report),
        words::device(report),
        words::baseline(report),
        report.duration_s,
        report.statement,
    ));
    if let Some(job_id) = &report.job_id {
        text.push_str(&format!("job {job_id}\n"));
    }
    if let Some(page) = &report.page {
        text.push_str(&format!("page {page}\n"));
    }
    for note in &report.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}
