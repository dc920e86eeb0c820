//! Parses records with separators line by line, so that an unclosed quote in other text cannot hide
//! records. The main type is [`Records`].

use std::borrow::Cow;

/// Maximum length of a field, bytes.
const MAX_FIELD: usize = 64 << 10;
/// Maximum number of lines of a record with quoted line breaks.
const MAX_LINES: usize = 64;
/// Maximum number of fields of a record. No tool writes so many, and a line with more could fill the
/// memory.
const MAX_FIELDS: usize = 100_000;

/// A record of separated fields, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    /// Number of the line, from 1.
    pub(crate) line: usize,
    /// Text of the record, or its first line.
    pub(crate) text: &'a str,
    pub(crate) fields: Vec<Cow<'a, str>>,
    /// Whether the record is malformed: truncated, or with an unclosed quote. Its only field is
    /// then its text.
    pub(crate) broken: bool,
}

/// A field that is longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong<'a> {
    /// Number of the line, from 1.
    pub(crate) line: usize,
    text: &'a str,
}

/// A record of a text that may contain headers of pages.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    /// A header, split at the separator that fits.
    Header(Record<'a>),
    Other(Record<'a>),
}

/// The records of a text. A line with an unclosed quote includes the next lines if they close it
/// within a limit. Otherwise the line is a record by itself.
#[derive(Debug, Clone)]
pub(crate) struct Records<'a> {
    rest: &'a str,
    line: usize,
    separator: char,
    /// Text from the last record on.
    last: &'a str,
}

/// Possible separators of fields. Spreadsheets in locales with decimal commas write semicolons.
const SEPARATORS: [char; 3] = [',', ';', '\t'];

