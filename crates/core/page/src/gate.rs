//! The page of a gate run.

use maud::{Markup, PreEscaped, html};
use warpgauge_gate::report::{CaseReport, GateReport, case_change, case_reason, intervals};
use warpgauge_gate::{GateOutcome, SuiteVerdict};

use crate::document::Content;
use crate::parts::{self, Section, Tone};
use crate::text;

/// Creates the page of a gate run.
pub(crate) fn content(report: &GateReport) -> Content {
    let (tone, word) = decision(report.verdict);
    let device = report
        .device
        .as_ref()
        .map(|device| html! { span.dim.small { (text::name(&device.name)) } });
    let statement = html! { (text::message(&report.statement)) };
    let sentences = [Some(statement), device].into_iter().flatten().collect::<Vec<_>>();
    let heading =
        html! { (text::code(&report.suite)) " against " (text::code(&report.baseline.name)) };
    let job = report.job_id.as_deref().unwrap_or_default();
    Content {
        title: format!("{word}: {}", report.suite),
        about: html! { "gate " span.mono { (text::name(job)) } },
        refresh: None,
        main: html! {
            (parts::verdict(tone, word, heading, &sentences))
            (cases(report))
            (run(report))
        },
    }
}

/// Returns the tone and the word of a decision.
pub(crate) fn decision(verdict: SuiteVerdict) -> (Tone, &'static str) {
    match verdict {
        SuiteVerdict::Pass => (Tone::Good, "pass"),
        SuiteVerdict::Inconclusive => (Tone::Doubt, "inconclusive"),
        SuiteVerdict::Error => (Tone::Doubt, "error"),
        SuiteVerdict::Regression => (Tone::Bad, "regression"),
        SuiteVerdict::Invalid => (Tone::Bad, "invalid"),
    }
}

/// Returns the tone of a case's outcome.
pub(crate) fn tone(outcome: GateOutcome) -> Tone {
    match outcome {
        GateOutcome::Pass | GateOutcome::Improved => Tone::Good,
        GateOutcome::New | GateOutcome::Inconclusive | GateOutcome::Error => Tone::Doubt,
        GateOutcome::Missing | GateOutcome::Regression | GateOutcome::Invalid => Tone::Bad,
    }
}

/// Shows all cases, the worst first. The gate limits their number.
fn cases(report: &GateReport) -> Markup {
    let mut cases = report.cases.iter().collect::<Vec<&CaseReport>>();
    cases.sort_by_key(|case| (std::cmp::Reverse(case.outcome), std::cmp::Reverse(case.blocking)));
    let timed = cases.iter().any(|case| case.baseline_ms.is_some() || case.candidate_ms.is_some());
    let first = [("case", false), ("outcome", false), ("change", false)];
    let times = [("baseline", true), ("candidate", true)].into_iter().filter(|_| timed);
    let head = first.into_iter().chain(times).chain([("why", false)]).collect::<Vec<_>>();
    let rows = cases.iter().map(|case| {
        html! { tr {
            td.wide { (text::code(&case.name)) }
            td {
                (parts::tag(tone(case.outcome), &text::word(&case.outcome).to_lowercase()))
                @if case.policy.advisory { " advisory" }
            }
            td.wide { (text::message(&case_change(case))) }
            @if timed {
                td.num { @if let Some(ms) = case.baseline_ms { (text::time(ms)) } }
                td.num { @if let Some(ms) = case.candidate_ms { (text::time(ms)) } }
            }
            td.wide { (text::message(&case_reason(case))) }
        } }
    });
    Section::new("cases", "Cases")
        .open(true)
        .note(html! { (text::counted(report.cases.len(), "case")) })
        .with(html! {
            @if let Some(drawn) = intervals(&report.cases) {
                figure.chart tabindex="0" {
                    // Elements of the drawing library escape their texts.
                    (PreEscaped(drawn.svg))
                    figcaption { "The change of each case, with its interval. " (drawn.caption) }
                }
            }
            (parts::table("Cases", &head, rows))
        })
}

fn run(report: &GateReport) -> Markup {
    let mut rows = vec![
        (
            "baseline",
            html! { (text::code(&report.baseline.name)) ", " (text::word(&report.baseline.kind)) },
        ),
        ("duration", html! { (text::time(report.duration_s * 1e3)) }),
        ("version", text::name(&report.warpgauge_version)),
    ];
    if let Some(commit) = &report.baseline.commit {
        rows.push(("commit of the baseline", text::code(commit)));
    }
    if let Some(commit) = &report.commit {
        rows.push(("commit of the candidate", text::code(commit)));
    }
    Section::new("run", "The run").with(html! {
        (parts::facts(rows))
        @if !report.notes.is_empty() {
            ul.plain { @for note in report.notes.iter().take(50) { li { (text::message(note)) } } }
        }
    })
}
