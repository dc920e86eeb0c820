//! Decodes the text of a file, and removes the prefixes that CI systems put before each line of a
//! log.

use std::borrow::Cow;

/// Maximum number of lines that are searched for a tool's mark after a prefix.
const MAX_LINES: usize = 20_000;
/// Maximum number of prefixes of a line.
const MAX_PREFIXES: usize = 4;

/// Marks at the beginning of the tools' lines.
const MARKS: [&str; 11] = [
    "==PROF== ",
    "==ERROR== ",
    "==WARNING== ",
    "========= ",
    "\"ID\",\"",
    "Processing [",
    "Time (%),",
    "Time (%)  ",
    // Versions before 2022 write no space.
    "Time(%),",
    "Time(%)  ",
    "Section: ",
];

/// Decodes the text of a file: UTF-8, or UTF-16 as shells on Windows write it. Line endings are
/// normalised.
pub fn decode(bytes: Vec<u8>) -> String {
    let wide = |rest: &[u8], of: fn([u8; 2]) -> u16| -> String {
        let (units, _) = rest.as_chunks::<2>();
        char::decode_utf16(units.iter().copied().map(of))
            .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect()
    };
    let text: String = match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        // Without a byte order mark, the zeros in the first letters show the encoding.
        [first, 0, second, 0, ..] if *first > 0 && *second > 0 => wide(&bytes, u16::from_le_bytes),
        [0, first, 0, second, ..] if *first > 0 && *second > 0 => wide(&bytes, u16::from_be_bytes),
        _ => String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    };
    match text.contains('\r') && !text.contains('\n') {
        true => text.replace('\r', "\n"),
        false => text,
    }
}

/// Removes colours, and the times and names that CI systems and program launchers put before each
/// line, if a tool's lines follow them.
pub(super) fn without_prefixes(text: String) -> String {
    let hidden = |line: &str| {
        let plain = plain(line);
        let rest = rest(&plain).trim_start();
        (rest.len() < line.trim_start().len()) && MARKS.iter().any(|mark| rest.starts_with(mark))
    };
    if !text.lines().take(MAX_LINES).any(hidden) {
        return text;
    }
    // In place, since large logs do not fit into memory twice. What is left is never longer.
    let mut bytes = text.into_bytes();
    if !bytes.ends_with(b"\n") {
        bytes.push(b'\n');
    }
    let (mut from, mut to) = (0, 0);
    let mut line = String::new();
    while from < bytes.len() {
        let end = bytes[from..].iter().position(|byte| *byte == b'\n');
        let end = end.map_or(bytes.len(), |length| from + length);
        let whole = String::from_utf8_lossy(&bytes[from..end]);
        let whole = whole.strip_suffix('\r').unwrap_or(&whole);
        line.clear();
        line.push_str(rest(&plain(whole)));
        line.push('\n');
        bytes[to..to + line.len()].copy_from_slice(line.as_bytes());
        to += line.len();
        from = end + 1;
    }
    bytes.truncate(to);
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Returns a line without its colours: `\u{1b}[31m`.
fn plain(line: &str) -> Cow<'_, str> {
    if !line.contains('\u{1b}') {
        return Cow::Borrowed(line);
    }
    let mut text = String::with_capacity(line.len());
    let mut parts = line.split("\u{1b}[");
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        text.push_str(&part[end..]);
    }
    Cow::Owned(text)
}

/// Returns a line without its prefixes.
fn rest(line: &str) -> &str {
    let mut line = line;
    for _ in 0..MAX_PREFIXES {
        let forms = [time, bracketed_time, number, rank, service, step];
        match forms.iter().find_map(|form| form(line)) {
            Some(rest) => line = rest,
            None => break,
        }
    }
    line
}

fn digits(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| &text[end..])
}

/// Returns the text after a timestamp, as in `2025-01-02T03:04:05.678Z text`. GitLab adds a code
/// such as ` 00O`.
fn time(line: &str) -> Option<&str> {
    let (time, rest) = line.split_once(' ')?;
    let rest_of_time = date(time)?.strip_prefix('T').and_then(clock)?;
    (rest_of_time.is_empty() || rest_of_time == "Z" || rest_of_time.starts_with(['+', '-']))
        .then_some(())?;
    let kind = rest.get(..4).filter(|kind| {
        let b = kind.as_bytes();
        b[0].is_ascii_digit() && b[1].is_ascii_digit() && matches!(b[2], b'O' | b'E')
    });
    Some(if kind.is_some() { &rest[4..] } else { rest })
}

