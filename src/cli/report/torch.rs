//! Rows about a kernel that is written in Python.

use super::super::terminal::plain;
use super::page::Page;
use warpgauge_report::{TorchInputSource, TorchReport};

/// Maximum number of lines of a traceback that are shown. These are the last lines.
const MAX_LINES: usize = 20;

/// Adds the device on which the kernel ran, its inputs, and the place of a failure.
pub(super) fn torch(page: &mut Page, report: &TorchReport) {
    let (version, threads) = (plain(&report.torch), report.threads);
    let plural = if threads == 1 { "" } else { "s" };
    let place = report.device.as_deref().map_or_else(|| "the CPU".to_owned(), plain);
    page.row("computed", &format!("on {place} by PyTorch {version}, {threads} thread{plural}"));
    if let Some(clocks) = &report.clocks {
        let (events, judge) = (clocks.events_ms * 1e3, clocks.judge_ms * 1e3);
        let counts = if clocks.agree { "events count" } else { "the judge's counts" };
        page.more(&format!(
            "{events:.2} µs by events, {judge:.2} µs by the judge's clock: {counts}"
        ));
    }
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
