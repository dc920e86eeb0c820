//! Parses the console text of Nsight Compute: kernels, sections, and their tables of fixed width.
//! The main function is [`parse_console`].
//!
//! The rows are interpreted like those of a details page. Versions before 2022 write tables without
//! a head, and launches without their sizes.

use std::borrow::Cow;

use super::csv::{Columns, MAX_CELLS, NcuCsvError, NcuPage, NcuReport};
use super::details;
use crate::text::{Notes, Record, TableColumns};

/// Columns of the details page into which the text is converted.
const HEADER: [&str; 18] = [
    "ID",
    "Process ID",
    "Process Name",
    "Kernel Name",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
    "Section Name",
    "Body Item Label",
    "Metric Name",
    "Metric Unit",
    "Metric Value",
    "Rule Name",
    "Rule Type",
    "Rule Description",
];
/// Index of the section's column; the columns before it describe the launch.
const SECTION: usize = 10;
/// Maximum number of characters of a rule's text.
const MAX_RULE: usize = 4_000;

/// Returns whether a text contains the tables that Nsight Compute prints to the console.
pub fn looks_like_console(text: &str) -> bool {
    if !text.contains(", Context ") {
        return false;
    }
    let mut kernel = false;
    for line in text.lines() {
        kernel |= launch(line).is_some();
        if kernel && table(line).is_some() {
            return true;
        }
    }
    false
}

/// Parses the console text of Nsight Compute.
///
/// # Errors
/// See [`NcuCsvError`].
pub fn parse_console(text: &str) -> Result<NcuReport, NcuCsvError> {
    let mut reader = Reader::default();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        // Files of some shells begin with a byte order mark, which is no part of a name.
        let line = line.trim_start_matches('\u{feff}');
        reader.last = lines.peek().is_none();
        reader.line(index + 1, line)?;
    }
    reader.end_rule();
    let header = record(0, HEADER.iter().map(|name| Cow::Borrowed(*name)).collect());
    let columns = Columns::of(&header)?;
    let mut notes = Notes::default();
    if let Some(line) = reader.open.as_ref().map(|(line, _)| *line) {
        notes.add(format!("line {line}"), "the table that begins here is cut off".to_owned());
    }
    if let Some(line) = reader.cut {
        let why = "the row is cut off at the end of the file; it has no value";
        notes.add(format!("line {line}"), why.to_owned());
    }
    if let Some((line, text)) = reader.excerpt() {
        notes.add(format!("line {line}"), text);
    }
    let kernels = details::kernels(&columns, &reader.rows, &mut notes)?;
    if kernels.is_empty() {
        return Err(NcuCsvError::NoHeader);
    }
    Ok(NcuReport {
        pages: vec![NcuPage::Details],
        kernels,
        other_lines: reader.skipped,
        notes: notes.into_texts(),
    })
}

