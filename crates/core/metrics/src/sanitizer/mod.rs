//! Parses the output of compute-sanitizer: findings of memcheck, racecheck, initcheck and
//! synccheck. The main type is [`SanitizerLog`].

use std::collections::BTreeMap;

use serde::Serialize;

use warpgauge_model::Cause;

mod record;

use record::{Record, records};

/// Maximum number of different findings; the same finding at another address or thread is only
/// counted.
pub const MAX_FINDINGS: usize = 200;
/// Maximum number of characters of a message.
const MAX_MESSAGE: usize = 1_000;

/// Content of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SanitizerLog {
    /// The findings, in their order.
    pub findings: Vec<SanitizerFinding>,
    /// Number of records that the tool did not print, and of findings beyond [`MAX_FINDINGS`].
    pub left_out: Option<u64>,
    /// Errors in the tool's own summary; `None` if it wrote none.
    pub errors: Option<u64>,
    /// Warnings in the tool's own summary.
    pub warnings: Option<u64>,
    /// Bytes and allocations that were not freed, if the tool checked this.
    pub leaked: Option<(u64, u64)>,
    /// Caveats.
    pub notes: Vec<String>,
}

/// A finding with the number of its occurrences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SanitizerFinding {
    /// Name of the check. It is the emulator's name if the emulator has the check: `out_of_bounds`,
    /// `misaligned`, `use_after_free`, `read_only_write`, `uninitialised_read`, `shared_race`,
    /// `divergent_barrier`. Otherwise it is `invalid_barrier`, `bad_free`, `leak`, `unused_memory`,
    /// `host_access`, `api_error`, `other`.
    pub check: &'static str,
    /// The kernel as the tool writes it; empty if no kernel is involved.
    pub kernel: String,
    /// Block index of the first occurrence.
    pub block: Option<[u32; 3]>,
    /// Thread index of the first occurrence.
    pub thread: Option<[u32; 3]>,
    /// Source file without directories, and line.
    pub source: Option<String>,
    /// Address of the first occurrence.
    pub address: Option<u64>,
    /// Size of the access, bytes.
    pub bytes: Option<u64>,
    /// What happened, as the tool describes it.
    pub message: String,
    /// Number of occurrences.
    pub count: u64,
}

/// Parses a log. It must be the tool's own file (`--log-file`), since a program could forge the
/// tool's lines in a shared stream.
pub fn parse_log(text: &str) -> SanitizerLog {
    let mut log = SanitizerLog::default();
    let mut places = BTreeMap::new();
    let mut left_out = 0u64;
    let (mut runs, mut summaries) = (0, 0);
    let mut before = SanitizerLog::default();
    for record in records(text) {
        if record.head == "COMPUTE-SANITIZER" {
            runs += 1;
            before = before.with(&log);
            (log.errors, log.warnings, log.leaked) = (None, None, None);
        }
        summaries += usize::from(is_last_summary(record.head));
        if log.summary(record.head, &mut left_out) || record.is_status() {
            continue;
        }
        let finding = finding(&record);
        let key = (finding.check, finding.kernel.clone(), finding.source.clone(), finding.bytes);
        match places.get(&key) {
            Some(&place) => {
                let seen: &mut SanitizerFinding = &mut log.findings[place];
                seen.count = seen.count.saturating_add(finding.count);
            }
            None if log.findings.len() < MAX_FINDINGS => {
                places.insert(key, log.findings.len());
                log.findings.push(finding);
            }
            None => left_out = left_out.saturating_add(finding.count),
        }
    }
    let all = before.with(&log);
    (log.errors, log.warnings, log.leaked) = (all.errors, all.warnings, all.leaked);
    log.left_out = (left_out > 0).then_some(left_out);
    if runs > 1 {
        log.notes.push(format!("the log has {runs} runs of the tool; their errors are added"));
    }
    if runs > summaries && summaries > 0 {
        log.notes.push(format!(
            "{} of {runs} runs came to no summary: what they found is here, and not all of it may \
             be",
            runs - summaries
        ));
    }
    log
}

/// Returns whether a line is the summary at the end of a run.
fn is_last_summary(head: &str) -> bool {
    ["ERROR SUMMARY: ", "RACECHECK SUMMARY: "]
        .iter()
        .any(|mark| head.strip_prefix(mark).is_some_and(|rest| !rest.contains("not printed")))
}

/// Returns whether a text looks like a log of this kind.
pub(super) fn looks_like_log(text: &str) -> bool {
    records(text)
        .any(|record| record.head == "COMPUTE-SANITIZER" || record.head.contains("ERROR SUMMARY: "))
}

/// Returns why the tool did no work, if the log has a reason.
pub fn cause(text: &str) -> Option<Cause> {
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
    records(text).find_map(|record| {
        TEXTS.iter().find(|(text, _)| record.head.contains(text)).map(|(_, cause)| *cause)
    })
}

impl SanitizerLog {
    /// Returns whether the tool finished its work.
    pub fn complete(&self) -> bool {
        self.errors.is_some()
    }

    /// Adds the counts of another run.
    fn with(&self, other: &Self) -> Self {
        let leaked = match (self.leaked, other.leaked) {
            (Some(a), Some(b)) => Some((a.0.saturating_add(b.0), a.1.saturating_add(b.1))),
            (one, other) => one.or(other),
        };
        Self {
            errors: added(self.errors, other.errors),
            warnings: added(self.warnings, other.warnings),
            leaked,
            ..Self::default()
        }
    }

