//! Parses the tables of `nsys stats` in a text. The main type is [`NsysReport`].

mod assign;
mod error;

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::columns::{self, Column, Quantity, Table, header};
use super::locale::{self, Locale};
use super::reports::{self, Known};
use super::rows::{Fields, NsysEvent, NsysLaunch, NsysRow};
use super::timeline::Timeline;
use super::trace::Trace;
use super::{console, json, messages};
use crate::text::{Convention, Notes, Record, Records, TableColumns};
use assign::push;
pub use error::NsysError;
use warpgauge_model::Unavailable;

/// Maximum number of rows of all tables.
pub const MAX_ROWS: usize = 4_000_000;
/// Maximum number of rows of all tables except traces.
const MAX_LISTED: usize = 1_000_000;
/// Maximum length of a line that may be the header of a console table, bytes.
const MAX_HEADER: usize = 4 << 10;
/// Maximum number of messages that are kept.
const MAX_PROBLEMS: usize = 100;

/// Tables of `nsys stats`, or the same tables from an SQLite export.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct NsysReport {
    /// Kernels by name. Times are in seconds.
    pub kernels: Vec<NsysRow>,
    /// Times of copies and fills, seconds.
    pub memory_time: Vec<NsysRow>,
    /// Sizes of copies and fills, bytes. `nsys stats` rounds them to multiples of 1,000; sizes from
    /// an SQLite export are exact.
    pub memory_size: Vec<NsysRow>,
    /// Times of calls of the CUDA API, seconds.
    pub api: Vec<NsysRow>,
    /// Times of NVTX ranges, which the program marks, seconds. Only SQLite exports have them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<NsysRow>,
    /// Activities of the GPU, one entry for each.
    pub trace: Vec<NsysEvent>,
    /// Number of GPU activities that are not in `trace`, because there are too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_left_out: Option<u64>,
    /// Busy and idle time of each device, from all activities.
    #[serde(skip)]
    pub timelines: Vec<(String, Timeline)>,
    /// Launches by kernel and API function.
    pub launches: Vec<NsysLaunch>,
    /// Problems that the tool reported, with remedies.
    pub problems: Vec<Unavailable>,
    /// Lines that were left out, and caveats.
    pub notes: Vec<String>,
    /// Number of tables from which `trace` was read. Each of them may have a different time origin.
    #[serde(skip)]
    pub traces: usize,
}

/// Parses the tables of a text, and the messages between them.
///
/// # Errors
/// See [`NsysError`]. A text with messages but without tables is not an error:
/// [`NsysReport::problems`] contains the reasons.
pub fn parse_stats(text: &str) -> Result<NsysReport, NsysError> {
    parse(text, None)
}

/// Parses the tables of a file as [`parse_stats`] does. The file's name may identify the report.
///
/// # Errors
/// See [`NsysError`].
pub fn parse_stats_of(text: &str, file: &str) -> Result<NsysReport, NsysError> {
    parse(text, reports::file(file))
}

fn parse(text: &str, known: Option<Known>) -> Result<NsysReport, NsysError> {
    let reader = |decimal: Convention, trace: Trace| {
        let (known, locale) = (known.clone(), Locale::of(decimal));
        read(text, Reader { known, locale, trace, ..Reader::default() })
    };
    let mut first = reader(Convention::Dot, Trace::default())?;
    if first.locale.is_other() {
        drop(first);
        first = reader(Convention::Comma, Trace::default())?;
    }
    if !first.trace.is_unsorted() {
        return first.end();
    }
    // Nearly all traces are sorted. For other traces, the text is parsed again, and the times of
    // all activities are kept, which takes more memory.
    let decimal = first.locale.decimal;
    drop(first);
    reader(decimal, Trace::unsorted())?.end()
}

