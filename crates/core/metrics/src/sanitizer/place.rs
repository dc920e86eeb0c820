//! Parses places in a record: functions, source lines, threads and addresses.

use super::record::Record;

/// Maximum number of characters of a function's name.
const MAX_NAME: usize = 400;

/// Function and source line of an access.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) function: String,
    /// Source file and line, e.g. `k.cu:9`. Directories are removed, because readers of a report
    /// should not see them.
    pub(super) source: Option<String>,
}

/// Returns the places in a record: that of the access, and that of the other side of a hazard.
pub(super) fn places(record: &Record<'_>) -> Vec<Place> {
    let lines = std::iter::once(record.head).chain(record.details.iter().copied());
    lines.filter_map(location).collect()
}

/// Returns the callers of the function with the access, outermost last.
pub(super) fn frames(record: &Record<'_>) -> Vec<Place> {
    let frames = record.details.iter().filter_map(|line| line.strip_prefix("Device Frame:"));
    frames.filter_map(|frame| place(without_offset(unbracketed(frame.trim())))).collect()
}

/// Removes the name and offset that old versions repeat: `f(int *) (f(int *) : 0x60)`.
fn without_offset(text: &str) -> &str {
    let repeated = text.strip_suffix(')').and_then(|text| text.rsplit_once(" : 0x"));
    let Some((names, offset)) = repeated else { return text };
    if !offset.bytes().all(|b| b.is_ascii_hexdigit()) {
        return text;
    }
    let mut splits = names.match_indices(" (").map(|(at, _)| names.split_at(at));
    splits.find(|(name, rest)| rest[2..] == **name).map_or(text, |(name, _)| name)
}

/// Returns the place of `… at f(int *)+0xe0 in k.cu:9`, `… at 0x70 in /d/k.cu:9:f(int *)`, or `… at
/// 0x70 in f(int *)`; versions differ.
fn location(line: &str) -> Option<Place> {
    let line = unbracketed(line);
    let text = line.strip_prefix("at ").or_else(|| {
        let at = line.find(" access at ").map(|at| at + " access at ".len());
        let at = at.or_else(|| line.find(") at ").map(|at| at + ") at ".len()))?;
        Some(&line[at..])
    })?;
    if text.starts_with("__") && text.contains(" in block ") {
        return None;
    }
    match text.strip_prefix("0x") {
        Some(rest) => place(rest.split_once(" in ")?.1),
        None => place(text),
    }
}

/// Removes brackets at the end with their content: `[4 hazards]`, `[0x30]`.
fn unbracketed(text: &str) -> &str {
    let text = text.trim_end();
    let open = text.ends_with(']').then(|| text.rfind(" [")).flatten();
    open.map_or(text, |at| &text[..at])
}

/// Parses `f(int *)+0xe0 in k.cu:9`, `/d/k.cu:9:f(int *)` or `f(int *)`. Names may contain colons.
fn place(text: &str) -> Option<Place> {
    if let Some((file, line, function)) = leading_source(text) {
        let source = file_and_line(file, line);
        return Some(Place { function: named(function)?, source });
    }
    let source = text.rsplit_once(" in ").and_then(|(_, source)| {
        let (file, line) = source.trim().rsplit_once(':')?;
        file_and_line(file, line)
    });
    let end = text.rfind("+0x").or_else(|| text.rfind(" in ")).unwrap_or(text.len());
    Some(Place { function: named(&text[..end])?, source })
}

/// Splits `/d/k.cu:9:f(int *)` at the first two colons that enclose a number.
fn leading_source(text: &str) -> Option<(&str, &str, &str)> {
    let mut start = 0;
    while let Some(at) = text[start..].find(':').map(|at| start + at) {
        let rest = &text[at + 1..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        if digits > 0 && rest[digits..].starts_with(':') && !rest[digits..].starts_with("::") {
            return Some((&text[..at], &rest[..digits], &rest[digits + 1..]));
        }
        start = at + 1;
    }
    None
}

/// Returns the name of a function. A clone is named after the kernel that it was cloned for:
/// `[clone k(int *)] f()`.
fn named(text: &str) -> Option<String> {
    let text = text.trim();
    let clone = text.strip_prefix("[clone ").and_then(|rest| rest.rsplit_once("] "));
    let name = clone.map_or(text, |(kernel, _)| kernel);
    (!name.is_empty()).then(|| cut(name))
}

fn file_and_line(path: &str, line: &str) -> Option<String> {
    let line: u32 = line.parse().ok()?;
    let name = path.rsplit(['/', '\\']).next().filter(|name| !name.is_empty())?;
    Some(format!("{}:{line}", cut(name)))
}

fn cut(text: &str) -> String {
    text.trim().chars().take(MAX_NAME).collect()
}

pub(super) fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.find(mark).map(|at| &text[at + mark.len()..])
}

/// Parses a number whose digits may be grouped by commas, e.g. `1,024`.
pub(super) fn number(text: &str) -> Option<u64> {
    let digits: String = text.chars().filter(|c| *c != ',').collect();
    digits.parse().ok()
}

pub(super) fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x")?;
    let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
    u64::from_str_radix(&digits[..end], 16).ok()
}

/// Parses an index such as `(5,0,0)`, which may contain spaces.
pub(super) fn extent(text: &str) -> Option<[u32; 3]> {
    let inner = text.strip_prefix('(')?.split(')').next()?;
    let mut parts = inner.split(',').map(|part| part.trim().parse::<u32>().ok());
    let extent = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(extent)
}

/// Returns the number of hazards in a line such as `… [256 hazards]`.
pub(super) fn hazards(line: &str) -> Option<u64> {
    let inner = line.trim_end().strip_suffix(']')?.rsplit_once('[')?.1;
    let (count, word) = inner.split_once(' ')?;
    word.starts_with("hazard").then(|| number(count)).flatten()
}
