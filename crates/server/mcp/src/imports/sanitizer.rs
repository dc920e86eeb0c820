//! Converts a log of compute-sanitizer to an answer.

use serde_json::{Value, json};

use super::draft::{Draft, Reading, counted, message, name};
use warpgauge_metrics::sanitizer::{SanitizerFinding, SanitizerLog};

/// Maximum number of findings in the structured content and in the text.
const MAX_FINDINGS: usize = 20;
const TEXT_FINDINGS: usize = 6;

/// Returns the answer: the findings in their order in the log.
pub(super) fn reading(log: &SanitizerLog) -> Reading {
    let findings = counted(log.findings.len() as u64, "finding", "findings");
    let errors = match log.errors {
        Some(errors) => format!("the tool counted {}", counted(errors, "error", "errors")),
        None => "the log has no summary, so it may be incomplete".to_owned(),
    };
    let mut draft = Draft::new("sanitizer", "COMPUTE-SANITIZER", &format!("{findings}; {errors}"));
    for finding in log.findings.iter().take(TEXT_FINDINGS) {
        draft.fact(&line(finding));
    }
    let more = log.findings.len().saturating_sub(TEXT_FINDINGS) as u64;
    let more = more.saturating_add(log.left_out.unwrap_or(0));
    if more > 0 {
        draft.fact(&format!("and {more} more"));
    }
    if let Some([bytes, allocations]) = log.leaked {
        draft.fact(&format!("{bytes} bytes in {allocations} allocations were not freed"));
        draft.set("leaked", json!({"bytes": bytes, "allocations": allocations}));
    }
    draft.set("errors", json!(log.errors));
    draft.list("findings", &log.findings, MAX_FINDINGS, entry);
    draft.notes(&log.notes);
    draft.finish()
}

fn line(finding: &SanitizerFinding) -> String {
    let mut text = finding.check.to_owned();
    if finding.count > 1 {
        text.push_str(&format!(" × {}", finding.count));
    }
    if !finding.kernel.is_empty() {
        text.push_str(&format!(" in {}", name(&finding.kernel)));
    }
    if let Some(source) = &finding.source {
        text.push_str(&format!(" at {}", name(source)));
    }
    if let Some(other) = &finding.other {
        text.push_str(&format!(", against {}", name(other)));
    }
    if let (Some(thread), Some(block)) = (finding.thread, finding.block) {
        text.push_str(&format!(", thread {thread:?} of block {block:?}"));
    }
    format!("{text}: {}", message(&finding.message))
}

fn entry(finding: &SanitizerFinding) -> Value {
    json!({
        "check": finding.check,
        "kernel": name(&finding.kernel),
        "source": finding.source.as_deref().map(name),
        "other": finding.other.as_deref().map(name),
        "block": finding.block,
        "thread": finding.thread,
        "bytes": finding.bytes,
        "count": finding.count,
        "message": message(&finding.message),
    })
}