fn read(text: &str, mut reader: Reader) -> Result<Reader, NsysError> {
    let mut records = Records::new(text);
    while let Some(record) = records.next().filter(|_| !reader.locale.is_other()) {
        let record = match record {
            Ok(record) => record,
            // Output of programs may have very long lines.
            Err(_) if reader.table.is_none() => continue,
            Err(too_long) => return Err(too_long.into()),
        };
        let record = reader.continued(&mut records, record);
        // A file may have millions of empty lines, which are neither headers nor messages.
        if record.text.is_empty() {
            reader.columns = None;
            reader.line(&record)?;
            continue;
        }
        // Outside console tables, a line that begins with a digit is a row, and neither a header
        // nor a message.
        if reader.columns.is_none() && record.text.starts_with(|c: char| c.is_ascii_digit()) {
            reader.row(&record)?;
            continue;
        }
        if json::begins(record.text) {
            let offset = record.text.as_ptr().addr() - text.as_ptr().addr();
            let read = reader.json(&text[offset..], record.line)?;
            if let Some((end, line)) = read {
                records = Records::from_line(&text[offset + end..], line);
                continue;
            }
        }
        if let Some(name) = reports::processing(record.text) {
            reader.known = Some(reports::report(name));
            reader.close();
            reader.executing(reports::executing(record.text));
        } else if record.text.trim_end() == "Generated:" {
            // The tool lists its files after its last report.
            reader.executed();
            reader.close();
        } else if reader.fixed(&record)? {
            continue;
        } else if let Some(first) = header_record(&mut records, &record) {
            reader.begin(&first)?;
        } else if let Some((_, problem)) = messages::problem(record.text) {
            reader.close();
            if reader.report.problems.len() < MAX_PROBLEMS {
                reader.report.problems.push(problem);
            }
        } else {
            reader.line(&record)?;
        }
    }
    Ok(reader)
}

/// Returns the record, split at the separator that fits, if it is the header of a table.
fn header_record<'a>(records: &mut Records<'a>, record: &Record<'a>) -> Option<Record<'a>> {
    // Rows begin with a number. Every header has a unit in parentheses, except one header of an old
    // version.
    let begin = record.text.trim_start_matches('"');
    let words = !begin.starts_with(|c: char| c.is_ascii_digit())
        && (record.text.contains('(') || record.text.starts_with("Total,Operations,"));
    words.then(|| records.recognise(record, |record| header(record).is_some()))?
}

/// Returns whether a text looks like tables of `nsys stats`.
pub fn looks_like_stats(text: &str) -> bool {
    // Searching for these words is much faster than parsing large files of other tools.
    const WORDS: [&str; 8] =
        ["(%)", "(ns", "(us", "(ms", "(s", "Total,Operations,", "(MB", "(by size in"];
    if !WORDS.iter().any(|word| text.contains(word)) {
        return false;
    }
    let mut before = "";
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let start = offset;
        offset += line.len();
        let line = line.trim_end_matches(['\n', '\r']);
        let before = std::mem::replace(&mut before, line);
        // Rows begin with a number.
        let begin = line.trim_start_matches(['"', '\u{feff}']);
        if begin.is_empty() || begin.starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        let mut records = Records::new(line);
        let Some(Ok(record)) = records.next() else { continue };
        let fixed = || console::header(before, &record).is_some_and(|it| header(&it).is_some());
        let json = || {
            let first = json::begins(line).then(|| json::first(&text[start..])).flatten();
            first.is_some_and(|columns| header(&columns).is_some())
        };
        if fixed() || json() || header_record(&mut records, &record).is_some() {
            return true;
        }
    }
    false
}

/// Table that is being parsed.
#[derive(Debug)]
struct Open {
    table: Table,
    columns: Vec<Column>,
    line: usize,
    /// Whether an empty line followed the last row of the table.
    empty: bool,
    /// Whether the table has a row that was read.
    read: bool,
    /// Error that the first incomplete row causes if no row can be read.
    lost: Option<NsysError>,
}

