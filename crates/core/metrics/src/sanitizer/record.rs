//! Records of a log: a head, and indented details. The main type is [`Record`].

/// Maximum number of details that are kept of a record: backtraces may be long.
const MAX_DETAILS: usize = 64;
/// Maximum number of records that are read.
const MAX_RECORDS: usize = 1_000_000;
/// Maximum number of bytes of a line that are read.
const MAX_LINE: usize = 8 << 10;

#[derive(Debug)]
pub(super) struct Record<'a> {
    pub(super) head: &'a str,
    pub(super) details: Vec<&'a str>,
}

impl Record<'_> {
    /// Returns whether the record is about the tool's own progress, and not a finding.
    pub(super) fn is_status(&self) -> bool {
        const STATUS: [&str; 9] = [
            "COMPUTE-SANITIZER",
            "CUDA-MEMCHECK",
            "Target application returned an error",
            "This tool is deprecated",
            "Please use the compute-sanitizer",
            "Internal Sanitizer Error",
            "Warning:",
            "Using ",
            "Tracking kernel",
        ];
        let is_race = self.head.contains("Race reported") || self.head.contains(" hazard ");
        let is_failure = self.head.starts_with("Error: ");
        !is_race && (is_failure || STATUS.iter().any(|status| self.head.starts_with(status)))
    }
}

/// Returns the records of a text.
pub(super) fn records(text: &str) -> impl Iterator<Item = Record<'_>> {
    let mut lines = text.lines().filter_map(tool_line).peekable();
    std::iter::from_fn(move || {
        // Details without a head belong to a truncated record.
        let head = lines.find(|line| matches!(line, Line::Head(_)))?;
        let Line::Head(head) = head else { return None };
        let mut details = Vec::new();
        while let Some(Line::Detail(detail)) = lines.next_if(|line| matches!(line, Line::Detail(_)))
        {
            if details.len() < MAX_DETAILS {
                details.push(detail);
            }
        }
        Some(Record { head, details })
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
        // A longer rule is not a line of the tool.
        () if !rest.starts_with(' ') => return None,
        () if rest.starts_with("   ") => Line::Detail(text),
        () => Line::Head(text),
    })
}
