//! Rows about a whole program.

use super::super::format::duration_ms;
use super::super::terminal::plain;
use super::page::Page;
use warpgauge_report::{PrintedText, ProgramReport};

/// Maximum number of lines of each output stream that are shown. These are the last lines.
const MAX_LINES: usize = 20;

/// Maximum number of kernels and messages that are shown.
const MAX_ROWS: usize = 10;

/// Adds how the program ended, its output, and the kernels that it launched.
pub(super) fn program(page: &mut Page, report: &ProgramReport) {
    let end = plain(&report.end());
    let wall = duration_ms(report.wall_ms);
    page.row("program", &format!("{end} after {wall}; the program's time is not used for ranking"));
    printed(page, "stdout", &report.stdout);
    printed(page, "stderr", &report.stderr);
    // Kernels that have times are shown in the rows about the timeline.
    for kernel in report.kernels.iter().filter(|kernel| kernel.total_ms.is_none()).take(MAX_ROWS) {
        page.row("kernel", &format!("{} x {}", kernel.launches, plain(&kernel.name)));
    }
    for message in report.messages.iter().take(MAX_ROWS) {
        page.row("fault", &plain(message));
    }
}

fn printed(page: &mut Page, name: &str, printed: &PrintedText) {
    let lines: Vec<&str> = printed.text.lines().collect();
    if lines.is_empty() {
        return;
    }
    let first = lines.len().saturating_sub(MAX_LINES);
    let note = match (first, printed.left_out_bytes) {
        (0, 0) if lines.len() == 1 => "1 line".to_owned(),
        (0, 0) => format!("{} lines", lines.len()),
        (0, bytes) => format!("{bytes} bytes omitted"),
        (_, _) => format!("the last {MAX_LINES} of {} lines", lines.len()),
    };
    page.row(name, &note);
    for line in &lines[first..] {
        page.line(&plain(line));
    }
}
