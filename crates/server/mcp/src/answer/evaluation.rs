//! Converts the report of an evaluation to an answer.

use super::{ExecMetadata, ExecResult, Outcome, SUMMARY_BYTES, TEXT_BYTES, Verdict, plain};
use warpgauge_contract::RequestWarning;
use warpgauge_model::{CacheState, DeviceKind, Diagnostic, Regime, Severity};
use warpgauge_report::readable::{duration_ms, percent};
use warpgauge_report::{EvaluateResponse, KernelExecResult, ProgramReport, RuntimeStats};
use warpgauge_service::ArtifactKind;
use warpgauge_statistics::{FloorLimit, RankedBy};
use warpgauge_validate::{Reason, ReasonCode};

/// Returns the answer about an evaluation.
pub(super) fn answer(response: &EvaluateResponse) -> Outcome {
    let (verdict, summary) = verdict(response, None);
    let mut outcome = Outcome::new(verdict, summary).on(response.device.as_ref());
    read_so(&mut outcome, &response.warnings);
    match verdict {
        Verdict::NotCompiled => compiler(&mut outcome, response),
        Verdict::Wrong | Verdict::Failed => against(&mut outcome, response),
        _ => {}
    }
    if let Some(stats) = &response.kernel_exec_result.runtime_stats {
        outcome.fact(format!("time: {}", time(response, stats)));
    }
    if let Some(program) = &response.program {
        ran(&mut outcome, program);
    }
    limits(&mut outcome, response);
    outcome.status = Some(response.status);
    outcome.kernel_exec_result = Some(short(&response.kernel_exec_result));
    let left: &[ArtifactKind] = match verdict {
        Verdict::NotCompiled => &[ArtifactKind::Log],
        Verdict::Error => &[],
        _ => &[ArtifactKind::Ptx, ArtifactKind::Sass, ArtifactKind::Log],
    };
    outcome.of_job(&response.job_id, left)
}

/// Adds the parts of the request that were ignored or filled in.
pub(super) fn read_so(outcome: &mut Outcome, warnings: &[RequestWarning]) {
    let Some(first) = warnings.first() else { return };
    let more = match warnings.len() - 1 {
        0 => String::new(),
        more => format!("; the report contains {more} more `warnings`"),
    };
    outcome.fact(format!("request: {}: {}{more}", first.path, first.message));
}

/// Returns the verdict on a kernel, and the reason for it. If `name` is given, it replaces the
/// kernel's name.
pub(super) fn verdict(response: &EvaluateResponse, name: Option<&str>) -> (Verdict, String) {
    (response.kernel_verdict().into(), response.verdict_line(name))
}

/// Adds the result of running a program, its output, and its longest kernels.
fn ran(outcome: &mut Outcome, program: &ProgramReport) {
    let end = program.end();
    outcome.fact(format!(
        "{end} after {}; the program's time is not used for ranking",
        duration_ms(program.wall_ms)
    ));
    for kernel in program.kernels.iter().take(3) {
        let time =
            kernel.total_ms.map_or(String::new(), |ms| format!(", {} in total", duration_ms(ms)));
        outcome.fact(format!("{} launches of {}{time}", kernel.launches, kernel.name));
    }
    for (name, printed) in [("stdout", &program.stdout), ("stderr", &program.stderr)] {
        if !printed.text.trim().is_empty() {
            outcome.fact(format!("{name}: {}", printed.text.trim_end()));
        }
    }
}

/// Adds the compiler's diagnostics, errors first.
pub(super) fn compiler(outcome: &mut Outcome, response: &EvaluateResponse) {
    let diagnostics = response.compile.as_ref().map_or(&[][..], |it| &it.diagnostics);
    let errors = diagnostics.iter().filter(|one| one.severity == Severity::Error);
    let others = diagnostics.iter().filter(|one| one.severity != Severity::Error);
    for diagnostic in errors.chain(others) {
        outcome.fact(located(diagnostic));
    }
    if diagnostics.is_empty()
        && let Some(text) = &response.kernel_exec_result.compilation_error
    {
        outcome.fact(text.as_str());
    }
}

/// Formats a diagnostic as `file:line:column: severity: message`.
fn located(diagnostic: &Diagnostic) -> String {
    let mut place = diagnostic.file.clone().unwrap_or_default();
    for number in [diagnostic.line, diagnostic.column].into_iter().flatten() {
        place.push_str(&format!(":{number}"));
    }
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let gap = if place.is_empty() { "" } else { ": " };
    format!("{place}{gap}{severity}: {}", diagnostic.message)
}

/// Adds the evidence that a kernel is incorrect: the first mismatch of each incorrect output, then
/// the other reasons.
pub(super) fn against(outcome: &mut Outcome, response: &EvaluateResponse) {
    for (name, output) in response.validation.outputs.iter().filter(|(_, one)| !one.passed) {
        let first = output.first_mismatches.first().map_or(String::new(), |first| {
            let index: Vec<String> = first.index.iter().map(u64::to_string).collect();
            let (at, actual, expected) = (index.join(", "), &first.actual, &first.expected);
            format!("{name}[{at}] is {actual}, expected {expected}; ")
        });
        let tolerance = &output.tolerance;
        outcome.fact(format!(
            "{first}{} of {} elements of {name} match within atol {:e}, rtol {:e}; largest error {:.3e}",
            output.matched, output.elements, tolerance.atol, tolerance.rtol, output.max_abs_error
        ));
        if output.unwritten > 0 {
            outcome.fact(format!("{} elements of {name} were never written", output.unwritten));
        }
    }
    if let Some(finding) = response.sanitize.iter().flat_map(|it| &it.findings).next() {
        let place = finding.source.as_deref().unwrap_or("unknown line");
        outcome.fact(format!("{} at {place}: {}", finding.check, finding.message));
    }
    // The summary and the mismatches already contain these reasons.
    let told = |reason: &&Reason| {
        reason.code != ReasonCode::OutputMismatch && !outcome.summary.contains(&reason.message)
    };
    let reasons: Vec<&Reason> = response.validation.reasons.iter().filter(told).collect();
    for reason in reasons {
        outcome.fact(format!("{} [{}]", reason.message, reason.code.name()));
    }
}

