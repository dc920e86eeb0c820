//! Outputs: which elements differ, where, and by how much.

use maud::{Markup, html};
use warpgauge_report::{EvaluateResponse, OutputReport};
use warpgauge_validate::{Comparison, UlpDistribution};

use crate::parts::{self, Scope, Tone};
use crate::{chart, text};

/// The maximum number of outputs that are shown.
const MAX_OUTPUTS: usize = 64;
/// The maximum number of mismatches that are listed for an output.
const MAX_MISMATCHES: usize = 16;

/// Shows the incorrect outputs.
pub(super) fn wrong(scope: Scope<'_>, report: &EvaluateResponse) -> Markup {
    let wrong = || report.validation.outputs.iter().filter(|(_, one)| !one.passed);
    let count = wrong().count();
    html! {
        @if count > 0 {
            (scope.section("outputs", "What is wrong")
                .tone(Tone::Bad)
                .open(true)
                .note(html! { (text::counted(count, "output")) })
                .with(html! {
                    @for (name, comparison) in wrong().take(MAX_OUTPUTS) {
                        (mismatch(name, comparison, report.outputs.get(name)))
                    }
                    (parts::more(count, MAX_OUTPUTS, "outputs"))
                }))
        }
    }
}

fn mismatch(name: &str, comparison: &Comparison, output: Option<&OutputReport>) -> Markup {
    let differ = comparison.elements.saturating_sub(comparison.matched);
    let is_unwritten = comparison.unwritten > 0 && comparison.unwritten == differ;
    // An element that was never written may contain NaN.
    let odd = comparison.non_finite.saturating_sub(comparison.unwritten);
    let shape = output.map_or(&[][..], |output| &output.shape);
    let map = comparison.mismatch_map.as_ref().and_then(chart::density);
    html! {
        h3 { (text::code(name)) " " span.dim { (described(output)) } }
        p {
            strong { (text::grouped(differ)) " of " (text::grouped(comparison.elements)) " elements "
                @if is_unwritten { "were never written" } @else { "differ" } }
            @if let Some(pattern) = &comparison.pattern { ": " (text::message(pattern)) } "."
            @if is_unwritten { " Does the grid cover them?" }
            @if !is_unwritten && comparison.unwritten > 0 {
                " Of these, " (text::grouped(comparison.unwritten)) " were never written."
            }
            @if odd > 0 {
                " " (text::grouped(odd)) " are NaN or infinite."
            }
            @if comparison.half_precision {
                " Every number in the output is exact in float16, but the reference's numbers need more bits."
            }
        }
        @if let Some(svg) = map {
            (parts::figure(svg, html! {
                "Where the wrong elements lie. The darker a cell, the larger its share of wrong elements."
                @if shape.len() > 2 {
                    " Rows are counted over all dimensions but the last."
                }
            }))
        } @else {
            (first_places(shape, comparison, differ))
        }
        (mismatches(name, comparison, is_unwritten))
        @if !is_unwritten { (errors(comparison)) }
    }
}

/// Draws the listed mismatches, for a report without a map of all mismatches.
fn first_places(shape: &[u64], comparison: &Comparison, differ: u64) -> Markup {
    let listed = comparison.first_mismatches.len() as u64;
    html! {
        @if let Some(svg) = chart::first_places(shape, &comparison.first_mismatches) {
            (parts::figure(svg, html! {
                "Positions of the first " (listed) " mismatches in the plane of the last two dimensions."
                @if differ > listed {
                    " The report does not contain the places of the other "
                    (text::grouped(differ - listed)) "."
                }
            }))
        }
    }
}

fn described(output: Option<&OutputReport>) -> String {
    let Some(output) = output else { return String::new() };
    let shape = output.shape.iter().map(|side| text::grouped(*side)).collect::<Vec<_>>();
    format!("{} [{}]", text::word(&output.dtype), shape.join(" × "))
}

fn mismatches(name: &str, comparison: &Comparison, is_unwritten: bool) -> Markup {
    let head = [("element", false), ("is", true), ("expected", true)];
    let listed = &comparison.first_mismatches;
    let rows = listed.iter().take(MAX_MISMATCHES).map(|one| {
        let index = one.index.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        html! { tr {
            td { code { (text::shown(name, text::NAME)) "[" (index) "]" } }
            td.num { @if is_unwritten { "not written" } @else { (text::name(&one.actual)) } }
            td.num { (text::name(&one.expected)) }
        } }
    });
    html! {
        @if !listed.is_empty() {
            (parts::table("First mismatches", &head, rows))
            (parts::more(listed.len(), MAX_MISMATCHES, "mismatches"))
        }
    }
}

/// Shows the errors and the tolerance of an output.
fn errors(comparison: &Comparison) -> Markup {
    let tolerance = &comparison.tolerance;
    let mut rows = vec![
        (
            "largest error",
            html! {
                span.num { (exponent(comparison.max_abs_error)) } " absolute, "
                span.num { (exponent(comparison.max_rel_error)) } " relative"
            },
        ),
        (
            "tolerance",
            html! {
                span.num { (exponent(tolerance.atol)) } " absolute, "
                span.num { (exponent(tolerance.rtol)) } " relative (" (text::word(&tolerance.basis)) ")"
                @if tolerance.required_matched_ratio < 1.0 {
                    ", " (text::percent(tolerance.required_matched_ratio)) " must match"
                }
            },
        ),
    ];
    if let Some(ulp) = comparison.ulp.as_ref().filter(|ulp| ulp.max > 0) {
        rows.push(("in units in the last place", units(ulp)));
    }
    parts::facts(rows)
}

fn units(ulp: &UlpDistribution) -> Markup {
    html! {
        "half at most " (text::grouped(ulp.p50)) ", 99" "\u{202f}" "% at most " (text::grouped(ulp.p99))
        ", largest " (text::grouped(ulp.max))
    }
}

/// Formats an error as `0`, or with four digits and an exponent.
fn exponent(error: f64) -> String {
    if error == 0.0 { "0".to_owned() } else { format!("{error:.3e}") }
}

/// Shows the correct outputs, with their errors.
pub(super) fn passed(scope: Scope<'_>, report: &EvaluateResponse) -> Markup {
    let validation = &report.validation;
    let passed = || validation.outputs.iter().filter(|(_, one)| one.passed);
    let count = passed().count();
    let worst = passed().map(|(_, one)| one.max_abs_error).max_by(f64::total_cmp);
    let note = html! {
        (text::counted(count, "output")) " checked"
        @match worst {
            Some(0.0) => ", no error",
            Some(error) => { ", largest error " (exponent(error)) }
            None => {}
        }
    };
    let head = [
        ("output", false),
        ("elements", true),
        ("largest error", true),
        ("relative", true),
        ("tolerance", true),
        ("relative", true),
    ];
    let rows = passed().take(MAX_OUTPUTS).map(|(name, one)| {
        html! { tr {
            td { (text::code(name)) " " span.dim { (described(report.outputs.get(name))) } }
            td.num { (text::grouped(one.elements)) }
            td.num { (exponent(one.max_abs_error)) }
            td.num { (exponent(one.max_rel_error)) }
            td.num { (exponent(one.tolerance.atol)) }
            td.num { (exponent(one.tolerance.rtol)) }
        } }
    });
    html! {
        @if count > 0 {
            (scope.section("checked", "Accuracy").note(note).with(html! {
                (parts::table("Errors of outputs", &head, rows))
                (parts::more(count, MAX_OUTPUTS, "outputs"))
            }))
        }
    }
}
