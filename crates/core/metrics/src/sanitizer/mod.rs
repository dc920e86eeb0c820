//! Parses the output of compute-sanitizer: findings of memcheck, racecheck, initcheck and
//! synccheck. The main type is [`SanitizerLog`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::text::Notes;

mod place;
mod record;
mod runs;

pub use runs::{cause, nothing};

use place::{after, extent, frames, hazards, hexadecimal, number, places};
use record::{Record, records};
use runs::{Runs, is_begin};

/// Maximum number of different findings. If a finding occurs again at another address or thread, it
/// is only counted.
pub const MAX_FINDINGS: usize = 200;
/// Maximum number of characters of a message.
const MAX_MESSAGE: usize = 1_000;
/// Maximum number of other accesses of a hazard that are reported.
const MAX_SIDES: usize = 8;
/// Text between a source line and those of its callers.
const CALLED_FROM: &str = " (called from ";

/// Content of a log of compute-sanitizer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SanitizerLog {
    /// Findings, in their order in the log.
    pub findings: Vec<SanitizerFinding>,
    /// Number of records that the tool did not print, plus the number of findings beyond
    /// [`MAX_FINDINGS`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<u64>,
    /// Number of errors in the tool's own summary. `None` if there is no summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<u64>,
    /// Number of warnings in the tool's own summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<u64>,
    /// Number of bytes and of allocations that were not freed, if the tool checked this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaked: Option<[u64; 2]>,
    /// Caveats about the findings.
    pub notes: Vec<String>,
}

/// A finding with the number of its occurrences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SanitizerFinding {
    /// Name of the check. If the emulator has the same check, it is the emulator's name:
    /// `out_of_bounds`, `misaligned`, `use_after_free`, `read_only_write`, `uninitialised_read`,
    /// `shared_race`, `divergent_barrier`. Otherwise it is `invalid_barrier`, `bad_free`, `leak`,
    /// `unused_memory`, `host_access`, `api_error`, `other`.
    pub check: &'static str,
    /// Name of the kernel in the tool's output; empty if no kernel is involved.
    pub kernel: String,
    /// Block index of the first occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<[u32; 3]>,
    /// Thread index of the first occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<[u32; 3]>,
    /// Source file without directories, and line, followed by the lines of the callers on the
    /// device: `a.cu:4 (called from a.cu:60)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The other accesses of a hazard: source and line, or the function if the line is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
    /// Address of the first occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    /// Size of the access, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The tool's description of the finding.
    pub message: String,
    /// Number of occurrences.
    pub count: u64,
}

impl SanitizerFinding {
    /// Returns the source file and line of the access, without its callers.
    pub fn line(&self) -> Option<&str> {
        let source = self.source.as_deref()?;
        Some(source.split_once(CALLED_FROM).map_or(source, |(line, _)| line))
    }
}

