//! Formats reports as text. The verdict comes first, then the evidence.

mod comparison;
mod launches;
mod measured;
mod metrics;
mod outputs;
mod page;
mod profile;
mod program;
mod sparkline;
mod timeline;
mod torch;
mod tuned;

use warpgauge_contract::RequestWarning;
use warpgauge_model::{Diagnostic, Resources, Severity};
use warpgauge_report::{
    CompileReport, CompileResponse, EvaluateResponse, KernelSignature, KernelVerdict, RuntimeStats,
    Timings,
};
use warpgauge_statistics::RankedBy;

use super::CliError;
use super::args::Target;
use super::format::{bytes, device, duration_ms};
use super::terminal::{Style, Terminal, plain};
pub(super) use comparison::{Beside, comparison};
use outputs::{check, errors, failed_checks, reasons};
use page::{Page, Tone};
pub(super) use profile::profile;

/// Maximum number of diagnostics that are shown.
const MAX_DIAGNOSTICS: usize = 20;

/// Maximum number of findings of memory checks that are shown.
const MAX_FINDINGS: usize = 10;

/// Returns the report of an evaluation: the verdict, the time, errors, what limits the kernel, and
/// then the rest. `--verbose` adds details of the measurement.
pub(super) fn evaluation(response: &EvaluateResponse, style: Style) -> String {
    let mut page = opening(response, style);
    failed_checks(&mut page, response);
    errors(&mut page, response, None);
    if let Some(report) = &response.measurement {
        measured::limits(&mut page, report);
    }
    if let Some(metrics) = &response.kernel_exec_result.metadata.device_metrics {
        profile::analyses(&mut page, metrics);
    }
    reasons(&mut page, response);
    measured::weaknesses(&mut page, response);
    // The row about a weakness already contains the name of the output.
    let weaknesses = &response.validation.weaknesses;
    let is_named = |output: &&String| weaknesses.iter().any(|weak| weak.output == **output);
    let unchecked = response.validation.unchecked.iter().filter(|output| !is_named(output));
    let unchecked = unchecked.map(String::as_str).collect::<Vec<_>>();
    if !unchecked.is_empty() {
        page.row("unchecked", &unchecked.join(", "));
    }
    if let Some(report) = &response.measurement {
        measured::doubts(&mut page, report, !response.validation.outputs.is_empty());
    }
    extras(&mut page, response);
    if let Some(report) = &response.torch {
        torch::torch(&mut page, report);
    }
    if let Some(report) = &response.program {
        program::program(&mut page, report);
    }
    launches::steps(&mut page, &response.launches);
    if let Some(report) = &response.tuning {
        tuned::tuning(&mut page, report);
    }
    used_by(&mut page, response);
    if let Some(report) = &response.device {
        page.row("device", &device(report));
    }
    if style.verbose {
        details(&mut page, response);
    }
    page.text
}

/// Prints the last line of a report: the address of its page at the server, if there is a server.
pub(super) fn print_page(
    target: &Target,
    job_id: &str,
    terminal: Terminal,
) -> Result<(), CliError> {
    let Some(url) = target.page_of(job_id) else { return Ok(()) };
    let mut line = Page::new(terminal.style());
    line.row_unwrapped("page", &url);
    terminal.print(&line.text)
}

/// Adds details of how the result was obtained.
fn details(page: &mut Page, response: &EvaluateResponse) {
    for (name, comparison) in response.validation.outputs.iter().filter(|(_, one)| one.passed) {
        check(page, name, comparison);
    }
    if let Some(report) = &response.measurement {
        measured::measurement(page, report);
    }
    if let (Some(report), true) = (&response.compile, response.kernel_exec_result.compiled) {
        compiled(page, report, response.timings.compile);
    }
    timings(page, &response.timings);
    page.row("job", &response.job_id);
}

/// Returns the beginning of each report on a kernel: the verdict, compiler messages, and the time.
fn opening(response: &EvaluateResponse, style: Style) -> Page {
    let mut page = Page::new(style);
    evaluation_verdict(&mut page, response, None);
    page.text.push('\n');
    let result = &response.kernel_exec_result;
    if !result.compiled {
        let diagnostics = response.compile.as_ref().map_or(&[][..], |c| &c.diagnostics);
        compile_errors(&mut page, diagnostics, result.compilation_error.as_deref());
    }
    if let Some(stats) = &result.runtime_stats {
        let samples = response.measurement.as_ref().map_or(&[][..], |report| &report.samples_ms);
        runtime(&mut page, stats, samples);
    }
    page
}

