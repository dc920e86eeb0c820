//! Markdown for a comment on a pull request.

use super::{CaseReport, GateReport, words};
use crate::{GateOutcome, SuiteVerdict};

/// Maximum number of cases in the visible table; the others are in a collapsed section.
const OPEN_ROWS: usize = 50;

/// Maximum size of a comment, bytes. GitHub accepts 65,536 characters.
const MAX_BYTES: usize = 65_536;

/// Bytes that are reserved for the text after the tables, apart from notes.
const RESERVED: usize = 512;

/// Beginning of every comment, by which a later run finds the comment to replace.
const MARK: &str = "<!-- warpgauge gate";

/// Formats the report as a comment of bounded length, with the worst cases first. Its first line names the suite, so
/// that each suite has a separate comment.
pub(super) fn markdown(report: &GateReport) -> String {
    let sign = match report.verdict {
        SuiteVerdict::Pass => "✅",
        SuiteVerdict::Inconclusive => "❔",
        SuiteVerdict::Error => "⚠️",
        SuiteVerdict::Regression => "🔴",
        SuiteVerdict::Invalid => "⛔",
    };
    let mut text = format!(
        "{MARK}: {} -->\n### {sign} Performance gate: {}\n\n{} on {}, against {}.\n\n{}\n",
        comment(&report.suite),
        report.verdict.name(),
        words::totals(report),
        cell(&words::device(report)),
        cell(&words::baseline(report)),
        cell(&report.statement),
    );
    let notes: Vec<String> =
        report.notes.iter().map(|note| format!("- {}\n", cell(&words::shortened(note)))).collect();
    let mut left = Left(MAX_BYTES.saturating_sub(text.len() + RESERVED));
    let notes: Vec<String> = {
        // Notes take at most a quarter, and cases have priority.
        let mut room = Left(left.0 / 4);
        notes.into_iter().take_while(|note| room.take(note)).collect()
    };
    left.0 = left.0.saturating_sub(notes.iter().map(String::len).sum());

    let ordered = words::worst_first(&report.cases);
    let is_loud =
        |case: &&CaseReport| !matches!(case.outcome, GateOutcome::Pass | GateOutcome::Improved);
    let loud = ordered.iter().filter(|case| is_loud(case)).count().min(OPEN_ROWS);
    let (open, folded) = ordered.split_at(loud);
    let mut rows = table(&mut text, open, &mut left);
    if !folded.is_empty() && rows == open.len() {
        let mut table_text = String::new();
        let more = table(&mut table_text, folded, &mut left);
        if more > 0 {
            text.push_str(&format!("\n<details><summary>{more} more</summary>\n"));
            text.push_str(&table_text);
            text.push_str("\n</details>\n");
        }
        rows += more;
    }
    let dropped = report.cases.len() - rows;
    if dropped > 0 {
        text.push_str(&format!(
            "\n{dropped} more cases do not fit into a comment; gate.html and gate.json contain \
             them.\n"
        ));
    }
    if !notes.is_empty() {
        text.push('\n');
    }
    notes.iter().for_each(|note| text.push_str(note));
    if notes.len() < report.notes.len() {
        text.push_str("- gate.json contains more notes\n");
    }
    if let Some(page) = report.page.as_deref().filter(|page| is_link(page)) {
        text.push_str(&format!("\n[Page of this run](<{page}>)\n"));
    }
    text
}

/// Returns whether a URL can stand between angle brackets, and fits into the reserved bytes.
fn is_link(url: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'\\');
    words::is_web(url) && url.len() <= RESERVED / 2 && url.bytes().all(is_plain)
}

/// Number of bytes that may still be written.
struct Left(usize);

impl Left {
    /// Returns whether a text fits, and if so, counts it.
    fn take(&mut self, text: &str) -> bool {
        let fits = text.len() <= self.0;
        if fits {
            self.0 -= text.len();
        }
        fits
    }
}

const HEADING: &str = "\n| case | outcome | change, candidate against baseline | detectable \
                       slowdown | why |\n| --- | --- | --- | --- | --- |\n";

/// Writes the cases that fit, and returns their number.
fn table(text: &mut String, cases: &[&CaseReport], left: &mut Left) -> usize {
    if cases.is_empty() || !left.take(HEADING) {
        return 0;
    }
    text.push_str(HEADING);
    for (index, case) in cases.iter().enumerate() {
        let advisory = if case.policy.advisory { " (advisory)" } else { "" };
        let row = format!(
            "| {} | **{}**{advisory} | {} | {} | {} |\n",
            cell(&case.name),
            words::outcome(case.outcome),
            cell(&words::measured(case)),
            words::detectable(case).unwrap_or_default(),
            cell(&words::why(case)),
        );
        if !left.take(&row) {
            return index;
        }
        text.push_str(&row);
    }
    cases.len()
}

/// Escapes foreign text in an HTML comment, which `--` could end.
fn comment(text: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "./_ ".contains(c) { c } else { '?' };
    text.chars().map(safe).collect()
}

/// Escapes foreign text in a table, so that it cannot end the cell or become markup, a mention or a
/// link.
fn cell(text: &str) -> String {
    let mut cell = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let (before, after) = (&text.as_bytes()[..at], &text[at + c.len_utf8()..]);
        match c {
            // GitHub also links plain addresses, user names and issue numbers. A zero-width joiner
            // prevents that.
            '@' => cell.push_str("@\u{200d}"),
            '#' => cell.push_str("\\#\u{200d}"),
            ':' if after.starts_with("//") => cell.push_str(":\u{200d}"),
            'w' | 'W'
                if after.starts_with('.')
                    && before[at.saturating_sub(2)..].eq_ignore_ascii_case(b"ww") =>
            {
                cell.push(c);
                cell.push('\u{200d}');
            }
            '\\' | '|' | '`' | '*' | '_' | '~' | '[' | ']' | '!' => {
                cell.push('\\');
                cell.push(c);
            }
            '<' => cell.push_str("&lt;"),
            '>' => cell.push_str("&gt;"),
            '&' => cell.push_str("&amp;"),
            c if warpgauge_model::is_hidden(c) => cell.push(' '),
            c => cell.push(c),
        }
    }
    cell
}
