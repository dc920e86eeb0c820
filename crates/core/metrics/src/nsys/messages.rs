//! Parses the tool's messages between its tables.

use warpgauge_model::{Cause, Unavailable};

/// Messages of several versions with their causes; the first match in a line is used.
const TEXTS: [(&str, Cause); 18] = [
    ("newer than your current version", Cause::NewerReport),
    ("newer version of Nsight Systems", Cause::NewerReport),
    ("File is older than input file", Cause::StaleExport),
    ("does not contain", Cause::NoData),
    ("could not be found", Cause::UnknownReport),
    ("Unrecognized report", Cause::UnknownReport),
    ("Unknown report", Cause::UnknownReport),
    ("No reports were", Cause::NoData),
    ("No such file", Cause::NoFiles),
    ("does not exist", Cause::NoFiles),
    ("No space left on device", Cause::DiskFull),
    ("Permission denied", Cause::NoFiles),
    ("Importation failed", Cause::Unreadable),
    ("failed to import", Cause::Unreadable),
    ("target application terminated", Cause::ApplicationFailed),
    ("target application returned non-zero exit code", Cause::ApplicationFailed),
    ("timed out", Cause::TimedOut),
    ("Unable to load", Cause::NoProfilerLibrary),
];

/// Data that the tool lacks if the program did not use the GPU, or if CUDA was not traced.
const CUDA_DATA: [&str; 3] = ["CUDA kernel data", "CUDA trace data", "GPU memory data"];

/// Advice if a report has no data of CUDA.
const TRACE: &str = "the program did nothing on the GPU, or CUDA was not traced; trace a program \
                     that launches kernels with `nsys profile --trace=cuda --stats=true PROGRAM`";

/// Beginning of the message about a report that is too new. It has no prefix such as `ERROR:`.
const NEWER: &str = "This report was exported in Nsight Systems version";

/// Returns the rank of a problem; root causes have the lowest rank. A failed export comes first,
/// then missing tables, then tables without data.
pub(super) fn rank(problem: &Unavailable) -> u8 {
    match problem.cause() {
        Some(Cause::NewerReport) => 0,
        Some(Cause::NoData) => 3,
        Some(Cause::Unknown | Cause::NoFiles) | None => 2,
        Some(_) => 1,
    }
}

/// Returns the problem in a message of the tool. Returns `None` for any other line.
pub(super) fn problem(line: &str) -> Option<(Cause, Unavailable)> {
    let line = line.trim();
    let skipped = line.strip_prefix("SKIPPED:");
    if line.starts_with(NEWER) {
        let text: String = line.chars().take(400).collect();
        let reason = format!("Nsight Systems: {text}");
        return Some((Cause::NewerReport, Cause::NewerReport.because(reason)));
    }
    let marked = ["WARNING:", "ERROR:", "FATAL ERROR:", "Error:", "error:"];
    let marked = marked.iter().find_map(|mark| line.strip_prefix(mark).map(|rest| (mark, rest)));
    // Rows of large tables are not messages, and are not searched.
    if skipped.is_none() && marked.is_none() {
        return None;
    }
    let known = TEXTS.iter().find(|(text, _)| line.contains(text)).map(|(_, cause)| *cause);
    let cause = match (skipped, marked) {
        (Some(_), _) => Cause::NoData,
        // Unknown warnings are harmless.
        (None, Some((&"WARNING:", _))) => known?,
        (None, Some(_)) => known.unwrap_or(Cause::Unknown),
        (None, None) => return None,
    };
    let text: String = line.chars().take(400).collect();
    // To run the same report again does not help, because the report has no such data.
    let untraced = skipped.is_some() && CUDA_DATA.iter().any(|data| line.contains(data));
    let help = if untraced { format!(" ({TRACE})") } else { String::new() };
    Some((cause, cause.because(format!("Nsight Systems: {text}{help}"))))
}

/// Returns the problem of a report that the tool made, and that has no rows.
pub(super) fn nothing(report: &str) -> Unavailable {
    let report: String = report.chars().take(40).collect();
    Cause::NoData.because(format!("Nsight Systems: `{report}` ran and found nothing ({TRACE})"))
}

/// Returns the reason why the tool did not work, if its output contains one: the first error, or
/// else the first message.
pub fn cause(text: &str) -> Option<Cause> {
    let mut causes = text.lines().filter_map(problem).map(|(cause, _)| cause).peekable();
    let first = causes.peek().copied();
    causes.find(|cause| !matches!(cause, Cause::Unknown | Cause::NoData)).or(first)
}
