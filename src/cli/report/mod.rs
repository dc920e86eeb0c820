//! Reports for people: the verdict first, then what it rests on.

mod comparison;
mod launches;
mod measured;
mod metrics;
mod page;
mod profile;
mod program;
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
use warpgauge_validate::Comparison;

use super::format::{bytes, device, duration_ms};
use super::terminal::{Style, plain};
pub(super) use comparison::{Beside, comparison};
use page::{Page, Tone};
pub(super) use profile::profile;

/// Diagnostics shown.
const MAX_DIAGNOSTICS: usize = 20;

/// Mismatches shown for one output.
const MAX_MISMATCHES: usize = 5;

/// Outputs whose errors are shown.
const MAX_OUTPUTS: usize = 6;

/// Findings of memory checks shown.
const MAX_FINDINGS: usize = 10;

/// The report of an evaluation.
pub(super) fn evaluation(response: &EvaluateResponse, style: Style) -> String {
    let mut page = opening(response, style);
    let result = &response.kernel_exec_result;
    if let Some(report) = &response.measurement {
        measured::measurement(&mut page, report);
    }
    if let Some(report) = &response.device {
        page.row("device", &device(report));
    }
    if let Some(report) = &response.torch {
        torch::torch(&mut page, report);
    }
    if let Some(report) = &response.program {
        program::program(&mut page, report);
    }
    launches::steps(&mut page, &response.launches);
    if let (Some(report), true) = (&response.compile, result.compiled) {
        compiled(&mut page, report, response.timings.compile);
    }
    if let Some(report) = &response.tuning {
        tuned::tuning(&mut page, report);
    }
    measured::reasons(&mut page, response);
    for (name, comparison) in &response.validation.outputs {
        check(&mut page, name, comparison);
    }
    measured::weaknesses(&mut page, response);
    if !response.validation.unchecked.is_empty() {
        page.row("unchecked", &response.validation.unchecked.join(", "));
    }
    extras(&mut page, response);
    timings(&mut page, &response.timings);
    page.row("job", &response.job_id);
    page.text
}

/// How every report on a kernel begins: the verdict, what the compiler said, and the time.
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
        runtime(&mut page, stats);
    }
    page
}

/// The report of a compilation.
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

/// The kernels of a compilation, of which there are `all`, with their symbols where names are equal.
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

/// The verdict on a kernel, called `name` or else what it calls itself.
fn evaluation_verdict(page: &mut Page, response: &EvaluateResponse, name: Option<&str>) {
    let verdict = response.kernel_verdict();
    let tone = match verdict {
        KernelVerdict::Correct => Tone::Good,
        KernelVerdict::NotChecked | KernelVerdict::Weak | KernelVerdict::Error => Tone::Doubt,
        KernelVerdict::Wrong | KernelVerdict::Failed | KernelVerdict::NotCompiled => Tone::Bad,
    };
    page.verdict(tone, verdict.words(), &response.verdict_line(name));
}

fn runtime(page: &mut Page, stats: &RuntimeStats) {
    let interval = match (stats.median_ci_low, stats.median_ci_high) {
        (Some(low), Some(high)) => {
            format!("95 % CI {} to {}", duration_ms(low), duration_ms(high))
        }
        _ => "too few samples for a confidence interval".to_owned(),
    };
    let median = format!("{} median ({interval})", duration_ms(stats.median));
    let first = match stats.ranked_by {
        RankedBy::Median => median,
        RankedBy::Mean => format!("{} mean; {median}", duration_ms(stats.mean)),
    };
    page.row("runtime", &first);
    let tails = [("p95", stats.percentile_95, 40), ("p99", stats.percentile_99, 200)];
    // A quantile is known where some samples lie beyond it.
    let known = tails.iter().filter(|(_, _, least)| stats.samples >= *least);
    let tails = known.map(|(name, value, _)| format!("{name} {}, ", duration_ms(*value)));
    page.more(&format!(
        "{}mean {} ± {}",
        tails.collect::<String>(),
        duration_ms(stats.mean),
        duration_ms(stats.std)
    ));
    page.more(&format!(
        "min {}, max {}, n = {}",
        duration_ms(stats.min),
        duration_ms(stats.max),
        stats.samples
    ));
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
    let mut parts = used(resources);
    if let Some(function) = &report.function {
        parts.push(format!("{} blocks per SM", function.max_active_blocks));
    }
    page.more(&parts.join(", "));
}

/// What a kernel uses, as parts of a line.
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

fn check(page: &mut Page, name: &str, comparison: &Comparison) {
    let tone = if comparison.passed { Tone::Good } else { Tone::Bad };
    let word = page.paint(tone, if comparison.passed { "ok" } else { "WRONG" });
    page.row_painted(
        "check",
        &format!(
            "{} {word}: {} of {} elements match",
            plain(name),
            comparison.matched,
            comparison.elements
        ),
    );
    let tolerance = &comparison.tolerance;
    page.more(&format!(
        "largest error {:.3e} absolute, {:.3e} relative; tolerance atol {:e}, rtol {:e}",
        comparison.max_abs_error, comparison.max_rel_error, tolerance.atol, tolerance.rtol
    ));
    match comparison.unwritten {
        0 => {}
        1 => page.more("1 element was never written"),
        n => page.more(&format!("{n} elements were never written")),
    }
    match comparison.non_finite {
        0 => {}
        1 => page.more("1 element is NaN or infinite"),
        n => page.more(&format!("{n} elements are NaN or infinite")),
    }
    match comparison.non_finite_matched {
        0 => {}
        1 => page.more("1 element is NaN or infinite, as expected there"),
        n => page.more(&format!("{n} elements are NaN or infinite, as expected there")),
    }
    for mismatch in comparison.first_mismatches.iter().take(MAX_MISMATCHES) {
        let index: Vec<String> = mismatch.index.iter().map(u64::to_string).collect();
        page.more(&format!(
            "{name}[{}] is {}, expected {}",
            index.join(", "),
            mismatch.actual,
            mismatch.expected
        ));
    }
}

/// The largest error of each output that passes, of the kernel `name` among several. A wrong output has its own rows.
fn errors(page: &mut Page, response: &EvaluateResponse, name: Option<&str>) {
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
        more => page.more(&format!("{more} more outputs, all with --json")),
    }
}

/// The outputs that are wrong.
fn failed_checks(page: &mut Page, response: &EvaluateResponse) {
    let failed = response.validation.outputs.iter().filter(|(_, one)| !one.passed);
    failed.for_each(|(name, comparison)| check(page, name, comparison));
}

/// What only some reports have.
fn extras(page: &mut Page, response: &EvaluateResponse) {
    if let Some(metrics) = &response.kernel_exec_result.metadata.device_metrics {
        metrics::rows(page, metrics);
        profile::analyses(page, metrics);
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
        page.block(text.unwrap_or("the compiler said nothing"));
        return;
    }
    for diagnostic in diagnostics.iter().take(MAX_DIAGNOSTICS) {
        page.line(&located(diagnostic));
    }
    if diagnostics.len() > MAX_DIAGNOSTICS {
        page.line(&format!("… and {} more", diagnostics.len() - MAX_DIAGNOSTICS));
    }
}

/// `file:line:column: severity: message`, as compilers write it and editors read it.
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

/// What of the request was ignored or filled in.
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
    page.row("timings", &format!("{} in all: {}", duration_ms(total), listed(&before)));
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