/// Parses a log. The text should be the tool's own file (`--log-file`), because a program could
/// forge the tool's lines in a shared stream.
pub fn parse_log(text: &str) -> SanitizerLog {
    let mut log = SanitizerLog::default();
    let mut places = BTreeMap::new();
    let (mut left_out, mut reported) = (0u64, 0u64);
    let (mut runs, mut summaries) = (0, 0);
    let mut before = SanitizerLog::default();
    let mut notes = Notes::default();
    let mut states = Runs::default();
    for record in records(text) {
        states.add(&record, &mut notes);
        if is_begin(record.head) {
            runs += 1;
            before = before.with(&log);
            (log.errors, log.warnings, log.leaked) = (None, None, None);
        }
        summaries += usize::from(is_last_summary(record.head));
        if log.summary(record.head, &mut left_out) || record.is_status() {
            continue;
        }
        if !record.is_finding() {
            let begin: String = record.head.chars().take(40).collect();
            let text = format!("`{begin}` is not a finding in a known format: it is left out");
            notes.add(format!("line {}", record.line), text);
            continue;
        }
        reported += 1;
        let finding = finding(&record);
        let key = (
            finding.check,
            finding.kernel.clone(),
            finding.source.clone(),
            finding.other.clone(),
            finding.bytes,
        );
        match places.get(&key) {
            Some(&place) => {
                let seen: &mut SanitizerFinding = &mut log.findings[place];
                seen.count = seen.count.saturating_add(finding.count);
            }
            None if log.findings.len() < MAX_FINDINGS => {
                places.insert(key, log.findings.len());
                log.findings.push(finding);
            }
            None => log.left_out = Some(log.left_out.unwrap_or(0).saturating_add(finding.count)),
        }
    }
    states.end(&mut notes);
    let beyond = log.left_out.take().unwrap_or(0);
    let all = before.with(&log);
    (log.errors, log.warnings, log.leaked) = (all.errors, all.warnings, all.leaked);
    log.left_out = Some(left_out.saturating_add(beyond)).filter(|count| *count > 0);
    if runs > 1 {
        log.notes.push(format!(
            "the log has {runs} runs of the tool; the numbers of their errors \
                                are added"
        ));
    }
    if runs > summaries && summaries > 0 {
        log.notes.push(format!(
            "{} of {runs} runs have no summary: their findings are listed, but may be incomplete",
            runs - summaries
        ));
    }
    if runs <= summaries {
        log.notes.extend(log.difference(reported, left_out));
    }
    log.notes.extend(notes.into_texts());
    log
}

/// Returns whether a line is the summary at the end of a run.
fn is_last_summary(head: &str) -> bool {
    ["ERROR SUMMARY: ", "RACECHECK SUMMARY: "]
        .iter()
        .any(|mark| head.strip_prefix(mark).is_some_and(|rest| !rest.contains("not printed")))
}

/// Returns whether a text looks like a log of compute-sanitizer. The beginning or the end of the
/// log may be missing.
pub(super) fn looks_like_log(text: &str) -> bool {
    if !text.contains("=========") {
        return false;
    }
    records(text).any(|record| {
        is_begin(record.head)
            || is_last_summary(record.head)
            || record.head.contains("ERROR SUMMARY: ")
            || record.is_known() && !record.details.is_empty()
    })
}

impl SanitizerLog {
    /// Returns whether the tool finished its work.
    pub fn complete(&self) -> bool {
        self.errors.is_some()
    }

    /// Returns a note if the summary's number of records differs from the log's.
    fn difference(&self, reported: u64, unprinted: u64) -> Option<String> {
        let counted = self.errors?.saturating_add(self.warnings.unwrap_or(0));
        let found = reported.saturating_add(unprinted);
        (counted != found).then(|| {
            format!(
                "the tool's own summary counts {counted} errors and warnings, but the log has \
                 {found} records: part of the log is missing, or the summary belongs to another \
                 run"
            )
        })
    }

    /// Adds the counts of another run.
    fn with(&self, other: &Self) -> Self {
        let leaked = match (self.leaked, other.leaked) {
            (Some(a), Some(b)) => Some([a[0].saturating_add(b[0]), a[1].saturating_add(b[1])]),
            (one, other) => one.or(other),
        };
        Self {
            errors: added(self.errors, other.errors),
            warnings: added(self.warnings, other.warnings),
            leaked,
            ..Self::default()
        }
    }

    /// Parses a line of the tool's summary. Returns whether the line is such a line.
    fn summary(&mut self, head: &str, left_out: &mut u64) -> bool {
        let Some((kind, rest)) = head.split_once(" SUMMARY: ") else { return false };
        let mut words = rest.split([' ', ',', '(']).filter(|word| !word.is_empty());
        let first = number(rest.split(' ').next().unwrap_or_default());
        match kind {
            "LEAK" => {
                let allocations = rest
                    .split_once(" in ")
                    .and_then(|(_, rest)| number(rest.split(' ').next().unwrap_or_default()));
                self.leaked = first.zip(allocations).map(<[u64; 2]>::from);
            }
            "RACECHECK" => {
                let counts = rest.split_once('(').map(|(_, counts)| counts);
                let of = |word: &str| {
                    let part = counts?.split(", ").find(|part| part.contains(word))?;
                    number(part.split(' ').next()?)
                };
                self.errors = of("error").or(first);
                self.warnings = of("warning");
            }
            _ if words.any(|word| word == "not") => {
                *left_out = left_out.saturating_add(first.unwrap_or_default());
            }
            _ => self.errors = first.or(self.errors),
        }
        true
    }
}

