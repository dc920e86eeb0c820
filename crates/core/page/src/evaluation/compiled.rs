//! The compilation: errors at their lines, options, resources, launch, and the artifacts of the job.

use maud::{Markup, html};
use warpgauge_model::{Diagnostic, Severity};
use warpgauge_report::EvaluateResponse;

use crate::built;
use crate::document::Links;
use crate::parts::{self, Scope, Tone};
use crate::text;

/// The maximum number of compiler messages that are shown.
const MAX_DIAGNOSTICS: usize = 50;

/// The maximum number of compiler options that are shown.
const MAX_OPTIONS: usize = 50;

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

/// Shows how the kernel was built and launched, and its code.
pub(super) fn built(scope: Scope<'_>, report: &EvaluateResponse, links: &Links) -> Markup {
    let Some(compile) = &report.compile else { return html! {} };
    if !report.kernel_exec_result.compiled {
        return html! {};
    }
    let note = html! {
        @if let Some(launch) = &report.launch {
            "grid " (built::extents(launch.grid)) ", block " (built::extents(launch.block)) "; "
        }
        (text::name(&compile.compiler))
        @if compile.cache_hit { ", from the cache" }
    };
    let symbol =
        Some(("symbol", text::code(&compile.symbol))).filter(|_| !compile.symbol.is_empty());
    let facts = built::facts(report).into_iter().filter_map(|(name, value)| {
        let value = value?;
        let shown = if name == "options" { options(&compile.options) } else { text::name(&value) };
        Some((name, shown))
    });
    scope.section("build", "Build and launch").note(note).with(html! {
        (parts::facts(symbol.into_iter().chain(facts).collect()))
        @if !compile.diagnostics.is_empty() { (listed(&compile.diagnostics)) }
        (artifacts(links))
    })
}

fn options(options: &[String]) -> Markup {
    html! {
        @for (index, option) in options.iter().take(MAX_OPTIONS).enumerate() {
            @if index > 0 { " " }
            (text::code(option))
        }
        @if options.len() > MAX_OPTIONS { " and " (options.len() - MAX_OPTIONS) " more" }
    }
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