/// Returns the text after a date such as `2025-01-02`.
fn date(text: &str) -> Option<&str> {
    let (date, rest) = text.split_at_checked(10)?;
    let numbers = date.split('-').map(|part| part.len() * usize::from(digits(part) == Some("")));
    numbers.eq([4, 2, 2]).then_some(rest)
}

/// Returns the text after a time such as `03:04:05.678`.
fn clock(text: &str) -> Option<&str> {
    let (clock, rest) = text.split_at_checked(8)?;
    let numbers = clock.split(':').map(|part| part.len() * usize::from(digits(part) == Some("")));
    let fraction = rest.strip_prefix(['.', ',']).and_then(digits);
    numbers.eq([2, 2, 2]).then(|| fraction.unwrap_or(rest))
}

/// Returns the text after a time in brackets, as in `[2025-01-02 03:04:05] text` or
/// `[03:04:05] text`.
fn bracketed_time(line: &str) -> Option<&str> {
    let (time, rest) = line.strip_prefix('[')?.split_once("] ")?;
    let time = date(time).map_or(time, |rest| rest.trim_start_matches([' ', 'T']));
    matches!(clock(time)?, "" | "Z").then_some(rest)
}

/// Returns the text after a number and a colon, which ctest and srun write: `12: text`.
fn number(line: &str) -> Option<&str> {
    digits(line.trim_start())?.strip_prefix(": ")
}

/// Returns the text after a rank, as in `[rank0]: text` or `[1,0]<stdout>:text`, which launchers of
/// several processes write.
fn rank(line: &str) -> Option<&str> {
    let inner = line.strip_prefix('[')?;
    if let Some(rest) = inner.strip_prefix("rank") {
        return digits(rest)?.strip_prefix("]: ");
    }
    let rest = digits(digits(inner)?.strip_prefix(',')?)?.strip_prefix("]<std")?;
    rest.strip_prefix("out>:").or_else(|| rest.strip_prefix("err>:"))
}

/// Returns the text after the name of a service, which Docker Compose writes: `service-1 | text`.
fn service(line: &str) -> Option<&str> {
    let (name, rest) = line.split_once(" | ")?;
    let name = name.trim_end();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (!name.is_empty() && name.chars().all(plain)).then_some(rest)
}

/// Returns the text after the names of a job and a step, which GitHub's command line writes before
/// the time: `job<TAB>step<TAB>text`.
fn step(line: &str) -> Option<&str> {
    let mut parts = line.splitn(3, '\t');
    let (_, _, rest) = (parts.next()?, parts.next()?, parts.next()?);
    time(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn prefixes_of_logs() {
        for line in [
            "2025-01-02T03:04:05.6789012Z ========= COMPUTE-SANITIZER",
            "2025-01-02T03:04:05Z 00O ========= COMPUTE-SANITIZER",
            "[2025-01-02 03:04:05] ========= COMPUTE-SANITIZER",
            "[03:04:05] ========= COMPUTE-SANITIZER",
            "12: ========= COMPUTE-SANITIZER",
            "[rank3]: ========= COMPUTE-SANITIZER",
            "[1,0]<stdout>:========= COMPUTE-SANITIZER",
            "app-1  | ========= COMPUTE-SANITIZER",
            "build\trun\t2025-01-02T03:04:05Z ========= COMPUTE-SANITIZER",
            "\u{1b}[32m2025-01-02T03:04:05Z \u{1b}[0m========= COMPUTE-SANITIZER",
        ] {
            let text = without_prefixes(format!("{line}\nhello\n"));
            assert_eq!(text, "========= COMPUTE-SANITIZER\nhello\n", "{line}");
        }
        for text in ["12: hello\n", "1: a\n========= b\n", "x | ==PROF==\n"] {
            assert_eq!(without_prefixes(text.to_owned()), text, "no tool's line is behind it");
        }
    }

    proptest! {
        #[test]
        fn any_line_has_a_rest(line in "[0-9T:.,Z\\[\\]a-z| \t=\u{1b}é-]{0,60}") {
            let plain = plain(&line);
            prop_assert!(plain.ends_with(rest(&plain)));
            let _ = without_prefixes(line.clone());
        }
    }
}