fn record(line: usize, fields: Vec<Cow<'_, str>>) -> Record<'_> {
    Record { line, text: "", fields, broken: false }
}

/// Returns the three columns of a table of metrics from its line of dashes.
fn table(line: &str) -> Option<TableColumns> {
    TableColumns::of(line).filter(|columns| columns.len() == 3)
}

/// Returns whether a line of dashes separates two rules: the first column is that of their kinds. No
/// table has such a narrow first column, because names of metrics are longer.
fn is_between_rules(line: &str) -> bool {
    let mut columns = line.split_whitespace();
    columns.next() == Some("-----") && columns.next().is_some() && columns.next().is_none()
}

/// State of the parser for a console text.
#[derive(Default)]
struct Reader<'a> {
    rows: Vec<Record<'a>>,
    /// Values of the columns that describe the current launch.
    launch: Option<Vec<Cow<'a, str>>>,
    /// Number of launches that were found so far.
    launches: usize,
    process: (Cow<'a, str>, Cow<'a, str>),
    section: &'a str,
    /// Name of the table in the section, which `--print-details` prints.
    item: &'a str,
    /// Whether the current line is the last of the text.
    last: bool,
    /// Line of the last row, if it is cut off. Its number may have lost digits.
    cut: Option<usize>,
    /// First line and columns of the table that is being parsed.
    open: Option<(usize, TableColumns)>,
    /// Whether the table that is being parsed contains something other than metrics.
    other: bool,
    /// Whether the table that is being parsed has rows.
    filled: bool,
    /// Launches without a table, and the line of the first.
    bare: (usize, usize),
    /// Line of the last launch, until a row of it follows.
    waiting: Option<usize>,
    /// First line of a table of metrics that stands in no section.
    homeless: Option<usize>,
    rule: Option<(usize, &'a str, String)>,
    skipped: usize,
}

impl<'a> Reader<'a> {
    fn line(&mut self, number: usize, line: &'a str) -> Result<(), NcuCsvError> {
        let text = line.trim();
        if let Some(launch) = launch(line) {
            self.end_rule();
            self.open = None;
            self.end_launch();
            self.waiting = Some(number);
            self.begin(&launch);
        } else if let Some((process, name)) = process(text) {
            self.process = (process.into(), name.into());
        } else if self.launch.is_none() {
            self.skipped += 1;
        } else if let Some(section) = text.strip_prefix("Section: ") {
            self.end_rule();
            self.open = None;
            (self.section, self.item) = (section.trim(), "");
        } else if let Some(item) = text.strip_prefix("Table Name : ") {
            self.end_rule();
            self.open = None;
            self.item = item.trim();
        } else if let Some(columns) = TableColumns::of(line) {
            self.end_rule();
            self.dashes(number, line, columns);
        } else if let Some((_, columns)) = &self.open {
            if self.last && columns.are_cut(line) && !text.is_empty() && !self.other {
                self.cut = Some(number);
                return Ok(());
            }
            let cells = columns.cells(line);
            self.row(number, cells)?;
        } else {
            self.text(number, line);
        }
        Ok(())
    }

    fn end_launch(&mut self) {
        if let Some(line) = self.waiting.take() {
            let (count, first) = self.bare;
            self.bare = (count + 1, if count == 0 { line } else { first });
        }
    }

    /// Returns a note if the text lacks sections or tables, as what other programs cut out does.
    fn excerpt(&mut self) -> Option<(usize, String)> {
        self.end_launch();
        let whole = "import the whole output, or export with `ncu --import FILE --csv --page raw \
                     --print-units base`";
        match (self.bare, self.homeless) {
            ((0, _), None) => None,
            ((0, _), Some(line)) => Some((
                line,
                format!("a table stands in no section, so its rows have no meaning; {whole}"),
            )),
            ((count, line), _) => Some((
                line,
                format!(
                    "{count} launches have no tables: tables behind them count for the launch \
                     before the table; {whole}"
                ),
            )),
        }
    }

    fn begin(&mut self, launch: &Launch<'a>) {
        let (process, name) = self.process.clone();
        let id = Cow::Owned(self.launches.to_string());
        self.launches += 1;
        let rest = [
            launch.name,
            launch.context,
            launch.stream,
            launch.block,
            launch.grid,
            launch.device,
            launch.capability,
        ];
        let rest = rest.into_iter().map(Cow::Borrowed);
        self.launch = Some([id, process, name].into_iter().chain(rest).collect());
        (self.section, self.item) = ("", "");
    }

    /// Processes a line of dashes, which begins a table, separates its head from its rows, or ends
    /// it. Between two rules it belongs to no table.
    fn dashes(&mut self, number: usize, line: &str, columns: TableColumns) {
        if is_between_rules(line) {
            self.open = None;
            return;
        }
        match &self.open {
            None => {
                self.other = columns.len() != 3;
                self.filled = false;
                self.open = Some((number, columns));
            }
            // The head is between the first two lines of dashes.
            Some(_) if !self.filled => {}
            Some(_) => self.open = None,
        }
    }

    fn row(&mut self, line: usize, cells: Vec<&'a str>) -> Result<(), NcuCsvError> {
        if !self.filled && cells.first() == Some(&"Metric Name") {
            return Ok(());
        }
        let [name, unit, value] = cells[..] else {
            self.filled = true;
            return Ok(());
        };
        if name.is_empty() && unit.is_empty() && value.is_empty() {
            // An empty line ends a table whose last line was lost.
            self.open = None;
            return Ok(());
        }
        self.filled = true;
        if self.other || name.is_empty() {
            return Ok(());
        }
        let (section, item) = (self.section, self.item);
        self.waiting = None;
        if section.is_empty() && item.is_empty() {
            self.homeless.get_or_insert(line);
        }
        self.put(line, [section, item, name, unit, value, "", "", ""].map(Cow::Borrowed))
    }

    fn put(&mut self, line: usize, cells: [Cow<'a, str>; 8]) -> Result<(), NcuCsvError> {
        let Some(launch) = &self.launch else { return Ok(()) };
        debug_assert_eq!(launch.len(), SECTION);
        if self.rows.len() * HEADER.len() > MAX_CELLS {
            return Err(NcuCsvError::TooManyCells { line });
        }
        let fields = launch.iter().cloned().chain(cells).collect();
        self.rows.push(record(line, fields));
        Ok(())
    }

    /// Processes the first line of a rule, `OPT Est. Speedup: …`, or one that continues it.
    fn text(&mut self, number: usize, line: &'a str) {
        let text = line.trim();
        let kind = text.split(' ').next().unwrap_or_default();
        let begins = matches!(kind, "OPT" | "INF" | "WRN" | "ERR") && text.len() > kind.len();
        match &mut self.rule {
            _ if begins => {
                self.end_rule();
                self.rule = Some((number, kind, text[kind.len()..].trim().to_owned()));
            }
            Some((_, _, rule)) if !text.is_empty() => {
                if rule.len() < MAX_RULE {
                    rule.push(' ');
                    rule.push_str(text);
                }
            }
            Some(_) => self.end_rule(),
            None => self.skipped += 1,
        }
    }

    fn end_rule(&mut self) {
        let Some((line, kind, text)) = self.rule.take() else { return };
        let text: String = text.chars().take(MAX_RULE).collect();
        let [section, name, kind] = [self.section, self.section, kind].map(Cow::Borrowed);
        let none = || Cow::Borrowed("");
        // The limit on the number of rows includes rules, and rules beyond it are left out.
        let _ =
            self.put(line, [section, none(), none(), none(), none(), name, kind, Cow::Owned(text)]);
    }
}

/// A launch: `k(int *) (64, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 8.9`.
struct Launch<'a> {
    name: &'a str,
    grid: &'a str,
    block: &'a str,
    context: &'a str,
    stream: &'a str,
    device: &'a str,
    capability: &'a str,
}

/// Returns the launch that a line begins. Returns `None` for other lines.
fn launch(line: &str) -> Option<Launch<'_>> {
    let line = line.trim();
    let (before, rest) = line.rsplit_once(", Context ")?;
    let mut parts = rest.split(", ");
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let context = parts.next().filter(|text| number(text))?;
    let stream = parts.next()?.strip_prefix("Stream ").filter(|text| number(text))?;
    let device = parts.next().and_then(|text| text.strip_prefix("Device ")).unwrap_or_default();
    let capability = parts.next().and_then(|text| text.strip_prefix("CC ")).unwrap_or_default();
    let sized = sizes(before);
    let (name, grid, block) = sized.unwrap_or_else(|| (without_date(before), "", ""));
    Some(Launch { name, grid, block, context, stream, device, capability })
}

