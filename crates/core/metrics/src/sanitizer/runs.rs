//! Runs of the tool in a log, and what it said about runs that failed. The main type is [`Runs`].

use warpgauge_model::{Cause, Unavailable};

use super::record::{CRASHED, Record, records};
use crate::text::Notes;

/// Maximum number of characters that are quoted of a line.
const MAX_QUOTE: usize = 200;

/// Line about a program whose exit code is not 0, which findings often explain.
const FAILED: &str = "Target application returned an error";

/// Runs that were read so far.
#[derive(Debug, Default)]
pub(super) struct Runs<'a> {
    current: Run<'a>,
    /// Whether a run before the current one checked something.
    checked: bool,
    /// Reason why the first run checked nothing that did so.
    nothing: Option<Unavailable>,
}

#[derive(Debug, Default)]
struct Run<'a> {
    /// Whether the log has a record of the run.
    begun: bool,
    /// Whether the run has findings.
    found: bool,
    /// Line of the reason why the tool did not work, and the reason.
    stopped: Option<(usize, &'a str, Cause)>,
    /// The tool's own advice.
    hint: Option<&'a str>,
    crashed: bool,
    /// Line that says that the program failed.
    failed: Option<(usize, &'a str)>,
}

impl<'a> Runs<'a> {
    /// Adds a record. The notes of a run are added at its end, because only then its findings are
    /// known.
    pub(super) fn add(&mut self, record: &Record<'a>, notes: &mut Notes) {
        if is_begin(record.head) {
            self.end(notes);
        }
        let run = &mut self.current;
        run.begun = true;
        if record.is_finding() {
            run.found = true;
        } else if let Some(cause) = cause_of(record.head) {
            run.stopped.get_or_insert((record.line, record.head, cause));
        }
        run.crashed |= record.head.starts_with(CRASHED);
        if run.crashed || record.head.starts_with(FAILED) {
            run.failed.get_or_insert((record.line, record.head));
        }
        if record.head.contains("--target-processes all") {
            run.hint.get_or_insert(record.head);
        }
    }

    /// Ends the current run, and adds a note if its findings may be missing.
    pub(super) fn end(&mut self, notes: &mut Notes) {
        let run = std::mem::take(&mut self.current);
        self.checked |= run.begun && (run.found || run.stopped.is_none());
        let (line, text) = match (run.stopped, run.failed) {
            (Some((line, head, _)), _) if run.found => (
                line,
                format!(
                    "the tool stopped (`{}`): the run's findings are listed, but may be incomplete",
                    quote(head)
                ),
            ),
            (Some((line, head, cause)), _) => {
                let why = match run.hint {
                    Some(hint) => format!("{}; {}", quote(head), quote(hint)),
                    None => quote(head),
                };
                let reason = format!("compute-sanitizer checked nothing: {why}");
                self.nothing.get_or_insert_with(|| cause.because(reason));
                (line, format!("this run of the tool checked nothing ({why})"))
            }
            (None, Some((line, head))) if run.crashed || !run.found => {
                let none = match run.found {
                    true => "",
                    false => ", and 0 errors do not mean that it has none",
                };
                let head = quote(head);
                (line, format!("the program failed (`{head}`): findings may be missing{none}"))
            }
            (None, _) => return,
        };
        notes.add(format!("line {line}"), text);
    }
}

/// Returns whether a line begins a run.
pub(super) fn is_begin(head: &str) -> bool {
    matches!(head, "COMPUTE-SANITIZER" | "CUDA-MEMCHECK")
}

/// Returns the reason why the tool did not work, if the log contains one.
pub fn cause(text: &str) -> Option<Cause> {
    records(text).find_map(|record| cause_of(record.head))
}

/// Returns the reason why the tool did not work, if a line contains one.
fn cause_of(head: &str) -> Option<Cause> {
    const TEXTS: [(&str, Cause); 13] = [
        ("timed-out", Cause::TimedOut),
        ("timed out", Cause::TimedOut),
        ("terminated before first instrumented API call", Cause::NoKernel),
        ("No attachable process found", Cause::NoKernel),
        ("Device not supported", Cause::UnsupportedDevice),
        ("is not supported on this device", Cause::UnsupportedDevice),
        ("does not support the current GPU", Cause::UnsupportedDevice),
        ("driver version is insufficient", Cause::DriverMismatch),
        ("driver is not compatible", Cause::DriverMismatch),
        ("Unable to find injection library", Cause::NoFiles),
        ("No space left on device", Cause::DiskFull),
        ("Confidential computing", Cause::UnsupportedMode),
        ("Internal Sanitizer Error", Cause::Unknown),
    ];
    TEXTS.iter().find(|(text, _)| head.contains(text)).map(|(_, cause)| *cause)
}

/// Returns the reason if no run in a log checked anything.
pub fn nothing(text: &str) -> Option<Unavailable> {
    let (mut runs, mut notes) = (Runs::default(), Notes::default());
    for record in records(text) {
        runs.add(&record, &mut notes);
    }
    runs.end(&mut notes);
    runs.nothing.filter(|_| !runs.checked)
}

fn quote(head: &str) -> String {
    let text = head.strip_prefix("Error: ").unwrap_or(head).trim_end_matches('.');
    text.chars().take(MAX_QUOTE).collect()
}
