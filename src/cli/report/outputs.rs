//! Rows about outputs: the mismatches of incorrect outputs, and the errors of correct ones.

use super::super::terminal::plain;
use super::page::{Page, Tone};
use warpgauge_report::EvaluateResponse;
use warpgauge_validate::{Comparison, Reason};

/// Maximum number of mismatches that are shown for one output.
const MAX_MISMATCHES: usize = 5;

/// Maximum number of outputs whose errors are shown.
const MAX_OUTPUTS: usize = 6;

/// Adds the reasons that are contained neither in the verdict nor in the rows about incorrect
/// outputs.
pub(super) fn reasons(page: &mut Page, response: &EvaluateResponse) {
    let line = response.verdict_line(None);
    let outputs = &response.validation.outputs;
    let listed = outputs.iter().filter_map(|(name, one)| Reason::of_comparison(name, one));
    let listed = listed.collect::<Vec<_>>();
    let is_said = |reason: &Reason| {
        line.contains(&reason.message) || listed.iter().any(|one| one.message == reason.message)
    };
    for reason in response.validation.reasons.iter().filter(|reason| !is_said(reason)) {
        page.row("reason", &format!("{} [{}]", reason.message, reason.code));
    }
}

/// Adds a correct output and its tolerance.
pub(super) fn check(page: &mut Page, name: &str, comparison: &Comparison) {
    let word = page.paint(Tone::Good, "ok");
    page.row_painted(
        "check",
        &format!(
            "{} {word}: {} of {} elements match",
            plain(name),
            comparison.matched,
            comparison.elements
        ),
    );
    page.more(&error_and_tolerance(comparison));
    match comparison.non_finite_matched {
        0 => {}
        1 => page.more("1 element is NaN or infinite, as expected there"),
        n => page.more(&format!("{n} elements are NaN or infinite, as expected there")),
    }
}

fn error_and_tolerance(comparison: &Comparison) -> String {
    let tolerance = &comparison.tolerance;
    format!(
        "largest error {:.3e} absolute, {:.3e} relative; tolerance atol {:e}, rtol {:e}",
        comparison.max_abs_error, comparison.max_rel_error, tolerance.atol, tolerance.rtol
    )
}

/// Adds positions and examples of the mismatches in an incorrect output. The verdict contains the
/// number of mismatches.
fn mismatch(page: &mut Page, name: &str, comparison: &Comparison) {
    let mut lines = Vec::new();
    let wrong = comparison.elements.saturating_sub(comparison.matched);
    let is_unwritten = comparison.unwritten > 0 && comparison.unwritten == wrong;
    match (&comparison.pattern, is_unwritten) {
        (Some(pattern), true) => {
            lines.push(format!("`{name}`: {pattern} never written: does the grid cover them?"));
        }
        (None, true) if wrong == comparison.elements => {
            lines.push(format!("`{name}`: nothing was written"));
        }
        (None, true) => {
            lines.push(format!("`{name}`: elements never written: does the grid cover them?"));
        }
        (Some(pattern), false) => lines.push(format!("`{name}`: {pattern}")),
        (None, false) => {}
    }
    if comparison.half_precision {
        lines.push(format!("every number in `{name}` is exact in float16, but the reference's numbers need more bits"));
    }
    // If an element was never written, its value is meaningless.
    let examples = if is_unwritten { 1 } else { MAX_MISMATCHES };
    for mismatch in comparison.first_mismatches.iter().take(examples) {
        let index: Vec<String> = mismatch.index.iter().map(u64::to_string).collect();
        let place = format!("{name}[{}]", index.join(", "));
        let is = if is_unwritten { "was not written" } else { &format!("is {}", mismatch.actual) };
        lines.push(format!("{place} {is}, expected {}", mismatch.expected));
    }
    if comparison.max_abs_error > 0.0 && !is_unwritten {
        lines.push(error_and_tolerance(comparison));
    }
    for (index, line) in lines.iter().enumerate() {
        page.row(if index == 0 { "mismatch" } else { "" }, line);
    }
}

/// Adds the largest error of each output that passes. `name` is the name of the kernel if there are
/// several kernels. Incorrect outputs have separate rows.
pub(super) fn errors(page: &mut Page, response: &EvaluateResponse, name: Option<&str>) {
    let name = name.map_or(String::new(), |name| format!("{name}: "));
    let passed = || response.validation.outputs.iter().filter(|(_, one)| one.passed);
    for (index, (output, one)) in passed().take(MAX_OUTPUTS).enumerate() {
        let label = if index == 0 { "error" } else { "" };
        let text = match one.max_abs_error {
            0.0 => "none".to_owned(),
            error => {
                format!("at most {error:.3e} absolute, {:.3e} relative", one.max_rel_error)
            }
        };
        page.row(label, &format!("{name}`{output}` {text}"));
    }
    match passed().count().saturating_sub(MAX_OUTPUTS) {
        0 => {}
        more => page.more(&format!("{more} more outputs (all with --json)")),
    }
}

/// Adds the outputs that are incorrect.
pub(super) fn failed_checks(page: &mut Page, response: &EvaluateResponse) {
    let failed = response.validation.outputs.iter().filter(|(_, one)| !one.passed);
    failed.for_each(|(name, comparison)| mismatch(page, name, comparison));
}