/// Splits `k(int *) (64, 1, 1)x(256, 1, 1)` into the name, the grid and the block.
fn sizes(text: &str) -> Option<(&str, &str, &str)> {
    let at = text.rfind(")x(")?;
    let (before, block) = (&text[..=at], &text[at + 2..]);
    let open = before.rfind(" (")?;
    let grid = &before[open + 1..];
    let extent = |text: &str| {
        let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
        inner.is_some_and(|inner| inner.split(", ").all(|part| part.parse::<u32>().is_ok()))
    };
    (extent(grid) && extent(block)).then(|| (before[..open].trim(), grid, block))
}

/// Removes the date that versions before 2022 write: `k(int *), 2021-Mar-03 10:00:00`.
fn without_date(text: &str) -> &str {
    match text.rsplit_once(", ") {
        Some((name, date)) if date.matches('-').count() == 2 && date.matches(':').count() == 2 => {
            name.trim()
        }
        _ => text,
    }
}

/// Splits `[5043] app@127.0.0.1` into the process number and the program's name.
fn process(text: &str) -> Option<(&str, &str)> {
    let (number, name) = text.strip_prefix('[')?.split_once("] ")?;
    let is = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) && name.contains('@');
    is.then(|| (number, name.rsplit_once('@').map_or(name, |(name, _)| name)))
}

#[cfg(test)]
mod tests;
