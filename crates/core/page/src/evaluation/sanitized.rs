//! The findings of memory checks.

use maud::{Markup, html};
use warpgauge_report::{EvaluateResponse, Finding};

use crate::parts::{self, Scope, Tone};
use crate::text;

/// The maximum number of findings that are shown.
const MAX_FINDINGS: usize = 50;

pub(super) fn findings(scope: Scope<'_>, report: &EvaluateResponse) -> Markup {
    let Some(sanitize) = &report.sanitize else { return html! {} };
    let count = sanitize.findings.len();
    let tone = if count > 0 { Tone::Bad } else { Tone::Plain };
    let note = html! {
        @if !sanitize.available { "not available" }
        @else if count == 0 { "no findings" }
        @else { (text::counted(count, "finding")) }
        @if let Some(source) = &sanitize.source { ", by " (text::name(source)) }
    };
    scope.section("memory-checks", "Memory checks").tone(tone).open(count > 0).note(note).with(html! {
        @if let Some(reason) = &sanitize.reason { p { (text::message(reason)) } }
        @for one in sanitize.findings.iter().take(MAX_FINDINGS) { (finding(one)) }
        (parts::more(count, MAX_FINDINGS, "findings"))
        @if !sanitize.checks.is_empty() {
            ul.plain {
                @for check in &sanitize.checks {
                    li {
                        code { (check.tool) }
                        @match &check.unavailable {
                            Some(why) => { ": " (text::message(&why.reason)) ". " (text::message(&why.remedy)) }
                            None => ": completed",
                        }
                        @if let Some(ms) = check.wall_ms { " in " (text::time(ms)) }
                        @if let Some(left_out) = check.left_out {
                            "; " (text::grouped(left_out)) " findings are omitted"
                        }
                    }
                }
            }
        }
    })
}

fn finding(finding: &Finding) -> Markup {
    let at = |index: [u32; 3]| format!("({}, {}, {})", index[0], index[1], index[2]);
    html! {
        div.finding.bad {
            p {
                strong { (finding.check.replace('_', " ")) }
                @match &finding.source {
                    Some(source) => { " at " (text::code(source)) }
                    None => " at an unknown line",
                }
                @if finding.count > 1 { ", " (text::grouped(finding.count)) " times" }
            }
            p { (text::message(&finding.message)) }
            p.small.dim {
                "kernel " (text::code(&finding.kernel))
                @if let Some(block) = finding.block { ", block " (at(block)) }
                @if let Some(thread) = finding.thread { ", thread " (at(thread)) }
            }
        }
    }
}
