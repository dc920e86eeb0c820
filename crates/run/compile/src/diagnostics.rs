//! Parses compiler logs into structured messages.
//!
//! Supported formats: NVRTC and nvcc (`kernel.cu(12): error: …`, with a caret line for the column),
//! gcc and clang (`file:12:5: error: …`), ptxas (`ptxas kernel.ptx, line 7; error : …`, `ptxas
//! error : …`), and errors of NVRTC as a tool (`nvrtc: error: …`).

use warpgauge_model::{Diagnostic, Severity};

/// Maximum length of a log that is kept, bytes.
pub(crate) const MAX_LOG_BYTES: usize = 256 << 10;

/// Maximum number of messages that are parsed from a log.
const MAX_DIAGNOSTICS: usize = 256;

/// Maximum length of a parsed message, bytes.
const MAX_MESSAGE_BYTES: usize = 2048;

/// Reasons why the operating system cannot open a file. They are at the end of a message's line.
const UNOPENED: [&str; 5] = [
    ": Permission denied",
    ": Operation not permitted",
    ": Not a directory",
    ": Is a directory",
    ": Too many levels of symbolic links",
];

/// Replaces all reasons why a file cannot be opened with the same text, so that the author of a
/// source does not learn whether such a file exists. NVRTC gives no reason for a missing file, but
/// other compilers do.
fn without_reasons(log: String) -> String {
    if !UNOPENED.iter().any(|reason| log.contains(reason)) {
        return log;
    }
    let line = |line: &str| {
        let (text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
        match UNOPENED.iter().find_map(|reason| text.strip_suffix(reason)) {
            Some(text) if text.contains("cannot open source file \"") => format!("{text}{end}"),
            Some(text) => format!("{text}: No such file or directory{end}"),
            None => line.to_owned(),
        }
    };
    log.split_inclusive('\n').map(line).collect()
}

/// Shortens a log to its maximum length. Compilers report the first, decisive errors at the top.
/// Also gives all messages about files that cannot be opened the same text.
pub(crate) fn bound_log(log: String) -> String {
    let mut log = without_reasons(log);
    if log.len() > MAX_LOG_BYTES {
        let dropped = log.len() - MAX_LOG_BYTES;
        log.truncate(boundary_before(&log, MAX_LOG_BYTES));
        log.push_str(&format!("\n[{dropped} further bytes of the log were dropped]\n"));
    }
    log
}

/// Returns the position of the last character boundary of `text` at or before `at`.
pub(crate) fn boundary_before(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// Returns the messages of a log, in order.
pub(crate) fn parse(log: &str) -> Vec<Diagnostic> {
    let lines: Vec<&str> = log.lines().collect();
    let mut found: Vec<Diagnostic> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if found.len() == MAX_DIAGNOSTICS {
            break;
        }
        if let Some(mut diagnostic) = parse_line(line) {
            if diagnostic.column.is_none() {
                diagnostic.column = caret_column(&lines[at + 1..]);
            }
            // Each call of an undefined function causes the same message.
            if diagnostic.line.is_some() || !found.contains(&diagnostic) {
                found.push(diagnostic);
            }
        }
    }
    found
}

fn parse_line(line: &str) -> Option<Diagnostic> {
    if line.starts_with("ptxas") {
        return ptxas(line);
    }
    if let Some(found) = linker(line) {
        return Some(found);
    }
    let (place, severity, message) = split_severity(line)?;
    let (file, line, column) = place_of(place);
    Some(diagnostic(severity, file, line, column, message))
}

/// Parses a linker error. Drops the text before it, which contains the name of a temporary file of
/// the compiler.
fn linker(line: &str) -> Option<Diagnostic> {
    let said = ["undefined reference to ", "multiple definition of ", "cannot find -l"];
    let at = said.iter().find_map(|text| line.find(text))?;
    Some(diagnostic(Severity::Error, None, None, None, line[at..].trim_end()))
}

/// Splits `PLACE: error: MESSAGE` at the first severity word.
fn split_severity(line: &str) -> Option<(&str, Severity, &str)> {
    const WORDS: [(&str, Severity); 6] = [
        ("catastrophic error", Severity::Error),
        ("internal error", Severity::Error),
        ("fatal error", Severity::Error),
        ("error", Severity::Error),
        ("warning", Severity::Warning),
        ("note", Severity::Note),
    ];
    let mut from = 0;
    loop {
        let colon = from + line.get(from..)?.find(": ")?;
        let rest = &line[colon + 2..];
        for (word, severity) in WORDS {
            let Some(tail) = rest.strip_prefix(word) else { continue };
            // `error #20: …` and `warning #177-D: …` contain a number.
            let message = match tail.strip_prefix(" #").and_then(|t| t.split_once(':')) {
                Some((number, message)) if !number.contains(' ') => message,
                _ => match tail.trim_start().strip_prefix(':') {
                    Some(message) => message,
                    None => continue,
                },
            };
            return Some((line[..colon].trim_end(), severity, message.trim()));
        }
        // `Command-line error: …` has the severity before the first colon.
        if from == 0 && line[..colon].ends_with("Command-line error") {
            return Some(("", Severity::Error, rest.trim()));
        }
        from = colon + 1;
    }
}

/// Parses a location: `file(line)`, `file(line:column)`, `file:line:column`, `file:line` or only a
/// name.
fn place_of(place: &str) -> (Option<String>, Option<u32>, Option<u32>) {
    let named = |file: &str| (!file.is_empty()).then(|| file.to_owned());
    if let Some((file, numbers)) = place.strip_suffix(')').and_then(|p| p.rsplit_once('(')) {
        let (line, column) = numbers.split_once([':', ',']).unwrap_or((numbers, ""));
        if let Ok(line) = line.trim().parse() {
            return (named(file), Some(line), column.trim().parse().ok());
        }
    }
    let mut parts = place.rsplitn(3, ':');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(column), Some(line), Some(file)) if line.parse::<u32>().is_ok() => {
            (named(file), line.parse().ok(), column.parse().ok())
        }
        (Some(line), Some(file), None) if line.parse::<u32>().is_ok() => {
            (named(file), line.parse().ok(), None)
        }
        // An error of the tool itself: `nvrtc: error: …`.
        _ => (None, None, None),
    }
}

