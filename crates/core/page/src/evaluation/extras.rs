//! The rest of a report: other problems of the kernel, its launches, and the device that it ran on.

use maud::{Markup, html};
use warpgauge_report::readable::bytes;
use warpgauge_report::{
    EvaluateResponse, KernelVerdict, ProgramReport, StepReport, TimelineReport, TimelineRow,
    TunedConfiguration, TunedOutcome, TuningReport,
};
use warpgauge_validate::Reason;

use crate::parts::{self, Scope, Tone};
use crate::text;

/// The maximum number of entries in a list.
const MAX_ROWS: usize = 50;

/// Shows the reasons why the kernel is wrong, weaknesses of the contract, and unchecked outputs.
pub(super) fn against(scope: Scope<'_>, report: &EvaluateResponse) -> Markup {
    let validation = &report.validation;
    let line = report.verdict_line(None);
    let of_outputs =
        validation.outputs.iter().filter_map(|(name, one)| Reason::of_comparison(name, one));
    let of_outputs = of_outputs.map(|reason| reason.message).collect::<Vec<_>>();
    let is_new =
        |reason: &&Reason| !line.contains(&reason.message) && !of_outputs.contains(&reason.message);
    let reasons = validation.reasons.iter().filter(is_new).collect::<Vec<_>>();
    let trace = report.torch.as_ref().and_then(|torch| torch.traceback.as_deref());
    let failed = failure(report, &line);
    let is_empty = reasons.is_empty() && validation.weaknesses.is_empty() && trace.is_none();
    if is_empty && failed.is_none() && validation.unchecked.is_empty() {
        return html! {};
    }
    let is_good = report.kernel_verdict().is_good();
    let (title, tone) = match report.kernel_verdict() {
        KernelVerdict::Weak => ("Checks that a useless kernel would pass", Tone::Doubt),
        _ if is_good => ("What is not checked", Tone::Doubt),
        _ => ("Problems", Tone::Bad),
    };
    scope.section("reasons", title).tone(tone).open(true).with(html! {
        @if let Some(failed) = failed { (failed) }
        @for reason in reasons.iter().take(MAX_ROWS) {
            div.finding.(parts::class(tone)) { p { (text::message(&reason.message)) " " span.dim.mono { (reason.code) } } }
        }
        @for weakness in validation.weaknesses.iter().take(MAX_ROWS) {
            div.finding.doubt {
                p { (text::code(&weakness.output)) ": " (text::message(&weakness.message)) }
                p.small.dim { "code " code { (text::word(&weakness.code).replace(' ', "_")) } }
            }
        }
        @if !validation.unchecked.is_empty() {
            p {
                "The contract has no expectations for "
                @for (index, output) in validation.unchecked.iter().take(MAX_ROWS).enumerate() {
                    @if index > 0 { ", " } (text::code(output))
                }
                "."
            }
        }
        @if let Some(trace) = trace { h3 { "Traceback" } (text::block(trace, "")) }
    })
}

/// Shows why the run ended early. The message is omitted if the headline already contains it.
fn failure(report: &EvaluateResponse, line: &str) -> Option<Markup> {
    let failure = report.failure.as_ref()?;
    let is_said = line.contains(&failure.message);
    Some(html! {
        div.finding.bad {
            p {
                "Ended early in stage " code { (failure.stage) } ", " code { (failure.code) }
                @if !is_said { ": " (text::message(&failure.message)) }
            }
        }
    })
}

/// Shows the launches: steps, configurations, a timeline, a whole program, and printed text.
pub(super) fn launched(scope: Scope<'_>, report: &EvaluateResponse) -> Markup {
    html! {
        (steps(scope, &report.launches))
        @if let Some(tuning) = &report.tuning { (configurations(scope, tuning)) }
        @if let Some(timeline) = &report.timeline { (traced(scope, timeline)) }
        @if let Some(ran) = &report.program { (program(scope, ran)) }
        @if let Some(printed) = report.printed.as_deref().filter(|text| !text.is_empty()) {
            (scope.section("printed", "Printed by the kernel").with(text::block(printed, "")))
        }
    }
}