    /// Parses a summary. Returns whether the line is one.
    fn summary(&mut self, head: &str, left_out: &mut u64) -> bool {
        let Some((kind, rest)) = head.split_once(" SUMMARY: ") else { return false };
        let mut words = rest.split([' ', ',', '(']).filter(|word| !word.is_empty());
        let first = number(rest.split(' ').next().unwrap_or_default());
        match kind {
            "LEAK" => {
                let allocations = rest
                    .split_once(" in ")
                    .and_then(|(_, rest)| number(rest.split(' ').next().unwrap_or_default()));
                self.leaked = first.zip(allocations);
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

/// Adds two optional counts.
fn added(so_far: Option<u64>, more: Option<u64>) -> Option<u64> {
    match (so_far, more) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (one, other) => one.or(other),
    }
}

fn finding(record: &Record<'_>) -> SanitizerFinding {
    let details = || record.details.iter().copied();
    let at = details().chain([record.head]).find_map(location);
    let frame = details()
        .filter_map(|line| line.strip_prefix("Device Frame:"))
        .filter_map(|line| function(line.trim()))
        .next_back();
    let address = details().chain([record.head]).find_map(|line| {
        ["Access to ", "Address ", "access to ", "at __shared__ "]
            .iter()
            .find_map(|mark| hexadecimal(after(line, mark)?))
    });
    let hazards = details().chain([record.head]).find_map(hazards);
    let (kernel, source) = at.unwrap_or_default();
    SanitizerFinding {
        check: check(record),
        kernel: frame.unwrap_or(kernel),
        block: details().chain([record.head]).find_map(|line| extent(after(line, "in block ")?)),
        thread: details().find_map(|line| {
            extent(after(line, "by thread ").or_else(|| after(line, " Thread "))?)
        }),
        source,
        address,
        bytes: after(record.head, "of size ").and_then(|size| number(size.split(' ').next()?)),
        message: message(record),
        count: hazards.unwrap_or(1),
    }
}

fn check(record: &Record<'_>) -> &'static str {
    let head = record.head;
    let says = |text: &str| record.details.iter().any(|line| line.contains(text));
    let begins = |text: &str| head.starts_with(text);
    if begins("Invalid __") || begins("Misaligned ") || begins("Out-of-range ") {
        return match () {
            () if says("misaligned") || begins("Misaligned ") => "misaligned",
            () if says("freed") => "use_after_free",
            () if says("read-only") => "read_only_write",
            () => "out_of_bounds",
        };
    }
    match () {
        () if begins("Uninitialized ") => "uninitialised_read",
        () if begins("Host API memory access error") => "host_access",
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

/// Returns the head, with the details other than locations.
fn message(record: &Record<'_>) -> String {
    let elsewhere = |line: &&&str| {
        !["at ", "by thread ", "Saved host backtrace", "Host Frame", "Device Frame", "in /"]
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

/// Returns the function and source of `… at f(int *)+0xe0 in k.cu:9`, `… at 0x70 in /d/k.cu:9:f(int
/// *)`, or `… at 0x70 in f(int *)`; versions differ.
fn location(line: &str) -> Option<(String, Option<String>)> {
    let line = line.split(" [").next().unwrap_or(line);
    let place = line.strip_prefix("at ").or_else(|| {
        let at = line.find(" access at ").map(|at| at + " access at ".len());
        let at = at.or_else(|| line.find(") at ").map(|at| at + ") at ".len()))?;
        Some(&line[at..])
    })?;
    if place.starts_with("__") && place.contains(" in block ") {
        return None;
    }
    let Some(rest) = place.strip_prefix("0x") else {
        let source = place.rsplit_once(" in ").and_then(|(_, source)| file_and_line(source));
        return Some((function(place)?, source));
    };
    let (_, rest) = rest.split_once(" in ")?;
    let mut parts = rest.splitn(3, ':');
    let (file, line, function) = (parts.next()?, parts.next(), parts.next());
    match (line.filter(|line| line.bytes().all(|b| b.is_ascii_digit())), function) {
        (Some(line), Some(function)) => {
            Some((cut(function), file_and_line(&format!("{file}:{line}"))))
        }
        _ => Some((cut(rest), None)),
    }
}

/// Returns the function of `f(int *)+0xe0 in k.cu:9`.
fn function(place: &str) -> Option<String> {
    let end = place.rfind("+0x").or_else(|| place.rfind(" in ")).unwrap_or(place.len());
    let name = place[..end].trim();
    (!name.is_empty()).then(|| cut(name))
}

/// Returns `k.cu:9` for a path and a line; directories are left out, since readers should not see
/// them.
fn file_and_line(text: &str) -> Option<String> {
    let (path, line) = text.trim().rsplit_once(':')?;
    let line: u32 = line.parse().ok()?;
    let name = path.rsplit(['/', '\\']).next().filter(|name| !name.is_empty())?;
    Some(format!("{}:{line}", cut(name)))
}

fn cut(text: &str) -> String {
    text.trim().chars().take(400).collect()
}

fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.find(mark).map(|at| &text[at + mark.len()..])
}

/// Parses `1,024`.
fn number(text: &str) -> Option<u64> {
    let digits: String = text.chars().filter(|c| *c != ',').collect();
    digits.parse().ok()
}

fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x")?;
    let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
    u64::from_str_radix(&digits[..end], 16).ok()
}

/// Parses `(5,0,0)`, also with spaces.
fn extent(text: &str) -> Option<[u32; 3]> {
    let inner = text.strip_prefix('(')?.split(')').next()?;
    let mut parts = inner.split(',').map(|part| part.trim().parse::<u32>().ok());
    let extent = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(extent)
}

/// Returns the number in `… [256 hazards]`.
fn hazards(line: &str) -> Option<u64> {
    let inner = line.trim_end().strip_suffix(']')?.rsplit_once('[')?.1;
    let (count, word) = inner.split_once(' ')?;
    word.starts_with("hazard").then(|| number(count)).flatten()
}

#[cfg(test)]
mod tests;