impl<'a> Records<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text, line: 0, separator: ',', last: "" }
    }

    /// Returns the records of the rest of a text, whose first line has this number.
    pub(crate) fn from_line(rest: &'a str, line: usize) -> Self {
        Self { rest, line: line.saturating_sub(1), separator: ',', last: "" }
    }

    /// Returns whether a text contains a record that `header` recognises as a header.
    pub(crate) fn have(
        text: &'a str,
        header: impl Fn(&mut Self, &Record<'a>) -> Option<Record<'a>>,
    ) -> bool {
        let mut records = Self::new(text);
        while let Some(step) = records.step(&header) {
            if matches!(step, Ok(Step::Header(_))) {
                return true;
            }
        }
        false
    }

    /// Returns the next record, and whether `header` recognises it as a header.
    pub(crate) fn step(
        &mut self,
        header: impl Fn(&mut Self, &Record<'a>) -> Option<Record<'a>>,
    ) -> Option<Result<Step<'a>, TooLong<'a>>> {
        Some(match self.next()? {
            Ok(record) => Ok(match header(self, &record) {
                Some(header) => Step::Header(header),
                None => Step::Other(record),
            }),
            Err(too_long) => {
                // A header without this separator is one field, and may have many columns.
                let TooLong { line, text } = too_long;
                let record = Record { line, text, fields: vec![text.into()], broken: true };
                header(self, &record).map(Step::Header).ok_or(too_long)
            }
        })
    }

    /// Parses a record with each separator until `is` accepts it. Later records are parsed with
    /// that separator.
    pub(crate) fn recognise(
        &mut self,
        record: &Record<'a>,
        is: impl Fn(&Record<'a>) -> bool,
    ) -> Option<Record<'a>> {
        if is(record) {
            return Some(record.clone());
        }
        let others = SEPARATORS.into_iter().filter(|c| *c != self.separator);
        for separator in others.filter(|c| record.text.contains(*c)) {
            let Some(fields) = fields(record.text, separator).filter(|f| fit(f)) else { continue };
            let other = Record { fields, broken: false, ..record.clone() };
            if is(&other) {
                self.separator = separator;
                return Some(other);
            }
        }
        None
    }

    /// Parses the last record again, together with the lines that close its quote. Returns `None`
    /// if the result does not have this number of fields. A caller must know that the record is a
    /// row, because output of programs may have an open quote.
    pub(crate) fn continued(&mut self, record: &Record<'a>, count: usize) -> Option<Record<'a>> {
        let (mut end, mut open) = (0, false);
        for lines in 1..=MAX_LINES {
            let rest = &self.last[end..];
            let line = &rest[..rest.find('\n').map_or(rest.len(), |at| at + 1)];
            end += line.len();
            open ^= line.bytes().filter(|byte| *byte == b'"').count() % 2 == 1;
            if line.is_empty() || end > MAX_FIELD || !open && lines == 1 {
                return None;
            }
            if open {
                continue;
            }
            let text = self.last[..end].trim_end_matches(['\n', '\r']);
            let fields = fields(text, self.separator).filter(|fields| fields.len() == count)?;
            self.rest = &self.last[end..];
            self.line = record.line + lines - 1;
            return Some(Record { text, fields, broken: false, ..*record });
        }
        None
    }

    /// Returns the numbers of bytes and of lines of the record that begins here. Only a record that
    /// starts with a quote may span several lines, so that output of programs cannot.
    fn extent(&self) -> (usize, usize) {
        let mut end = 0;
        let mut open = false;
        for lines in 1..=MAX_LINES {
            let rest = &self.rest[end..];
            let line = &rest[..rest.find('\n').map_or(rest.len(), |at| at + 1)];
            end += line.len();
            open ^= line.bytes().filter(|byte| *byte == b'"').count() % 2 == 1;
            if !open {
                return (end, lines);
            }
            if line.is_empty() || end > MAX_FIELD || !self.rest.starts_with('"') {
                break;
            }
        }
        (self.rest.find('\n').map_or(self.rest.len(), |at| at + 1), 1)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, TooLong<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let line = self.line + 1;
        // A file may have millions of empty lines.
        if let Some(rest) = self.rest.strip_prefix('\n') {
            (self.rest, self.line) = (rest, line);
            return Some(Ok(Record { line, text: "", fields: vec!["".into()], broken: false }));
        }
        // Each of several concatenated files may begin with a byte order mark.
        self.rest = self.rest.trim_start_matches('\u{feff}');
        self.last = self.rest;
        let (mut end, mut lines) = self.extent();
        let text = |end: usize| self.rest[..end].trim_end_matches(['\n', '\r']);
        let mut read = fields(text(end), self.separator);
        if read.is_none() && lines > 1 {
            // A malformed record consists of one line.
            (end, lines) = (self.rest.find('\n').map_or(self.rest.len(), |at| at + 1), 1);
            read = fields(text(end), self.separator);
        }
        let text = text(end);
        self.rest = &self.rest[end..];
        self.line += lines;
        let broken = read.is_none();
        let fields = read.unwrap_or_else(|| vec![Cow::Borrowed(text)]);
        if !fit(&fields) {
            return Some(Err(TooLong { line, text }));
        }
        Some(Ok(Record { line, text, fields, broken }))
    }
}

/// Returns whether no field is longer than the limit.
fn fit(fields: &[Cow<'_, str>]) -> bool {
    fields.iter().all(|field| field.len() <= MAX_FIELD)
}

/// Returns the fields of a record. Returns `None` if a quote is unclosed, text follows a closing
/// quote, or there are too many fields.
fn fields(text: &str, separator: char) -> Option<Vec<Cow<'_, str>>> {
    let mut fields = Vec::new();
    let mut rest = text;
    loop {
        let (field, after) = match rest.strip_prefix('"') {
            Some(quoted) => self::quoted(quoted, separator)?,
            None => {
                let end = rest.find(separator).unwrap_or(rest.len());
                (Cow::Borrowed(&rest[..end]), &rest[end..])
            }
        };
        fields.push(field);
        match after.strip_prefix(separator) {
            Some(_) if fields.len() == MAX_FIELDS => return None,
            Some(next) => rest = next,
            None => return Some(fields),
        }
    }
}

/// Returns a quoted field after its opening quote, and the text from the next separator on.
fn quoted(text: &str, separator: char) -> Option<(Cow<'_, str>, &str)> {
    let mut field = Cow::Borrowed("");
    let mut start = 0;
    loop {
        let end = start + text[start..].find('"')?;
        let piece = &text[start..end];
        if text[end + 1..].starts_with('"') {
            field.to_mut().push_str(piece);
            field.to_mut().push('"');
            start = end + 2;
            continue;
        }
        let field = if field.is_empty() { Cow::Borrowed(piece) } else { field + piece };
        let after = &text[end + 1..];
        // No tool writes text between the quote and the separator, but it may be the rest of a
        // number.
        let end = after.find(separator).unwrap_or(after.len());
        return after[..end].trim().is_empty().then(|| (field, &after[end..]));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(text: &str) -> Vec<(usize, Vec<String>)> {
        Records::new(text)
            .map(Result::unwrap)
            .map(|record| (record.line, record.fields.into_iter().map(Cow::into_owned).collect()))
            .collect()
    }

    #[test]
    fn quotes_breaks_and_marks() {
        let text = "\u{feff}\"a\",\"b \"\"c\"\"\",\r\nplain,,\"x,y\"\n\"two\nlines\",z\n";
        let strings = |fields: &[&str]| fields.iter().map(|f| (*f).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            all(text),
            [
                (1, strings(&["a", "b \"c\"", ""])),
                (2, strings(&["plain", "", "x,y"])),
                (3, strings(&["two\nlines", "z"])),
            ]
        );
    }

    #[test]
    fn an_open_quote_takes_nothing_with_it() {
        let text = format!("\"open\n{}\"1\",\"2\"\n", "x\n".repeat(MAX_LINES));
        let records = all(&text);
        assert_eq!(records.last().unwrap().1, ["1", "2"]);
        assert_eq!(all("say \"hi\n\"1\"\n")[1].1, ["1"], "not a record that could run on");
        let long = format!("\"{}\"\n", "x".repeat(MAX_FIELD + 1));
        let text = long.trim_end();
        assert_eq!(Records::new(&long).next(), Some(Err(TooLong { line: 1, text })));
    }

    #[test]
    fn a_row_is_continued_if_its_fields_are_complete() {
        let of = |text: &str| {
            let mut records = Records::new(text);
            let first = records.next().unwrap().unwrap();
            assert!(first.broken, "{text}");
            let row = records.continued(&first, 2);
            let next = records.next().unwrap().unwrap();
            (row.map(|row| row.fields.join("|")), next.line, next.fields.join("|"))
        };
        let row = |text: &str| Some(text.to_owned());
        assert_eq!(of("1,\"a\nb\"\n5,6\n"), (row("1|a\nb"), 3, "5|6".to_owned()));
        assert_eq!(of("1,\"a\nb\",2\n5,6\n"), (None, 2, "b\"|2".to_owned()), "three fields");
        assert_eq!(of("1,\"a\n5,\"b\"\n"), (None, 2, "5|b".to_owned()), "never closed");
        assert_eq!(of("1,\"a\n5,\"b\n"), (None, 2, "5,\"b".to_owned()), "text after the quote");
        assert_eq!(of("\"1\"2,3\n5,6\n"), (None, 2, "5|6".to_owned()), "no open quote");
    }

    #[test]
    fn what_no_tool_writes_is_broken_and_takes_one_line() {
        let text =
            "\"5\"8,\"1\"\n\"0\",\"cut\n\"6\",\"7\"\n\"2\",\"cut again\n\u{feff}\"8\",\"9\"\n";
        let records: Vec<Record<'_>> = Records::new(text).map(Result::unwrap).collect();
        let told: Vec<(usize, bool, &str)> =
            records.iter().map(|r| (r.line, r.broken, r.fields[0].as_ref())).collect();
        assert_eq!(
            told,
            [
                (1, true, "\"5\"8,\"1\""),
                (2, true, "\"0\",\"cut"),
                (3, false, "6"),
                (4, true, "\"2\",\"cut again"),
                (5, false, "8"),
            ]
        );
    }

    #[test]
    fn other_separators_are_recognised_from_there_on() {
        let mut records = Records::new("ID;Name, long;x\n1;\"a;b\";2,5\n");
        let first = records.next().unwrap().unwrap();
        let header = records.recognise(&first, |record| record.fields[0] == "ID").unwrap();
        assert_eq!(header.fields, ["ID", "Name, long", "x"]);
        assert_eq!(records.next().unwrap().unwrap().fields, ["1", "a;b", "2,5"]);
    }

    /// With a comma as the separator, the header is one field that is too long.
    #[test]
    fn a_header_with_very_many_columns_has_any_separator() {
        let is = |text: &str| {
            Records::have(text, |records, record| {
                records.recognise(record, |record| !record.broken && record.fields[0] == "ID")
            })
        };
        for separator in SEPARATORS {
            let columns = format!("{separator}name of a metric").repeat(9_000);
            assert!(is(&format!("before\nID{columns}\n")), "{separator:?}");
        }
        assert!(!is(&format!("ID;{}\n", "x".repeat(MAX_FIELD + 1))), "this field is too long");
        assert!(!is(&format!("ID{}\n", ";".repeat(MAX_FIELDS))), "too many columns");
    }

    #[test]
    fn empty_lines_are_records_with_numbers() {
        let lines: Vec<(usize, usize)> = Records::new("\n\na,b\n\r\n\u{feff}\n\n")
            .map(Result::unwrap)
            .map(|record| (record.line, record.fields.len()))
            .collect();
        assert_eq!(lines, [(1, 1), (2, 1), (3, 2), (4, 1), (5, 1), (6, 1)]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(rows in prop::collection::vec(
            prop::collection::vec("[ -~\u{e9}]{0,12}", 1..6), 1..6,
        )) {
            let quote = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
            let line = |row: &Vec<String>| row.iter().map(quote).collect::<Vec<_>>().join(",");
            let text = rows.iter().map(line).collect::<Vec<_>>().join("\r\n");
            let read: Vec<Vec<String>> = all(&text).into_iter().map(|(_, row)| row).collect();
            prop_assert_eq!(read, rows);
        }

        #[test]
        fn any_text_is_read_to_its_end(text in "[\"a,\r\n]{0,60}") {
            let lines = all(&text).len();
            prop_assert!(lines <= text.matches('\n').count() + 1);
        }
    }
}