fn steps(scope: Scope<'_>, steps: &[StepReport]) -> Markup {
    let all: f64 = steps.iter().filter_map(|step| step.total_ms).sum();
    let rows = steps.iter().take(MAX_ROWS).map(|step| {
        html! { tr {
            td { (text::code(&step.action)) }
            td.num { (text::grouped(step.count.into())) }
            td.num { @if let Some(ms) = step.median_ms { (text::time(ms)) } }
            td.num { @if let Some(ms) = step.total_ms { (text::time(ms)) } }
            td.bar-cell { @if let Some(ms) = step.total_ms { (parts::bar(0.0, ms / all)) } }
        } }
    });
    let head = [("step", false), ("count", true), ("median", true), ("total", true), ("", false)];
    html! {
        @if !steps.is_empty() {
            (scope.section("steps", "Launches").note(html! { (text::counted(steps.len(), "step")) }).with(html! {
                (parts::table("Steps", &head, rows))
                (parts::more(steps.len(), MAX_ROWS, "steps"))
            }))
        }
    }
}

fn configurations(scope: Scope<'_>, tuning: &TuningReport) -> Markup {
    let mut all = tuning.configurations.iter().collect::<Vec<_>>();
    let key = |one: &TunedConfiguration| {
        (one.index != tuning.chosen, one.median_ms.unwrap_or(f64::INFINITY))
    };
    all.sort_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal));
    let most = all.iter().filter_map(|one| one.median_ms).max_by(f64::total_cmp).unwrap_or(0.0);
    let rows = all.iter().take(MAX_ROWS).map(|one| html! { tr.chosen[one.index == tuning.chosen] {
        td.wide { (text::code(&one.shown())) }
        td { @match one.outcome {
            TunedOutcome::Chosen => strong { "chosen" },
            outcome => (text::word(&outcome)),
        } }
        td.num {
            @match (one.median_ms, one.counted) {
                (Some(ms), _) => (text::time(ms)),
                (None, Some(counted)) => { (text::grouped(counted.warp_instructions)) " warp instructions" }
                (None, None) => {}
            }
        }
        td.bar-cell {
            @if let Some(ms) = one.median_ms { (parts::bar(0.0, ms / most)) }
            @if let Some(reason) = &one.reason { (text::message(reason)) }
        }
    } });
    let head = [("configuration", false), ("outcome", false), ("median", true), ("", false)];
    let note = html! { (text::counted(all.len(), "configuration")) ", decided by " (text::word(&tuning.decided_by)) };
    scope.section("tuning", "Configurations").note(note).with(html! {
        (parts::table("Configurations", &head, rows))
        (parts::more(all.len(), MAX_ROWS, "configurations"))
        @if tuning.pruned > 0 { p.small.dim { (tuning.pruned) " more were excluded by the kernel's pruning." } }
    })
}

fn traced(scope: Scope<'_>, timeline: &TimelineReport) -> Markup {
    let note = html! {
        @match (&timeline.gpu, &timeline.tool) {
            (Some(gpu), _) => {
                "the GPU was busy for " (text::time(gpu.busy_ms)) " of " (text::time(gpu.span_ms))
            }
            (None, Some(tool)) => (text::name(tool)),
            (None, None) => "not available",
        }
    };
    scope.section("timeline", "Timeline").note(note).with(html! {
        @if let Some(why) = &timeline.unavailable {
            p { (text::message(&why.reason)) ". " (text::message(&why.remedy)) }
        }
        @if let Some(gpu) = &timeline.gpu {
            p {
                "Kernels " (text::time(gpu.kernels_ms)) ", idle " (text::time(gpu.idle_ms)) " in "
                (text::counted(gpu.gaps as usize, "gap")) ", the longest " (text::time(gpu.longest_gap_ms)) "."
            }
        }
        (timeline_rows("Kernels", &timeline.kernels))
        (timeline_rows("Copies and fills", &timeline.copies))
        (timeline_rows("Driver calls", &timeline.calls))
    })
}

fn timeline_rows(title: &str, rows: &[TimelineRow]) -> Markup {
    let most = rows.iter().map(|row| row.total_ms).max_by(f64::total_cmp).unwrap_or(0.0);
    let shown = rows.iter().take(MAX_ROWS).map(|row| {
        html! { tr {
            td.wide { (text::code(&row.name)) }
            td.num { (text::grouped(row.count)) }
            td.num { @if let Some(ms) = row.median_ms.or(row.mean_ms) { (text::time(ms)) } }
            td.num { (text::time(row.total_ms)) }
            td.bar-cell { (parts::bar(0.0, row.total_ms / most)) }
        } }
    });
    let head = [("name", false), ("count", true), ("each", true), ("total", true), ("", false)];
    html! {
        @if !rows.is_empty() {
            h3 { (title) }
            (parts::table(title, &head, shown))
            (parts::more(rows.len(), MAX_ROWS, "rows"))
        }
    }
}