/// State of the parser for a text.
#[derive(Debug, Default)]
struct Reader {
    report: NsysReport,
    trace: Trace,
    notes: Notes,
    /// Content of the current report, if its name is known.
    known: Option<Known>,
    table: Option<Open>,
    /// Line and content of the first table that is not supported.
    other: Option<(usize, String)>,
    /// Number of headers of each kind, and the line of the first header of this kind.
    headers: BTreeMap<Table, (usize, usize)>,
    rows: usize,
    locale: Locale,
    /// Error of a table without a complete row.
    lost: Option<NsysError>,
    /// Report about CUDA whose table must follow.
    executing: Option<String>,
    /// Report about CUDA whose table did not follow, because it is empty.
    empty: Option<String>,
    /// Number of rows that belong to traces.
    traced: usize,
    /// Columns of the table that is being parsed, if they have a fixed width, as in console output.
    columns: Option<TableColumns>,
    /// Previous line, which may be the header of a table with columns of fixed width.
    before: String,
    /// Line of the first table that contains sizes without a unit.
    sizes: Option<usize>,
    /// Unit in the title of the next table, in versions of 2019 and 2020.
    unit: Option<(f64, Quantity)>,
}

impl Reader {
    /// Ends the table that is being parsed.
    fn close(&mut self) {
        self.leave();
        (self.columns, self.unit) = (None, None);
        self.before.clear();
    }

    /// Ends the table, and keeps the error if none of its rows could be read.
    fn leave(&mut self) {
        let Some(open) = self.table.take().filter(|open| !open.read) else { return };
        let unquoted = matches!(open.lost, Some(NsysError::TooManyFields { .. }));
        if unquoted || self.lost.is_none() {
            self.lost = open.lost.or(self.lost.take());
        }
    }

    /// Begins the report that the tool announces. The one before is empty if it has no table.
    fn executing(&mut self, name: Option<&str>) {
        if name.is_some() {
            self.executed();
        }
        let cuda = name.filter(|_| self.known == Some(Known::Cuda));
        self.executing = cuda.map(str::to_owned);
    }

    /// Ends the report that the tool announced. It is empty if it has no table.
    fn executed(&mut self) {
        let Some(name) = self.executing.take() else { return };
        if self.empty.is_none() || name.contains("kern") {
            self.empty = Some(name);
        }
    }

    /// Returns a row of a table with the lines of its quoted name.
    fn continued<'a>(&self, records: &mut Records<'a>, record: Record<'a>) -> Record<'a> {
        let Some(open) = self.table.as_ref().filter(|_| record.broken) else { return record };
        // Output of programs may have an open quote, and must not hide rows.
        if self.columns.is_some() || !record.text.starts_with(|c: char| c.is_ascii_digit()) {
            return record;
        }
        records.continued(&record, open.columns.len()).unwrap_or(record)
    }

    /// Parses a line of a table with columns of fixed width. Returns whether the line belongs to
    /// such a table.
    fn fixed(&mut self, record: &Record<'_>) -> Result<bool, NsysError> {
        if record.text.trim().is_empty() {
            self.columns = None;
            return Ok(false);
        }
        if let Some((columns, first)) = console::table(&self.before, record) {
            self.leave();
            self.columns = None;
            if header(&first).is_some() {
                self.begin(&first)?;
                self.columns = self.table.is_some().then_some(columns);
            }
            return Ok(true);
        }
        let Some(columns) = &self.columns else {
            if console::is_title(record.text) {
                self.unit = console::unit(record.text);
            }
            self.before.clear();
            if record.text.len() <= MAX_HEADER {
                self.before.push_str(record.text);
            }
            return Ok(false);
        };
        let fields = columns.cells(record.text).into_iter().map(Cow::Borrowed).collect();
        self.line(&Record { fields, broken: false, ..*record })?;
        Ok(true)
    }

