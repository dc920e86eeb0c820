//! Markdown for a comment on a pull request.

use super::{CaseReport, GateReport, words};
use crate::{GateOutcome, SuiteVerdict};

/// Maximum number of cases in the visible table; the others are in a folded section.
const OPEN_ROWS: usize = 50;

/// Beginning of every comment, by which a later run finds the comment to replace.
const MARK: &str = "<!-- warpgauge gate -->";

/// Formats the report as a comment, with the cases that fail the change first.
pub(super) fn markdown(report: &GateReport) -> String {
    let sign = match report.verdict {
        SuiteVerdict::Pass => "✅",
        SuiteVerdict::Inconclusive => "❔",
        SuiteVerdict::Error => "⚠️",
        SuiteVerdict::Regression => "🔴",
        SuiteVerdict::Invalid => "⛔",
    };
    let mut text = format!(
        "{MARK}\n### {sign} Performance gate: {}\n\n{} on {}, against {}.\n\n{}\n",
        report.verdict.name(),
        words::totals(report),
        cell(&words::device(report)),
        cell(&words::baseline(report)),
        cell(&report.statement),
    );
    let (loud, quiet): (Vec<_>, Vec<_>) = report
        .cases
        .iter()
        .partition(|case| !matches!(case.outcome, GateOutcome::Pass | GateOutcome::Improved));
    let open = loud.len().min(OPEN_ROWS);
    table(&mut text, &loud[..open]);
    let folded = loud[open..].iter().chain(&quiet).copied().collect::<Vec<_>>();
    if !folded.is_empty() {
        text.push_str(&format!("\n<details><summary>{} more</summary>\n", folded.len()));
        table(&mut text, &folded);
        text.push_str("\n</details>\n");
    }
    if !report.notes.is_empty() {
        text.push('\n');
    }
    for note in &report.notes {
        text.push_str(&format!("- {}\n", cell(note)));
    }
    text
}

fn table(text: &mut String, cases: &[&CaseReport]) {
    if cases.is_empty() {
        return;
    }
    text.push_str(
        "\n| case | outcome | change, candidate against baseline | finds at least | why |\n",
    );
    text.push_str("| --- | --- | --- | --- | --- |\n");
    for case in cases {
        let advisory = if case.policy.advisory { " (advisory)" } else { "" };
        text.push_str(&format!(
            "| {} | **{}**{advisory} | {} | {} | {} |\n",
            cell(&case.name),
            words::outcome(case.outcome),
            cell(&words::measured(case)),
            words::detectable(case).unwrap_or_default(),
            cell(&words::why(case)),
        ));
    }
}

/// Escapes foreign text in a table: it can neither end the cell nor become markup, a mention or a
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