fn program(scope: Scope<'_>, program: &ProgramReport) -> Markup {
    let kernels = program.kernels.iter().take(MAX_ROWS).map(|kernel| {
        html! { tr {
            td.wide { (text::code(&kernel.name)) }
            td.num { (text::grouped(kernel.launches)) }
            td.num { @if let Some(ms) = kernel.total_ms { (text::time(ms)) } }
            td.bar-cell { @if let Some(pct) = kernel.share_pct { (parts::bar(0.0, pct / 100.0)) } }
        } }
    });
    let head = [("kernel", false), ("launches", true), ("total", true), ("", false)];
    let note = html! { (text::message(&program.end())) ", " (text::time(program.wall_ms)) " by the server's clock" };
    scope.section("program", "The program").open(true).note(note).with(html! {
        @if !program.kernels.is_empty() { (parts::table("Kernels", &head, kernels)) }
        (parts::more(program.kernels.len(), MAX_ROWS, "kernels"))
        @for line in program.messages.iter().take(MAX_ROWS) { p { (text::message(line)) } }
        @for (title, printed) in [("Standard output", &program.stdout), ("Standard error", &program.stderr)] {
            @if !printed.text.is_empty() {
                h3 { (title) }
                (text::block(&printed.text, ""))
                @if printed.left_out_bytes > 0 {
                    p.small.dim { (text::grouped(printed.left_out_bytes)) " bytes in the middle are omitted." }
                }
            }
        }
        p.small.dim { (text::message(&program.confinement)) }
    })
}

/// Shows the device, and warnings about the request.
pub(super) fn rest(scope: Scope<'_>, report: &EvaluateResponse) -> Markup {
    let warnings = &report.warnings;
    html! {
        @if !warnings.is_empty() {
            (scope.section("warnings", "The request").note(html! { (text::counted(warnings.len(), "warning")) })
                .with(html! {
                    ul.plain {
                        @for one in warnings.iter().take(MAX_ROWS) {
                            li { (text::code(&one.path)) ": " (text::message(&one.message)) }
                        }
                    }
                    (parts::more(warnings.len(), MAX_ROWS, "warnings"))
                }))
        }
        (place(scope, report))
    }
}

/// Shows the device that the kernel ran on, and its inputs.
fn place(scope: Scope<'_>, report: &EvaluateResponse) -> Markup {
    let mut rows = Vec::new();
    if let Some(device) = &report.device {
        rows.push((
            "device",
            html! { (text::name(&device.name)) ", " (text::word(&device.kind)) " " (device.id) },
        ));
        rows.push(("compute capability", text::name(&device.compute_capability)));
        rows.push(("multiprocessors", html! { (device.multiprocessors) }));
        let [memory, l2] = [device.memory_bytes, device.l2_bytes].map(|n| text::tight(&bytes(n)));
        rows.push(("memory", html! { (memory) ", L2 " (l2) }));
        rows.push(("CUDA version", text::name(&device.cuda_version)));
        rows.push(("UUID", text::code(&device.uuid)));
    }
    if let Some(torch) = &report.torch {
        rows.push((
            "PyTorch",
            html! { (text::name(&torch.torch)) ", Python " (text::name(&torch.python)) },
        ));
        if let Some(entry) = &torch.entry {
            rows.push(("entry point", text::code(entry)));
        }
        if let Some(why) = &torch.not_on_gpu {
            rows.push(("not on a GPU", text::message(why)));
        }
    }
    for matrix in report.matrices.iter().take(MAX_ROWS) {
        rows.push(("matrix", html! {
            (text::code(&matrix.name)) ", " (text::grouped(matrix.num_rows)) " × " (text::grouped(matrix.num_cols))
            ", " (text::grouped(matrix.nnz)) " entries"
        }));
    }
    for tensor in report.tensors.iter().take(MAX_ROWS) {
        rows.push(("shared tensor", text::code(&tensor.tensor_id)));
    }
    for (name, kept) in report.kept_outputs.iter().take(MAX_ROWS) {
        rows.push((
            "kept output",
            html! {
                (text::code(name)) ": "
                @match (&kept.tensor_id, &kept.reason) {
                    (Some(id), _) => (text::code(id)),
                    (None, Some(reason)) => (text::message(reason)),
                    (None, None) => "not kept",
                }
            },
        ));
    }
    rows.push(("job", text::code(&report.job_id)));
    scope.section("device", "Device and inputs").with(parts::facts(rows))
}