/// Parses `ptxas FILE, line N; error : MESSAGE` or `ptxas error   : MESSAGE`. Ignores its `info`
/// lines.
fn ptxas(line: &str) -> Option<Diagnostic> {
    let rest = line.strip_prefix("ptxas")?.trim_start();
    let (place, rest) = match rest.split_once("; ") {
        Some((place, rest)) if place.contains(", line ") => (place, rest),
        _ => ("", rest),
    };
    let (word, message) = rest.split_once(':')?;
    let severity = match word.trim() {
        "error" | "fatal" => Severity::Error,
        "warning" => Severity::Warning,
        _ => return None,
    };
    let (file, number) = place.rsplit_once(", line ").unwrap_or(("", ""));
    let file = (!file.is_empty()).then(|| file.to_owned());
    Some(diagnostic(severity, file, number.trim().parse().ok(), None, message.trim()))
}

fn diagnostic(
    severity: Severity,
    file: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
    message: &str,
) -> Diagnostic {
    let end = boundary_before(message, MAX_MESSAGE_BYTES);
    Diagnostic { severity, file, line, column, message: message[..end].to_owned() }
}

/// Returns the column of a caret. The compiler quotes the source line, indented by two characters,
/// and puts the caret on the next line.
fn caret_column(following: &[&str]) -> Option<u32> {
    let caret = following
        .iter()
        .take(4)
        .take_while(|line| !line.is_empty())
        .find(|line| line.trim() == "^")?;
    let column = caret.find('^')?.checked_sub(2)?;
    u32::try_from(column + 1).ok()
}

/// Beginning of the compiler's message about a missing header. The header's name and a quotation
/// mark follow.
pub(crate) const NO_FILE: &str = "cannot open source file \"";

/// Returns whether a name can be that of a header that nvcc finds, which is a path relative to a
/// header directory.
pub(crate) fn is_header(name: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-+.".contains(&byte))
    };
    name.split('/').all(part)
}

#[cfg(test)]
#[path = "diagnostics_tests.rs"]
mod tests;
