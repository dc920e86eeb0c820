//! Phrases that several formats share.

use super::{CaseReport, GateReport};
use crate::{GateOutcome, GateReason};
use warpgauge_report::CountComparison;
use warpgauge_statistics::paired::PairedComparison;

/// Maximum length of a detail in a table, characters.
const MAX_DETAIL: usize = 300;

/// Returns the name of an outcome.
pub fn outcome(outcome: GateOutcome) -> &'static str {
    match outcome {
        GateOutcome::Pass => "PASS",
        GateOutcome::Improved => "IMPROVED",
        GateOutcome::Inconclusive => "INCONCLUSIVE",
        GateOutcome::Error => "ERROR",
        GateOutcome::Missing => "MISSING",
        GateOutcome::New => "NEW",
        GateOutcome::Regression => "REGRESSION",
        GateOutcome::Invalid => "INVALID",
    }
}

/// Orders cases by their outcome, worst first. Among equal outcomes, cases that fail the suite come first, then those
/// with the largest increase.
pub(super) fn worst_first(cases: &[CaseReport]) -> Vec<&CaseReport> {
    let rank = |case: &CaseReport| match case.outcome {
        GateOutcome::Invalid => 0,
        GateOutcome::Regression => 1,
        GateOutcome::Missing => 2,
        GateOutcome::Error => 3,
        GateOutcome::Inconclusive => 4,
        GateOutcome::New => 5,
        GateOutcome::Improved => 6,
        GateOutcome::Pass => 7,
    };
    let mut ordered = cases.iter().collect::<Vec<_>>();
    ordered.sort_by(|a, b| {
        // Cases that fail the suite come first.
        (rank(a), !a.blocking)
            .cmp(&(rank(b), !b.blocking))
            .then(increase(b).total_cmp(&increase(a)))
    });
    ordered
}

/// Returns the largest ratio of a case's time or counts to the baseline's; 0 if there is none.
fn increase(case: &CaseReport) -> f64 {
    let time = case.comparison.as_ref().and_then(|comparison| comparison.time);
    let ratios = time.map(|time| time.ratio).into_iter();
    ratios.chain(case.counts.iter().filter_map(|count| count.ratio)).fold(0.0, f64::max)
}

/// Describes a reason.
pub(super) fn reason(reason: GateReason) -> &'static str {
    match reason {
        GateReason::Confirmed => "slower by more than the margin, and again in fresh processes",
        GateReason::NotConfirmed => "slower at first, not confirmed",
        GateReason::IdenticalCode => "the same machine code and launch, not measured",
        GateReason::WithinDelta => "no relevant slowdown",
        GateReason::Faster => "faster by more than the margin",
        GateReason::Unresolved => "too noisy to exclude a relevant slowdown",
        GateReason::Unsound => "the measurement does not support a verdict",
        GateReason::OnlyRight => "correct; its time is not compared",
        GateReason::CountsWithin => "counts within their margin",
        GateReason::MoreWork => "a count grew by more than its margin",
        GateReason::LessWork => "a count fell, and none grew",
        GateReason::TradedWork => "one count grew, another fell",
        GateReason::CandidateWrong => "the candidate is not correct",
        GateReason::NotOnBothSides => "the candidate lacks the case",
        GateReason::NewCase => "a new case",
        GateReason::BaselineBroken => "the baseline's kernel is broken, the candidate's is not",
        GateReason::NotMeasured => "could not be measured",
    }
}

/// Returns the reason for a case's outcome and its caveats, on one line of bounded length.
pub fn why(case: &CaseReport) -> String {
    let mut text = reason(case.reason).to_owned();
    if !case.detail.is_empty() {
        text.push_str(&format!(": {}", shortened(&case.detail)));
    }
    if !case.weaker_for.is_empty() {
        text.push_str(" (inputs do not vary: weaker evidence)");
    }
    text
}

/// Returns a text on one line of bounded length.
pub(super) fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text = line.chars().take(MAX_DETAIL).collect::<String>();
    if line.chars().nth(MAX_DETAIL).is_some() {
        text.push('…');
    }
    text
}

/// Formats a ratio as a signed percentage.
pub(super) fn change(ratio: f64) -> String {
    format!("{:+.2} %", 100.0 * (ratio - 1.0))
}

/// Formats the change of a case: of its time, with the interval, or of each count.
pub fn measured(case: &CaseReport) -> String {
    if let Some(time) = case.comparison.as_ref().and_then(|comparison| comparison.time) {
        return format!(
            "{} [{}, {}]",
            change(time.ratio),
            change(time.ci_low),
            change(time.ci_high)
        );
    }
    let counts = case.counts.iter().map(|one| format!("{} {}", one.count, count_change(one)));
    let own = case.candidate_counts.iter().map(|(name, count)| format!("{name} {count}"));
    let counts = counts.chain(own).collect::<Vec<_>>().join(", ");
    if counts.is_empty() && case.reason == GateReason::IdenticalCode {
        return reason(case.reason).to_owned();
    }
    counts
}

/// Formats the change of a count. The difference is exact.
pub(super) fn count_change(one: &CountComparison) -> String {
    let difference = i128::from(one.candidate) - i128::from(one.reference);
    match one.ratio {
        _ if difference == 0 => format!("{} (same)", one.candidate),
        Some(ratio) => {
            format!("{} → {} ({difference:+}, {})", one.reference, one.candidate, change(ratio))
        }
        None => format!("{} → {} ({difference:+})", one.reference, one.candidate),
    }
}

/// Formats the minimum detectable effect in percent.
pub(super) fn detectable(case: &CaseReport) -> Option<String> {
    let found = |comparison: &PairedComparison| comparison.minimum_detectable_effect;
    let effect = case.comparison.as_ref().and_then(found)?;
    Some(format!("{:.2} %", 100.0 * effect))
}

/// Returns the name of the baseline for people.
pub(super) fn baseline(report: &GateReport) -> String {
    match &report.baseline.commit {
        Some(commit) => {
            let short = commit.get(..12).unwrap_or(commit);
            format!("{} ({short})", report.baseline.name)
        }
        None => report.baseline.name.clone(),
    }
}

/// Returns the name of the device for people.
pub(super) fn device(report: &GateReport) -> String {
    report.device.as_ref().map_or("no device".to_owned(), |device| device.name.clone())
}

/// Formats the numbers of the outcomes that occur, worst first.
pub(super) fn totals(report: &GateReport) -> String {
    let totals = report.totals;
    let parts = [
        (totals.invalid, "invalid"),
        (totals.regression, "regression"),
        (totals.missing, "missing"),
        (totals.error, "error"),
        (totals.inconclusive, "inconclusive"),
        (totals.new, "new"),
        (totals.improved, "improved"),
        (totals.pass, "pass"),
    ];
    let some = parts.iter().filter(|(count, _)| *count > 0);
    some.map(|(count, name)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

/// Returns whether a text is the URL of a page, and not a script.
pub(super) fn is_web(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with("https://")
}