    /// Parses a JSON array of rows. Returns the length of the array in bytes, and the line number
    /// at its end. Returns `None` if the array has other content.
    fn json(&mut self, text: &str, line: usize) -> Result<Option<(usize, usize)>, NsysError> {
        let Some(first) = json::first(text).filter(|first| header(first).is_some()) else {
            return Ok(None);
        };
        self.close();
        self.begin(&Record { line, ..first.clone() })?;
        let read = json::rows(text, &first, line, |row| self.line(&row));
        if let Some(error) = read.error {
            return Err(error);
        }
        if let Some(why) = read.cut {
            let text = format!(
                "the JSON is cut off or malformed ({why}): the rows before the error are \
                         kept"
            );
            self.notes.add(format!("line {line}"), text);
        }
        self.close();
        Ok(Some((read.end, line + text[..read.end].matches('\n').count())))
    }

    fn begin(&mut self, record: &Record<'_>) -> Result<(), NsysError> {
        let Some((mut table, mut columns)) = header(record) else { return Ok(()) };
        let line = record.line;
        self.leave();
        self.executing = None;
        if let Some(unit) = self.unit.take() {
            columns.iter_mut().for_each(|column| column.take_unit(unit));
        }
        self.columns = None;
        let sizes =
            table == Table::MemorySize && columns.iter().all(|column| column.unit.is_none());
        if sizes {
            self.notes.add(
                format!("line {line}"),
                "a table of gpumemsizesum without units, as \
                Nsight Systems 2020.4 writes it: it is left out"
                    .to_owned(),
            );
            self.sizes.get_or_insert(line);
            table = Table::Other;
        }
        if let Some(Known::Other(_)) = self.known {
            table = Table::Other;
        }
        if table == Table::Other && !sizes {
            let what = match &self.known {
                Some(Known::Other(what)) => what.clone(),
                _ => columns::other(&columns).to_owned(),
            };
            let text = format!("a table of {what}: it is left out");
            self.notes.add(format!("line {line}"), text);
            self.other.get_or_insert((line, what));
        } else if let Some(column) = columns::twice(&columns).filter(|_| !sizes) {
            return Err(NsysError::ColumnTwice { line, column: column.to_owned() });
        }
        let (headers, _) = self.headers.entry(table).or_insert((0, line));
        *headers += 1;
        if *headers == 2 && table != Table::Other {
            let text = "there is another such table before it: the list contains the rows of \
                        both, and percentages refer to each row's own table"
                .to_owned();
            self.notes.add(format!("line {line}"), text);
        }
        self.table = Some(Open { table, columns, line, empty: false, read: false, lost: None });
        Ok(())
    }

    /// Parses a line that begins with a number.
    fn row(&mut self, record: &Record<'_>) -> Result<(), NsysError> {
        self.before.clear();
        self.line(record)
    }

