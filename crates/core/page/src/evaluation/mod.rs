//! The page of an evaluation.

mod compiled;
mod extras;
mod headline;
mod measured;
pub(crate) mod metrics;
mod outputs;
mod sanitized;
mod stages;

use maud::{Markup, html};
use warpgauge_model::DeviceKind;
use warpgauge_report::{EvaluateResponse, KernelVerdict};

use crate::document::{Content, Links};
use crate::parts::{self, Scope, Tone};
use crate::text;

pub(crate) use headline::{headline_sentence, median};
pub(crate) use stages::stages;

/// Creates the page of an evaluation.
pub(crate) fn content(report: &EvaluateResponse, links: &Links) -> Content {
    let kernel = kernel_name(report);
    let verdict = report.kernel_verdict();
    Content {
        title: format!("{}: {}", verdict.words().to_lowercase(), kernel),
        about: html! { "evaluation " span.mono { (text::name(&report.job_id)) } },
        refresh: None,
        main: html! {
            (headline(report))
            @if shows_figures(report) { (headline::figures(report)) }
            (sections(Scope(""), report, links))
        },
    }
}

/// Returns the name of the kernel in the report.
pub(crate) fn kernel_name(report: &EvaluateResponse) -> &str {
    report.kernel_exec_result.metadata.kernel_name.as_deref().unwrap_or("kernel")
}

fn headline(report: &EvaluateResponse) -> Markup {
    let verdict = report.kernel_verdict();
    let tone = Tone::of_verdict(verdict);
    let device = report.device.as_ref().map(|device| {
        let kind = match device.kind {
            DeviceKind::Cuda => "",
            DeviceKind::Emulator => ": emulated, so its times are not those of a GPU",
        };
        html! { span.dim.small { (text::name(&device.name)) (kind) } }
    });
    let sentence = html! { (text::message(&headline_sentence(report))) };
    let sentences = [Some(sentence), device].into_iter().flatten().collect::<Vec<_>>();
    parts::verdict(tone, verdict.words(), text::code(kernel_name(report)), &sentences)
}

/// Returns whether the key figures are shown. They are shown if the kernel ran and was not found
/// wrong.
fn shows_figures(report: &EvaluateResponse) -> bool {
    matches!(
        report.kernel_verdict(),
        KernelVerdict::Correct | KernelVerdict::NotChecked | KernelVerdict::Weak
    )
}

/// Shows all parts below the figures. Problems of the kernel or its times come first.
pub(crate) fn sections(scope: Scope<'_>, report: &EvaluateResponse, links: &Links) -> Markup {
    html! {
        (problems(scope, report))
        @if let Some(metrics) = &report.kernel_exec_result.metadata.device_metrics {
            (metrics::advice(scope, metrics))
        }
        (measured::samples(scope, report))
        (compiled::built(scope, report, links))
        @if let Some(metrics) = &report.kernel_exec_result.metadata.device_metrics {
            (metrics::roofline(scope, metrics))
            (metrics::groups(scope, metrics))
        }
        (metrics::missing(scope, report))
        (outputs::passed(scope, report))
        (extras::launched(scope, report))
        (stages(scope, &report.timings))
        (measured::method(scope, report))
        (extras::rest(scope, report))
    }
}

/// Shows problems of the kernel, the contract or the times. These sections are expanded, because
/// they are what the reader needs.
fn problems(scope: Scope<'_>, report: &EvaluateResponse) -> Markup {
    html! {
        (compiled::errors(scope, report))
        (outputs::wrong(scope, report))
        (extras::against(scope, report))
        (sanitized::findings(scope, report))
        (measured::doubts(scope, report))
    }
}
