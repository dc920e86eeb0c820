//! Converts a source page of Nsight Compute to an answer.

use serde_json::{Value, json};

use super::draft::{Draft, Reading, counted, name};
use warpgauge_metrics::ncu::{SourceLine, SourcePage, SourcePageKernel};

/// Maximum number of kernels in the structured content and in the text.
const MAX_KERNELS: usize = 4;
const TEXT_KERNELS: usize = 3;

/// Maximum number of lines of a kernel in the structured content and in the text.
const MAX_LINES: usize = 16;
const TEXT_LINES: usize = 5;

/// Returns the answer: the lines of code with the most samples.
pub(super) fn reading(page: &SourcePage) -> Reading {
    let summary = match page.kernels.as_slice() {
        [only] => format!("{}: {}", name(&only.kernel), lines(only)),
        kernels => counted(kernels.len() as u64, "kernel", "kernels"),
    };
    let mut draft = Draft::new("ncu_source", "NSIGHT COMPUTE SOURCE", &summary);
    for kernel in page.kernels.iter().take(TEXT_KERNELS) {
        draft.fact(&format!("{}: {}, by samples", name(&kernel.kernel), lines(kernel)));
        for (samples, line) in by_samples(kernel).into_iter().take(TEXT_LINES) {
            let (place, code) = (place(line), name(line.source.trim()));
            draft.detail(&format!("{samples:.0} samples at {place}: {code}"));
        }
    }
    draft.list("kernels", &page.kernels, MAX_KERNELS, |kernel| {
        let lines = by_samples(kernel).into_iter().take(MAX_LINES);
        let lines: Vec<Value> = lines
            .map(|(samples, line)| {
                json!({"place": place(line), "samples": samples, "source": name(line.source.trim())})
            })
            .collect();
        json!({"kernel": name(&kernel.kernel), "lines": lines})
    });
    draft.notes(&page.notes);
    draft.finish()
}

fn lines(kernel: &SourcePageKernel) -> String {
    counted(kernel.lines.len() as u64, "line of code", "lines of code")
}

/// Returns the lines with their samples, the most samples first. Without samples, the order is that
/// of the page.
fn by_samples(kernel: &SourcePageKernel) -> Vec<(f64, &SourceLine)> {
    let samples = |line: &SourceLine| {
        let counter = line.counters.iter().find(|(name, _)| name.contains("Sampl"));
        counter.map_or(0.0, |(_, count)| *count)
    };
    let mut lines: Vec<(f64, &SourceLine)> =
        kernel.lines.iter().map(|line| (samples(line), line)).collect();
    lines.sort_by(|a, b| b.0.total_cmp(&a.0));
    lines
}

/// Returns the number of a line, or the address of an instruction.
fn place(line: &SourceLine) -> String {
    let address = || line.address.as_deref().map_or_else(|| "?".to_owned(), name);
    line.number.map_or_else(address, |number| format!("line {number}"))
}
