//! The compilation: errors at their lines, resources, and the artifacts of the job.

use maud::{Markup, html};
use warpgauge_model::{Diagnostic, Severity};
use warpgauge_report::readable::bytes;
use warpgauge_report::{CompileReport, EvaluateResponse};

use crate::document::Links;
use crate::parts::{self, Scope, Tone};
use crate::text;

/// The maximum number of compiler messages that are shown.
const MAX_DIAGNOSTICS: usize = 50;

/// Shows why the kernel does not compile.
pub(super) fn errors(scope: Scope<'_>, report: &EvaluateResponse) -> Markup {
    let result = &report.kernel_exec_result;
    let is_known = result.compilation_error.is_some() || report.compile.is_some();
    if result.compiled || !is_known {
        return html! {};
    }
    let diagnostics = report.compile.as_ref().map_or(&[][..], |compile| &compile.diagnostics);
    let log = report.compile.as_ref().map_or("", |compile| &compile.log);
    let errors = diagnostics.iter().filter(|one| one.severity == Severity::Error).count();
    let note = html! { @if errors > 0 { (text::counted(errors, "error")) } };
    let section = scope.section("compiler", "Why it does not compile").tone(Tone::Bad).open(true);
    section.note(note).with(html! {
        @if diagnostics.is_empty() {
            (text::block(result.compilation_error.as_deref().unwrap_or("the compiler wrote nothing"), "wrap"))
        } @else {
            (listed(diagnostics))
        }
        @if !log.is_empty() {
            details.more { summary { "The complete compiler log" } (text::block(log, "wrap")) }
        }
    })
}

fn listed(diagnostics: &[Diagnostic]) -> Markup {
    html! {
        @for one in diagnostics.iter().take(MAX_DIAGNOSTICS) { (diagnostic(one)) }
        (parts::more(diagnostics.len(), MAX_DIAGNOSTICS, "messages"))
    }
}

/// Shows a message with its location. Lines after the first one show the source.
fn diagnostic(diagnostic: &Diagnostic) -> Markup {
    let (tone, word) = match diagnostic.severity {
        Severity::Error => (Tone::Bad, "error"),
        Severity::Warning => (Tone::Doubt, "warning"),
        Severity::Note => (Tone::Plain, "note"),
    };
    let place = [
        diagnostic.file.clone(),
        diagnostic.line.map(|line| line.to_string()),
        diagnostic.column.map(|column| column.to_string()),
    ];
    let place = place.into_iter().flatten().collect::<Vec<_>>().join(":");
    let (first, source) = match diagnostic.message.split_once('\n') {
        Some((first, source)) => (first, Some(source)),
        None => (&*diagnostic.message, None),
    };
    html! {
        div.finding.(parts::class(tone)) {
            p { (parts::tag(tone, word)) " " @if !place.is_empty() { (text::code(&place)) " " } (text::message(first)) }
            @if let Some(source) = source { (text::block(source, "")) }
        }
    }
}

/// Shows the compilation of a kernel that compiled.
pub(super) fn compilation(scope: Scope<'_>, report: &EvaluateResponse, links: &Links) -> Markup {
    let Some(compile) = &report.compile else { return html! {} };
    if !report.kernel_exec_result.compiled {
        return html! {};
    }
    let note =
        html! { (text::name(&compile.compiler)) @if compile.cache_hit { ", from the cache" } };
    scope.section("compilation", "Compilation and code").note(note).with(html! {
        (parts::facts(resources(compile)))
        @if !compile.diagnostics.is_empty() { (listed(&compile.diagnostics)) }
        (artifacts(links))
    })
}

/// Shows links to the artifacts of the job.
fn artifacts(links: &Links) -> Markup {
    html! {
        @for page in links.code.iter().take(1) {
            p { a href=(links.to(&page.url)) { (text::name(&page.name)) } }
        }
        @if !links.artifacts.is_empty() {
            p { "Artifacts: "
                @for (index, artifact) in links.artifacts.iter().enumerate() {
                    @if index > 0 { ", " }
                    a href=(links.to(&artifact.url)) { (text::name(&artifact.name)) }
                }
            }
        }
        @if let Some(why) = &links.no_artifacts { p { "The artifacts are unknown: " (text::message(why)) } }
    }
}

fn resources(compile: &CompileReport) -> Vec<(&'static str, Markup)> {
    let mut rows = Vec::new();
    if !compile.symbol.is_empty() {
        rows.push(("symbol", text::code(&compile.symbol)));
    }
    if let Some(used) = &compile.resources {
        rows.push(("registers", html! { (used.registers) " per thread" }));
        let shared = text::tight(&bytes(u64::from(used.static_shared_bytes)));
        rows.push(("shared memory", html! { (shared) " static, per block" }));
        let local = text::tight(&bytes(u64::from(used.local_bytes)));
        rows.push(("local memory", html! { (local) " per thread" }));
        if let (Some(stores), Some(loads)) = (used.spill_store_bytes, used.spill_load_bytes) {
            rows.push((
                "spills",
                html! {
                    @if stores + loads == 0 { "none" } @else {
                        (stores) "\u{202f}" "B stored, " (loads) "\u{202f}" "B loaded, per thread"
                    }
                },
            ));
        }
    }
    if let Some(function) = &compile.function {
        rows.push(("resident", html! {
            (text::counted(function.max_active_blocks as usize, "block")) " of this launch per multiprocessor"
        }));
    }
    rows
}
