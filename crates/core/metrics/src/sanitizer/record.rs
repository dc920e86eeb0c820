//! Records of a log: a head, and details. The main type is [`Record`].

/// Maximum number of details of a record that are kept. Backtraces may be long.
const MAX_DETAILS: usize = 64;
/// Maximum number of records that are read.
const MAX_RECORDS: usize = 1_000_000;
/// Maximum number of bytes that are read of a line.
const MAX_LINE: usize = 8 << 10;

/// Line about a program that ended abnormally. The tool prints its summary all the same.
pub(super) const CRASHED: &str = "Error: process didn't terminate successfully";

/// Beginnings of details in all versions. Logs that were copied from web pages have lost the
/// indentation that marks details.
const DETAILS: [&str; 21] = [
    "at ",
    "by thread ",
    "Address 0x",
    "Access at ",
    "Access to ",
    "and is ",
    "and Read access ",
    "and Write access ",
    "Read Thread (",
    "Write Thread (",
    "Current Value ",
    "Incoming Value ",
    "Uninitialized access to ",
    "Saved host backtrace",
    "Host Frame",
    "Device Frame",
    "Saved device backtrace",
    "in /",
    "Not written ",
    "ERROR : ",
    "Barrier expected ",
];

/// Beginnings of findings in all versions.
const FINDINGS: [&str; 15] = [
    "Invalid __",
    "Invalid cp.",
    "Misaligned ",
    "Out-of-range ",
    "Uninitialized ",
    "Host API memory access error",
    "Host API uninitialized memory access",
    "Unused memory",
    "Barrier error",
    "Malloc/Free error",
    "Leaked ",
    "Program hit ",
    "Fatal UVM ",
    "Stack overflow",
    "Missing wgmma fence",
];

#[derive(Debug)]
pub(super) struct Record<'a> {
    /// Line of the head, from 1.
    pub(super) line: usize,
    pub(super) head: &'a str,
    pub(super) details: Vec<&'a str>,
}

impl Record<'_> {
    /// Returns whether the head begins a finding of a known version of the tool.
    pub(super) fn is_known(&self) -> bool {
        self.is_race() || FINDINGS.iter().any(|begin| self.head.starts_with(begin))
    }

    /// Returns whether the record is a finding. Unknown versions are recognised by details.
    pub(super) fn is_finding(&self) -> bool {
        let is_summary = self.head.contains(" SUMMARY: ");
        !is_summary && !self.is_status() && (self.is_known() || !self.details.is_empty())
    }

    fn is_race(&self) -> bool {
        self.head.contains("Race reported") || self.head.contains(" hazard detected at ")
    }

    /// Returns whether the record is about the tool's own progress, and not a finding.
    pub(super) fn is_status(&self) -> bool {
        const STATUS: [&str; 10] = [
            "COMPUTE-SANITIZER",
            "CUDA-MEMCHECK",
            "Target application returned an error",
            "This tool is deprecated",
            "Please use the compute-sanitizer",
            "Internal Sanitizer Error",
            "Warning:",
            "Using ",
            "Tracking kernel",
            "Default timeout can be adjusted",
        ];
        // The tool counts the end of a program as an error only if it explains the end.
        let is_counted = self.head.starts_with(CRASHED) && !self.details.is_empty();
        let is_failure = self.head.starts_with("Error: ") && !is_counted;
        !self.is_race() && (is_failure || STATUS.iter().any(|status| self.head.starts_with(status)))
    }
}

/// Returns the records that a log contains.
pub(super) fn records(text: &str) -> impl Iterator<Item = Record<'_>> {
    let lines = text.lines().enumerate();
    let mut lines = lines.filter_map(|(at, line)| Some((at + 1, tool_line(line)?))).peekable();
    std::iter::from_fn(move || {
        // Details without a head belong to a truncated record.
        let (line, head) = lines.find(|(_, line)| matches!(line, Line::Head(_)))?;
        let Line::Head(head) = head else { return None };
        let mut details = Vec::new();
        let is_detail = |line: &(usize, Line<'_>)| matches!(line.1, Line::Detail(_));
        while let Some((_, Line::Detail(detail))) = lines.next_if(is_detail) {
            if details.len() < MAX_DETAILS {
                details.push(detail);
            }
        }
        Some(Record { line, head, details })
    })
    .take(MAX_RECORDS)
}

#[derive(Debug)]
enum Line<'a> {
    Head(&'a str),
    Detail(&'a str),
    Empty,
}

/// Parses a line of the tool: nine `=`, a space, and four more spaces for details.
fn tool_line(line: &str) -> Option<Line<'_>> {
    let rest = line.trim_start_matches('\u{feff}').strip_prefix("=========")?;
    let mut end = rest.len().min(MAX_LINE);
    while !rest.is_char_boundary(end) {
        end -= 1;
    }
    let rest = &rest[..end];
    let text = rest.trim();
    Some(match () {
        () if text.is_empty() => Line::Empty,
        // A line that begins with more `=` is not from the tool.
        () if !rest.starts_with([' ', '\t', '\u{a0}']) => return None,
        () if rest.starts_with("   ") || rest.starts_with('\t') => Line::Detail(text),
        () if DETAILS.iter().any(|begin| text.starts_with(begin)) => Line::Detail(text),
        () => Line::Head(text),
    })
}
