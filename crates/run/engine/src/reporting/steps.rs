//! Report entries for the steps of a program with several launches.

use crate::prepare::Prepared;
use warpgauge_contract::{EvaluateRequest, Line, lines_of};
use warpgauge_report::StepReport;
use warpgauge_statistics::Counted;
use warpgauge_worker::protocol::{EvaluatedRun, RunOutcome, Step};

/// Maximum number of kernels in the name of a program.
const MAX_NAMED: usize = 4;

/// Returns the name of the kernel, or the names of the kernels of a list in order.
pub(super) fn kernel_name(request: &EvaluateRequest, prepared: &Prepared) -> String {
    let names = request.kernel.launched_kernels();
    if names.len() < 2 {
        return prepared.artifact.entry_kernel().name.clone();
    }
    let shown = names[..names.len().min(MAX_NAMED)].join(", ");
    if names.len() > MAX_NAMED { format!("{shown}, …") } else { shown }
}

/// Returns the steps with their times and counts.
pub(super) fn reports(
    request: &EvaluateRequest,
    prepared: &Prepared,
    outcome: &RunOutcome<EvaluatedRun>,
) -> Vec<StepReport> {
    let times = &outcome.told.lines;
    if times.is_empty() {
        return Vec::new();
    }
    let symbols = symbols(prepared);
    let counts = outcome.told.counts.as_ref().map(|counts| &counts.kernels);
    let report = |(index, line): (usize, Line)| {
        let timed = times.get(index);
        let taken = timed.filter(|times| times.count > 0);
        let symbol = symbols.get(index).copied().flatten();
        let is_alone = symbols.iter().filter(|other| **other == symbol).count() == 1;
        let counted = symbol.filter(|_| is_alone).zip(counts);
        let counted = counted.and_then(|(symbol, counts)| Counted::of(counts.get(symbol)?));
        StepReport {
            step: line.path,
            action: line.what,
            count: timed.map_or(0, |times| times.count),
            median_ms: taken.map(|times| times.median_ms),
            total_ms: taken.map(|times| times.total_ms),
            counted,
        }
    };
    lines_of(&request.kernel).into_iter().enumerate().map(report).collect()
}

/// Returns the symbol of the kernel that each line of the contract's list launches. An entry is
/// `None` if the line launches none.
fn symbols(prepared: &Prepared) -> Vec<Option<&str>> {
    let Some(program) = &prepared.job.program.launches.program else { return Vec::new() };
    let mut symbols = vec![None; program.lines];
    for step in &program.steps {
        if let Step::Launch(launch) = step
            && let Some(symbol) = symbols.get_mut(launch.line)
        {
            *symbol = program.symbols.get(launch.kernel).map(String::as_str);
        }
    }
    symbols
}
