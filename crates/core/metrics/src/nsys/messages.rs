//! What the tool says beside its tables.

use warpgauge_model::{Cause, Unavailable};

/// Texts and what they mean; the first that fits a line counts. From several versions.
const TEXTS: [(&str, Cause); 16] = [
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

/// What a remark of the tool means; `None` for what is no remark of a problem.
pub(super) fn problem(line: &str) -> Option<(Cause, Unavailable)> {
    let line = line.trim();
    let skipped = line.strip_prefix("SKIPPED:");
    let marked = ["WARNING:", "ERROR:", "FATAL ERROR:", "Error:", "error:"];
    let marked = marked.iter().find_map(|mark| line.strip_prefix(mark).map(|rest| (mark, rest)));
    let known = TEXTS.iter().find(|(text, _)| line.contains(text)).map(|(_, cause)| *cause);
    let cause = match (skipped, marked) {
        (Some(_), _) => Cause::NoData,
        // Warnings that are not known keep nobody from anything.
        (None, Some((&"WARNING:", _))) => known?,
        (None, Some(_)) => known.unwrap_or(Cause::Unknown),
        (None, None) => return None,
    };
    let text: String = line.chars().take(400).collect();
    Some((cause, cause.because(format!("Nsight Systems: {text}"))))
}

/// Why the tool did no work, if what it said tells: the first error, or else the first remark.
pub fn cause(text: &str) -> Option<Cause> {
    let mut causes = text.lines().filter_map(problem).map(|(cause, _)| cause).peekable();
    let first = causes.peek().copied();
    causes.find(|cause| !matches!(cause, Cause::Unknown | Cause::NoData)).or(first)
}