/// Returns the report of a compilation.
pub(super) fn compilation(response: &CompileResponse, style: Style) -> String {
    let mut page = Page::new(style);
    let tone = if response.compiled { Tone::Good } else { Tone::Bad };
    page.verdict(
        tone,
        if response.compiled { "COMPILED" } else { KernelVerdict::NotCompiled.words() },
        "",
    );
    page.text.push('\n');
    if response.compiled {
        for diagnostic in response.diagnostics.iter().take(MAX_DIAGNOSTICS) {
            page.line(&located(diagnostic));
        }
    } else {
        compile_errors(&mut page, &response.diagnostics, response.compilation_error.as_deref());
    }
    if let (Some(report), true) = (&response.compile, response.compiled) {
        compiled(&mut page, report, response.total_ms);
        if report.symbol.is_empty() {
            kernels(&mut page, &response.signatures, report.kernels.len());
        }
    }
    page.text
}

/// Adds the listed kernels of a compilation that contains `all` kernels. If kernels have equal
/// names, their symbols are shown.
fn kernels(page: &mut Page, listed: &[KernelSignature], all: usize) {
    for kernel in listed {
        let namesakes = listed.iter().filter(|other| other.name == kernel.name).count();
        let symbol = if namesakes > 1 { format!(" ({})", kernel.symbol) } else { String::new() };
        page.row("kernel", &plain(&format!("{}{symbol}", kernel.name)));
        if let Some(resources) = &kernel.resources {
            page.more(&used(resources).join(", "));
        }
    }
    match all.saturating_sub(listed.len()) {
        0 => {}
        more => page.more(&format!("and {more} more")),
    }
}

/// Adds the verdict on a kernel. If `name` is given, it replaces the name of the kernel.
fn evaluation_verdict(page: &mut Page, response: &EvaluateResponse, name: Option<&str>) {
    let verdict = response.kernel_verdict();
    let tone = Tone::of_verdict(verdict);
    let mut line = response.verdict_line(name);
    // With this code, the user can call `warpgauge explain`.
    if let (KernelVerdict::Wrong, Some(reason)) = (verdict, response.validation.reasons.first())
        && !line.ends_with(']')
    {
        line.push_str(&format!(" [{}]", reason.code));
    }
    page.verdict(tone, verdict.words(), &line);
}

/// Returns the confidence interval of the median; `None` if there are too few samples.
fn interval(stats: &RuntimeStats) -> Option<String> {
    let (low, high) = stats.median_ci_low.zip(stats.median_ci_high)?;
    Some(format!("95 % CI {} to {}", duration_ms(low), duration_ms(high)))
}

fn runtime(page: &mut Page, stats: &RuntimeStats, samples_ms: &[f32]) {
    let interval =
        interval(stats).unwrap_or_else(|| "too few samples for a confidence interval".to_owned());
    let median = format!("{} median ({interval})", duration_ms(stats.median));
    let first = match stats.ranked_by {
        RankedBy::Median => median,
        RankedBy::Mean => format!("{} mean; {median}", duration_ms(stats.mean)),
    };
    page.row("runtime", &format!("{first}, n = {}", stats.samples));
    if let Some(line) = sparkline::of(samples_ms, stats)
        && page.fits(&line)
    {
        page.more(&line);
    }
    if !page.style.verbose {
        return;
    }
    let tails = [("p95", stats.percentile_95, 40), ("p99", stats.percentile_99, 200)];
    // A percentile is shown if there are enough samples for it.
    let known = tails.iter().filter(|(_, _, least)| stats.samples >= *least);
    let tails = known.map(|(name, value, _)| format!("{name} {}, ", duration_ms(*value)));
    page.more(&format!(
        "{}mean {} ± {}",
        tails.collect::<String>(),
        duration_ms(stats.mean),
        duration_ms(stats.std)
    ));
    page.more(&format!("min {}, max {}", duration_ms(stats.min), duration_ms(stats.max)));
}

/// Adds the resources that the kernel uses.
fn used_by(page: &mut Page, response: &EvaluateResponse) {
    let Some(report) = response.compile.as_ref().filter(|_| !page.style.verbose) else { return };
    if let (Some(resources), true) = (&report.resources, response.kernel_exec_result.compiled) {
        page.row("uses", &used_with_blocks(report, resources).join(", "));
    }
}

fn used_with_blocks(report: &CompileReport, resources: &Resources) -> Vec<String> {
    let mut parts = used(resources);
    if let Some(function) = &report.function {
        parts.push(format!("{} blocks per SM", function.max_active_blocks));
    }
    parts
}

fn compiled(page: &mut Page, report: &CompileReport, took_ms: f64) {
    let cache = if report.cache_hit { ", from the cache" } else { "" };
    page.row("compiled", &format!("{} in {}{cache}", report.compiler, duration_ms(took_ms)));
    if !report.symbol.is_empty() {
        page.more(&format!("kernel {}", report.symbol));
    }
    let Some(resources) = &report.resources else {
        return;
    };
    page.more(&used_with_blocks(report, resources).join(", "));
}