/// Formats a time with its confidence interval and its kind.
pub(super) fn time(response: &EvaluateResponse, stats: &RuntimeStats) -> String {
    let interval = match (stats.median_ci_low, stats.median_ci_high) {
        (Some(low), Some(high)) => {
            format!("95 % CI {} to {}", duration_ms(low), duration_ms(high))
        }
        _ => "too few launches for an interval".to_owned(),
    };
    let mut text =
        format!("{} median ({interval}, n = {})", duration_ms(stats.median), stats.samples);
    if stats.ranked_by == RankedBy::Mean {
        text = format!("{} mean; {text}", duration_ms(stats.mean));
    }
    let emulated = response.device.as_ref().is_some_and(|it| it.kind == DeviceKind::Emulator);
    if emulated {
        text.push_str("; on the emulated device, which does not predict times on a GPU");
        if let Some(counted) = &response.counted {
            text.push_str(&format!(
                "; one launch is {} warp instructions and {} sectors of global memory",
                counted.warp_instructions, counted.global_sectors
            ));
        }
        return text;
    }
    if response.torch.is_some() && response.device.is_none() {
        text.push_str("; on the CPU, which does not predict times on a GPU");
        return text;
    }
    if let Some(report) = &response.measurement {
        text.push_str(match report.cache {
            CacheState::Cold => ", L2 cold",
            CacheState::Hot => ", L2 hot",
        });
        if report.regime == Regime::Sustained {
            text.push_str(", under steady load");
        }
        if report.at_floor {
            text.push_str("; this is the time of the launch itself");
        }
    }
    if let Some(device) = &response.device {
        text.push_str(&format!(", {}", device.name));
    }
    text
}

/// Adds the resource that limits the kernel, the weaknesses of its contract, and its resource
/// usage.
fn limits(outcome: &mut Outcome, response: &EvaluateResponse) {
    let metrics = response.kernel_exec_result.metadata.device_metrics.as_ref();
    if let Some(roofline) = metrics.and_then(|metrics| metrics.roofline.as_ref()) {
        let bound = roofline.bound_by.as_ref().map_or_else(
            || "what limits it is not known".to_owned(),
            |bound| format!("bound by {}", word(bound)),
        );
        outcome.fact(format!("{bound}: {}", roofline.bound_reason));
    }
    if let Some(advice) = metrics.and_then(|metrics| metrics.advice.first()) {
        outcome.fact(format!("advice: {}", advice.message));
    }
    if let Some(reason) = response.profile.as_ref().and_then(|profile| profile.reason.as_ref()) {
        outcome.fact(format!("no device metrics: {reason}"));
    }
    // The summary already contains this weakness.
    let mut weaknesses = response.validation.weaknesses.iter();
    let told = response.why_weak();
    if let Some(weakness) = weaknesses.find(|one| Some(one.message.as_str()) != told) {
        outcome.fact(format!("weak contract: {}: {}", weakness.output, weakness.message));
    }
    let rates = response.measurement.as_ref().and_then(|report| report.rates.as_ref());
    if let Some(rates) = rates
        && let Some(share) = rates.of_speed_of_light
    {
        let what = match rates.limit {
            Some(FloorLimit::Memory) => "moving its bytes at the peak of device memory",
            _ => "its operations at the device's peak",
        };
        outcome.fact(format!("{} of the speed of light: {what}", percent(share)));
    }
    for (name, output) in response.validation.outputs.iter().filter(|(_, one)| one.passed) {
        outcome.fact(format!(
            "{name}: all {} elements match within atol {:e}, rtol {:e}; largest error {:.3e}",
            output.elements, output.tolerance.atol, output.tolerance.rtol, output.max_abs_error
        ));
    }
    if let Some(resources) = response.compile.as_ref().and_then(|it| it.resources.as_ref()) {
        let spills = match (resources.spill_store_bytes, resources.spill_load_bytes) {
            (Some(0), Some(0)) => ", no spills".to_owned(),
            (Some(stores), Some(loads)) => format!(", spills {stores} B stored, {loads} B loaded"),
            _ => String::new(),
        };
        outcome.fact(format!(
            "{} registers, {} B of shared memory{spills}",
            resources.registers, resources.static_shared_bytes
        ));
    }
}

/// Returns the name of a value as it appears in JSON.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => "unknown".to_owned(),
    }
}

/// Returns the short form of a kernel's result.
pub(super) fn short(result: &KernelExecResult) -> ExecResult {
    let text = |text: &Option<String>| text.as_deref().map(lines);
    let name = |name: &Option<String>| name.as_deref().map(|name| plain(name, SUMMARY_BYTES));
    let metadata = &result.metadata;
    ExecResult {
        compiled: result.compiled,
        correctness: result.correctness,
        runtime: result.runtime,
        runtime_stats: result.runtime_stats,
        compilation_error: text(&result.compilation_error),
        validation_error: text(&result.validation_error),
        metadata: ExecMetadata {
            kernel_name: name(&metadata.kernel_name),
            gpu_type: name(&metadata.gpu_type),
            cuda_version: name(&metadata.cuda_version),
        },
    }
}

/// Truncates a text that has several lines.
fn lines(text: &str) -> String {
    let short = crate::report::truncated(text, TEXT_BYTES);
    if short.len() < text.len() { format!("{short} …") } else { short.to_owned() }
}
