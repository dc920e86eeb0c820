//! Formats a diagnosis as text.

use super::{Check, Diagnosis, State};
use crate::cli::terminal::{Style, plain_line};

/// Column of what a check found.
const FOUND: usize = 27;

/// Indentation of what a check is for, and of its remedy.
const INDENT: &str = "        ";

pub(super) fn of(diagnosis: &Diagnosis, style: Style) -> String {
    let mut text = diagnosis.checks.iter().map(|check| line(check, style)).collect::<String>();
    text.push('\n');
    text.push_str(&match (&diagnosis.next, diagnosis.ready) {
        (_, true) => "ready: evaluations run here\n".to_owned(),
        (Some(next), false) => format!("not ready: first `{}`\n", plain_line(next)),
        (None, false) => "not ready\n".to_owned(),
    });
    text
}

fn line(check: &Check, style: Style) -> String {
    let (word, colour) = match check.state {
        State::Ok => ("ok", 32),
        State::Absent => ("absent", 33),
        State::Weak => ("weak", 33),
        State::Fault => ("FAULT", 31),
    };
    let padded = format!("{word:<6}");
    let word = if style.colour { format!("\x1b[1;{colour}m{padded}\x1b[0m") } else { padded };
    let first = format!("{word}  {:<18} ", check.name);
    let mut text = style.filled(&first, FOUND, &plain_line(&check.found));
    if check.state != State::Ok {
        text.push_str(&style.filled(INDENT, INDENT.len(), check.purpose));
    }
    if let Some(remedy) = &check.remedy {
        let first = format!("{INDENT}-> ");
        text.push_str(&style.filled(&first, first.len(), &plain_line(remedy)));
    }
    text
}
