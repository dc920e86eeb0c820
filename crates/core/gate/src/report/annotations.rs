//! Annotations of files as workflow commands of GitHub Actions.

use super::words::{self, worst_first};
use super::{CaseReport, GateReport};
use crate::GateOutcome;

/// Maximum number of annotations of one kind that GitHub shows for one step.
const MAX_EACH: usize = 10;

/// Formats an `error` for each case that fails the suite, and a `warning` for other cases that do not pass, worst
/// first. The annotation of a case without a file names no file.
pub(super) fn annotations(report: &GateReport) -> String {
    let cases = worst_first(&report.cases);
    let loud = |case: &&&CaseReport| {
        !matches!(case.outcome, GateOutcome::Pass | GateOutcome::Improved | GateOutcome::New)
    };
    let loud: Vec<&CaseReport> = cases.iter().filter(loud).copied().collect();
    let mut text = String::new();
    for (command, blocking) in [("error", true), ("warning", false)] {
        for case in loud.iter().filter(|case| case.blocking == blocking).take(MAX_EACH) {
            text.push_str(&annotation(command, case));
        }
    }
    text
}

fn annotation(command: &str, case: &CaseReport) -> String {
    let outcome = words::outcome(case.outcome);
    let title = property(&format!("{}: {outcome}", case.name));
    let place = case
        .file
        .as_deref()
        .map(|file| format!("file={},line={},", property(file), case.line.unwrap_or(1)));
    let mut message = words::why(case);
    let measured = words::measured(case);
    if !measured.is_empty() {
        message = format!("{message}; {measured}");
    }
    format!("::{command} {}title={title}::{}\n", place.unwrap_or_default(), data(&message))
}

/// Escapes the message of a command, which ends at the end of its line.
fn data(text: &str) -> String {
    let text: String =
        text.chars().map(|c| if warpgauge_model::is_hidden(c) { ' ' } else { c }).collect();
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a command, which ends with `,` or `::`.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
