//! Rows of `nsys stats --format json`: an array of objects with the columns of the other formats.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::report::NsysError;
use crate::text::Record;

/// Maximum number of columns of a row.
const MAX_COLUMNS: usize = 64;

/// Returns whether a line may begin an array of rows.
pub(super) fn begins(line: &str) -> bool {
    let line = line.trim();
    line.strip_prefix('[').is_some_and(|rest| {
        let rest = rest.trim_start();
        rest.is_empty() || rest.starts_with('{')
    })
}

/// Columns of a row with their cells, in their order.
struct Row(Vec<(String, String)>);

/// Returns the first row's columns as a header. Returns `None` if the text does not begin with an
/// array of objects.
pub(super) fn first(text: &str) -> Option<Record<'static>> {
    let start = text.trim_start().strip_prefix('[')?.trim_start();
    let Row(cells) = serde_json::from_str(object(start)?).ok()?;
    let fields = cells.into_iter().map(|(name, _)| Cow::Owned(name)).collect();
    Some(Record { line: 0, text: "", fields, broken: false })
}

/// Returns the object at the beginning of a text, if its cells may be texts and numbers. An array
/// or an object in a cell ends the search, as does a line break in a text. Otherwise a text in
/// which each line begins an array would be searched to its end for each line.
fn object(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('{')?;
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'\n' if quoted => return None,
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => return None,
            b'}' if !quoted => return Some(&text[..at + 2]),
            _ => {}
        }
    }
    None
}

/// Result of reading an array of rows.
pub(super) struct Read {
    /// Number of bytes that were read.
    pub(super) end: usize,
    /// Reason why the array was not read to its end.
    pub(super) cut: Option<String>,
    /// Error in a row, at which reading ended.
    pub(super) error: Option<NsysError>,
}

/// Reads the rows of an array that begins in this line. Each row gets the fields of the header.
pub(super) fn rows(
    text: &str,
    header: &Record<'_>,
    line: usize,
    take: impl FnMut(Record<'_>) -> Result<(), NsysError>,
) -> Read {
    let mut rows = Rows { header, line, take, error: None };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let result = deserializer.deserialize_seq(&mut rows);
    let error = rows.error;
    match result {
        Ok(()) => {
            let end = deserializer.into_iter::<IgnoredAny>().byte_offset().min(text.len());
            Read { end, cut: None, error }
        }
        Err(cut) => Read { end: text.len(), cut: Some(cut.to_string()), error },
    }
}

struct Rows<'h, F> {
    header: &'h Record<'h>,
    line: usize,
    take: F,
    error: Option<NsysError>,
}

impl<'de, F: FnMut(Record<'_>) -> Result<(), NsysError>> Visitor<'de> for &mut Rows<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<(), A::Error> {
        let mut line = self.line;
        while let Some(Row(cells)) = rows.next_element()? {
            line += 1;
            let cell = |column: &Cow<'_, str>| {
                let cell = cells.iter().find(|(name, _)| name == column.as_ref());
                Cow::Borrowed(cell.map_or("", |(_, cell)| cell.as_str()))
            };
            let fields = self.header.fields.iter().map(cell).collect();
            let row = Record { line, text: "{", fields, broken: false };
            if let Err(error) = (self.take)(row) {
                self.error = Some(error);
                return Err(Error::custom("a row is invalid"));
            }
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Cells;
        impl<'de> Visitor<'de> for Cells {
            type Value = Row;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a row")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row, A::Error> {
                let mut cells = Vec::new();
                // The text of a number keeps all its digits.
                while let Some((name, cell)) = map.next_entry::<String, &'de RawValue>()? {
                    let cell = match cell.get().as_bytes().first() {
                        Some(b'"') => serde_json::from_str(cell.get()).map_err(Error::custom)?,
                        Some(b'-' | b'0'..=b'9') => cell.get().to_owned(),
                        Some(b'n') => String::new(),
                        _ => return Err(Error::custom("a cell is neither text nor a number")),
                    };
                    if cells.len() == MAX_COLUMNS {
                        return Err(Error::custom("too many columns"));
                    }
                    cells.push((name, cell));
                }
                Ok(Row(cells))
            }
        }
        deserializer.deserialize_map(Cells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_ends_at_its_brace() {
        let columns = |text: &str| -> Option<Vec<String>> {
            Some(first(text)?.fields.into_iter().map(Cow::into_owned).collect())
        };
        let row = " [\n {\"a}\": \"x\\\"[{\", \"b\":\n 1.5}, {\"c\": 2}]";
        assert_eq!(columns(row), Some(vec!["a}".to_owned(), "b".to_owned()]));
        for text in
            ["[{\"a\": [1]}]", "[{\"a\": {}}]", "[{\"a\": \"x\ny\"}]", "[{\"a\": 1", "[{\"a\\"]
        {
            assert_eq!(columns(text), None, "{text}");
        }
    }

    /// If each line were searched to the end of the text, this test would take an hour.
    #[test]
    fn beginnings_of_arrays_take_linear_time() {
        for line in ["[{\"a\":[1,\n", "[{\"a\":\"\\\n", "[{\"a\":1,\n", "[\n"] {
            let text = line.repeat(400_000);
            let report = crate::nsys::parse_stats(&text);
            assert_eq!(report, Err(NsysError::NoTable), "{line:?}");
        }
    }
}