/// Returns the resources of a kernel, as parts of a line.
fn used(resources: &Resources) -> Vec<String> {
    let mut parts = vec![
        format!("{} registers", resources.registers),
        format!("{} shared memory", bytes(u64::from(resources.static_shared_bytes))),
        format!("{} local memory", bytes(u64::from(resources.local_bytes))),
    ];
    if let (Some(stores), Some(loads)) = (resources.spill_store_bytes, resources.spill_load_bytes) {
        parts.push(if stores + loads == 0 {
            "no spills".to_owned()
        } else {
            format!("spills {stores} B stored, {loads} B loaded")
        });
    }
    parts
}

/// Adds the sections that only some reports contain.
fn extras(page: &mut Page, response: &EvaluateResponse) {
    if let Some(metrics) = &response.kernel_exec_result.metadata.device_metrics {
        metrics::rows(page, metrics);
    }
    if let Some(reason) = response.profile.as_ref().and_then(|profile| profile.reason.as_ref()) {
        page.row("profile", &format!("not available: {reason}"));
    }
    if let Some(timeline) = &response.timeline {
        timeline::rows(page, timeline);
    }
    if let Some(sanitize) = &response.sanitize {
        if let Some(reason) = &sanitize.reason {
            page.row("sanitize", &format!("not available: {reason}"));
        } else if sanitize.findings.is_empty() {
            page.row("sanitize", "no findings");
        }
        for finding in sanitize.findings.iter().take(MAX_FINDINGS) {
            let place = finding.source.as_deref().unwrap_or("unknown line");
            let (check, count) = (&finding.check, finding.count);
            let thread = match (finding.block, finding.thread) {
                (Some(block), Some(thread)) => format!(", block {block:?}, thread {thread:?}"),
                _ => String::new(),
            };
            let text = format!("{check} at {place}{thread}, {count} times: {}", finding.message);
            page.row("sanitize", &text);
        }
    }
    ignored(page, &response.warnings);
    let diagnostics = response.compile.as_ref().map_or(&[][..], |compile| &compile.diagnostics);
    let warnings: Vec<&Diagnostic> =
        diagnostics.iter().filter(|one| one.severity == Severity::Warning).collect();
    if let (Some(first), true) = (warnings.first(), response.kernel_exec_result.compiled) {
        page.row("compiler", &located(first));
        if warnings.len() > 1 {
            page.more(&format!("and {} more warnings, in the JSON report", warnings.len() - 1));
        }
    }
    if let Some(printed) = response.printed.as_deref().filter(|text| !text.is_empty()) {
        page.row("printed", "by the kernel:");
        page.block(printed);
    }
}

fn compile_errors(page: &mut Page, diagnostics: &[Diagnostic], text: Option<&str>) {
    if diagnostics.is_empty() {
        page.block(text.unwrap_or("the compiler printed no message"));
        return;
    }
    for diagnostic in diagnostics.iter().take(MAX_DIAGNOSTICS) {
        page.line(&located(diagnostic));
    }
    if diagnostics.len() > MAX_DIAGNOSTICS {
        page.line(&format!("… and {} more", diagnostics.len() - MAX_DIAGNOSTICS));
    }
}

/// Returns `file:line:column: severity: message`. Editors recognise this format of compilers.
fn located(diagnostic: &Diagnostic) -> String {
    let mut text = String::new();
    for part in [
        diagnostic.file.clone(),
        diagnostic.line.map(|line| line.to_string()),
        diagnostic.column.map(|column| column.to_string()),
    ]
    .into_iter()
    .flatten()
    {
        text.push_str(&part);
        text.push(':');
    }
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let gap = if text.is_empty() { "" } else { " " };
    format!("{text}{gap}{severity}: {}", diagnostic.message)
}

/// Adds the fields of the request that were ignored or filled in.
fn ignored(page: &mut Page, warnings: &[RequestWarning]) {
    for warning in warnings {
        page.row("warning", &format!("{}: {}", warning.path, warning.message));
    }
}

fn timings(page: &mut Page, timings: &Timings) {
    let Timings { queue, start, compile, load, h2d, execute, device_busy, .. } = *timings;
    let Timings { d2h, verify, profile, report, other, total, .. } = *timings;
    let listed = |entries: &[(&str, f64)]| {
        let spent = entries.iter().filter(|(_, ms)| *ms > 0.0);
        spent
            .map(|(name, ms)| format!("{name} {}", duration_ms(*ms)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let before = [
        ("queue", queue),
        ("processes", start),
        ("compile", compile),
        ("load", load),
        ("inputs", h2d),
    ];
    page.row("timings", &format!("{} in total: {}", duration_ms(total), listed(&before)));
    page.more(&format!(
        "execute {} (device busy {}), {}",
        duration_ms(execute),
        duration_ms(device_busy),
        listed(&[("outputs", d2h), ("checks", verify)])
    ));
    let after = [("device metrics", profile), ("report", report), ("other", other)];
    if after.iter().any(|(_, ms)| *ms > 0.0) {
        page.more(&listed(&after));
    }
}

#[cfg(test)]
mod tests;