    /// Parses a line that is neither a header nor a message.
    fn line(&mut self, record: &Record<'_>) -> Result<(), NsysError> {
        let line = record.line;
        if record.text.trim().is_empty() {
            if let Some(open) = &mut self.table {
                open.empty = true;
            }
            return Ok(());
        }
        let begins = record.fields.first().is_some_and(|field| locale::is_number(field));
        let looks = record.broken && record.text.contains(',')
            || record.fields.len() > 1 && (begins || record.fields.len() > 3);
        let mut left_out = |why: &str| {
            let begin: String = record.text.trim().chars().take(40).collect();
            self.notes.add(format!("line {line}"), format!("`{begin}` {why}: it is left out"));
        };
        let Some(open) = &mut self.table else {
            if looks && !self.headers.is_empty() {
                left_out("is not below a header");
            }
            return Ok(());
        };
        if open.table == Table::Other {
            return Ok(());
        }
        let (fields, columns, header) = (record.fields.len(), open.columns.len(), open.line);
        let is_row = begins || record.broken && starts_with_number(record.text);
        if is_row && fields > columns {
            left_out(&format!(
                "has {fields} fields, but the table of line {header} has {columns} columns"
            ));
            let lost = NsysError::TooManyFields { line, fields, header, columns };
            open.lost.get_or_insert(lost);
            return Ok(());
        }
        let unnamed = fields == columns && is_unnamed(&open.columns, record);
        if fields != columns || !begins || record.broken || unnamed {
            if looks {
                left_out(&format!("is not a complete row of the table of line {header}"));
            }
            if is_row {
                open.lost.get_or_insert(NsysError::OnlyCutRows { line, header });
            }
            return Ok(());
        }
        if !self.locale.see(&open.columns, record)? {
            return Ok(());
        }
        open.read = true;
        if std::mem::take(&mut open.empty) {
            let text =
                format!("rows after an empty line are assigned to the table of line {}", open.line);
            self.notes.add(format!("line {line}"), text);
        }
        self.rows += 1;
        if self.rows > MAX_ROWS || self.rows - self.traced > MAX_LISTED {
            return Err(NsysError::TooManyRows { line });
        }
        self.traced += usize::from(open.table == Table::Trace);
        let fields = Fields { columns: &open.columns, record, decimal: self.locale.decimal };
        let named = self.known == Some(Known::Cuda);
        if open.table == Table::Trace {
            self.trace.add(&fields.event()?);
        } else if let Some(why) = push(&mut self.report, open.table, &fields, named)? {
            self.notes.add(format!("line {line}"), format!("{why}: it is left out"));
        }
        Ok(())
    }

    fn end(mut self) -> Result<NsysReport, NsysError> {
        self.locale.check()?;
        self.leave();
        let alone = self.rows == 0 && self.report.problems.is_empty();
        match self.lost.take() {
            Some(NsysError::OnlyCutRows { .. }) if !alone => {}
            Some(lost) => return Err(lost),
            None => {}
        }
        let mut report = self.report;
        let devices = self.trace.devices();
        report.timelines = self.trace.timelines();
        report.trace = std::mem::take(&mut self.trace.events);
        report.trace_left_out = Some(self.trace.left_out).filter(|left_out| *left_out > 0);
        report.problems.sort_by_key(messages::rank);
        let lost = self.sizes.filter(|_| {
            report.problems.is_empty() && self.headers.keys().all(|table| *table == Table::Other)
        });
        if let Some(line) = lost {
            return Err(NsysError::NoSizeUnit { line });
        }
        if self.headers.is_empty() && report.problems.is_empty() {
            let empty = self.empty.take().ok_or(NsysError::NoTable)?;
            report.problems.push(messages::nothing(&empty));
        }
        let known = self.headers.keys().any(|table| *table != Table::Other);
        if let Some((line, what)) = self.other.filter(|_| !known && report.problems.is_empty()) {
            return Err(match self.empty {
                Some(report) => NsysError::NothingTraced { report, line, what },
                None => NsysError::OtherTable { line, what },
            });
        }
        let calls = self.headers.get(&Table::Api).filter(|_| self.headers.len() == 1);
        if let Some((_, line)) = calls.filter(|_| self.rows > 0 && report.api.is_empty()) {
            let what = "calls of an API other than CUDA".to_owned();
            return Err(NsysError::OtherTable { line: *line, what });
        }
        report.traces = self.headers.get(&Table::Trace).map_or(0, |(headers, _)| *headers);
        report.notes = self.notes.into_texts();
        report.notes.extend(devices);
        Ok(report)
    }
}

fn starts_with_number(text: &str) -> bool {
    text.trim_start_matches('"').starts_with(|c: char| c.is_ascii_digit())
}

/// Returns whether the cell of the name is empty. The tool names every row, and the name is often
/// the last cell, so that the row is cut off.
fn is_unnamed(columns: &[Column], record: &Record<'_>) -> bool {
    let is_name = |column: &Column| ["name", "operation", "kernel name"].contains(&&*column.name);
    let name = columns.iter().position(is_name).and_then(|index| record.fields.get(index));
    name.is_some_and(|name| name.trim().is_empty())
}

#[cfg(test)]
mod tests;
