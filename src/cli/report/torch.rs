//! What there is to say about a kernel in Python.

use super::super::terminal::plain;
use super::page::Page;
use warpgauge_report::{TorchInputSource, TorchReport};

/// Most lines of a traceback that are shown: its end says most.
const MAX_LINES: usize = 20;

/// Where it ran, what it got, and where it failed.
pub(super) fn torch(page: &mut Page, report: &TorchReport) {
    let (version, threads) = (plain(&report.torch), report.threads);
    let plural = if threads == 1 { "" } else { "s" };
    page.row("computed", &format!("on the CPU by PyTorch {version}, {threads} thread{plural}"));
    if let Some(why) = &report.not_on_gpu {
        page.more(&plain(why));
    }
    if let Some(inputs) = &report.inputs {
        let source = match inputs.source {
            TorchInputSource::Contract => "of the contract",
            TorchInputSource::GetInputs => "of get_inputs()",
            TorchInputSource::Generated => "generated",
        };
        let rule = inputs.rule.as_ref().map(|rule| format!(": by {}", plain(rule)));
        page.row("inputs", &format!("{source}{}", rule.unwrap_or_default()));
    }
    if let Some(traceback) = &report.traceback {
        let lines: Vec<&str> = traceback.lines().collect();
        for line in &lines[lines.len().saturating_sub(MAX_LINES)..] {
            page.line(&plain(line));
        }
    }
}