/// Returns the sum of two optional counts.
fn added(so_far: Option<u64>, more: Option<u64>) -> Option<u64> {
    match (so_far, more) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (one, other) => one.or(other),
    }
}

fn finding(record: &Record<'_>) -> SanitizerFinding {
    let lines = || std::iter::once(record.head).chain(record.details.iter().copied());
    let address = record.details.iter().copied().chain([record.head]).find_map(|line| {
        ["Access to ", "Access at ", "Address ", "access to ", "at __shared__ "]
            .iter()
            .find_map(|mark| hexadecimal(after(line, mark)?))
    });
    let mut places = places(record).into_iter();
    let frames = frames(record);
    let place = places.next().unwrap_or_default();
    let calls: Vec<&str> = frames.iter().filter_map(|frame| frame.source.as_deref()).collect();
    let source = place.source.map(|source| match calls.is_empty() {
        true => source,
        false => format!("{source}{CALLED_FROM}{})", calls.join(", ")),
    });
    let others = places.take(MAX_SIDES).map(|other| other.source.unwrap_or(other.function));
    let others: Vec<String> = others.collect();
    let counts: Vec<u64> = lines().filter_map(hazards).collect();
    let count = counts.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
    SanitizerFinding {
        check: check(record),
        kernel: frames.into_iter().next_back().map_or(place.function, |frame| frame.function),
        block: lines().find_map(|line| extent(after(line, "in block ")?)),
        thread: lines().find_map(|line| {
            extent(after(line, "by thread ").or_else(|| after(line, " Thread "))?)
        }),
        source,
        other: (!others.is_empty()).then(|| others.join(", ")),
        address,
        bytes: after(record.head, "of size ").and_then(|size| number(size.split(' ').next()?)),
        message: message(record),
        count: if counts.is_empty() { 1 } else { count },
    }
}

fn check(record: &Record<'_>) -> &'static str {
    let head = record.head;
    let says = |text: &str| record.details.iter().any(|line| line.contains(text));
    let begins = |text: &str| head.starts_with(text);
    if begins("Invalid ") || begins("Misaligned ") || begins("Out-of-range ") {
        return match () {
            () if says("misaligned") || begins("Misaligned ") => "misaligned",
            () if says("freed") => "use_after_free",
            () if says("read-only") => "read_only_write",
            () => "out_of_bounds",
        };
    }
    match () {
        () if begins("Uninitialized ") => "uninitialised_read",
        () if begins("Host API ") => "host_access",
        () if begins("Unused memory") => "unused_memory",
        () if head.contains("Race reported") || head.contains(" hazard detected at ") => {
            "shared_race"
        }
        () if begins("Barrier error") && head.contains("Divergent") => "divergent_barrier",
        () if begins("Barrier error") => "invalid_barrier",
        () if begins("Malloc/Free error") => "bad_free",
        () if begins("Leaked ") => "leak",
        () if begins("Program hit ") => "api_error",
        () => "other",
    }
}

/// Returns the text of a finding: its first line and its details, without locations.
fn message(record: &Record<'_>) -> String {
    let elsewhere = |line: &&&str| {
        !["at ", "by thread ", "Saved ", "Host Frame", "Device Frame", "in /"]
            .iter()
            .any(|start| line.starts_with(start))
    };
    let mut text = record.head.to_owned();
    let mut separator = ": ";
    for line in record.details.iter().filter(elsewhere) {
        text.push_str(if line.starts_with("and ") { " " } else { separator });
        separator = "; ";
        text.push_str(line);
    }
    text.chars().take(MAX_MESSAGE).collect()
}

#[cfg(test)]
mod tests;
