//! Finds CSV pages of Nsight Compute in a text, and parses the parts that both kinds of page have
//! in common. The main type is [`NcuReport`].

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::kernel::NcuKernel;
use super::merge::Merged;
use super::page::Page;
use crate::text::{Conflict, Notes, Record, Records, Step, TooLong};

/// Maximum number of columns of a page.
pub const MAX_COLUMNS: usize = 20_000;
/// Maximum number of cells of all kernels. It is enough for 1,800 kernels with every metric of
/// `--set full`.
pub const MAX_CELLS: usize = 4_000_000;

/// Content of all pages in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct NcuReport {
    /// Kind of each page. A text has several pages if files were concatenated.
    pub pages: Vec<NcuPage>,
    /// Kernels in the order in which they ran. A launch that occurs in several pages has one entry.
    pub kernels: Vec<NcuKernel>,
    /// Number of lines outside of pages: the log of Nsight Compute, and output of programs.
    pub other_lines: usize,
    /// Lines that were left out, and caveats.
    pub notes: Vec<String>,
}

/// Kind of a page of Nsight Compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NcuPage {
    /// `--page raw`: a row per kernel, a column per metric.
    Raw,
    /// `--page details`: a row per kernel, section and metric.
    Details,
}

/// Reasons why a text is not a valid page.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NcuCsvError {
    /// The text contains no header.
    #[error(
        "this is not a CSV page of Nsight Compute: no line begins with the column `ID`; export \
         with `ncu --import FILE --csv --page raw --print-units base`"
    )]
    NoHeader,
    /// There are no complete rows after the header.
    #[error(
        "the page contains no kernels: no complete row follows the header in line {line}; check \
         that kernels were profiled, and that the file is not cut off"
    )]
    NoKernels {
        /// Line of the header.
        line: usize,
    },
    /// A raw page has no row of units. Its numbers have no meaning without units.
    #[error(
        "line {line}: no row of units follows the header; export again with `--print-units base`"
    )]
    NoUnits {
        /// Line of the header.
        line: usize,
    },
    /// A page contains a second row of units, which differs from the first.
    #[error(
        "line {line}: these units do not match the header in line {header}: the rows after them \
         belong to another page, whose header is missing; concatenate whole files, or import each \
         separately"
    )]
    UnitsTwice {
        line: usize,
        /// Line of the header.
        header: usize,
    },
    /// The number of fields in a row does not match the header, so the row probably belongs to
    /// another page.
    #[error(
        "line {line}: the row has {found} fields, and the header in line {header} has {columns}: \
         it belongs to another page, or was modified; export again, or import each page separately"
    )]
    RowLength {
        line: usize,
        /// Number of the row's fields.
        found: usize,
        /// Line of the header.
        header: usize,
        /// Number of the header's columns.
        columns: usize,
    },
    /// The page contains averages over launches instead of single launches.
    #[error(
        "line {line}: this is a summary (`--print-summary`), which contains averages over several \
         launches instead of the launches; export with `ncu --import FILE --csv --page raw \
         --print-units base`"
    )]
    Summary {
        /// Line of the header.
        line: usize,
    },
    /// A column occurs twice.
    #[error("line {line}: the column `{column}` occurs twice")]
    ColumnTwice {
        /// Line of the header.
        line: usize,
        /// Name of the column.
        column: String,
    },
    /// There are more columns than in the output of any version.
    #[error("line {line}: more than {MAX_COLUMNS} columns")]
    TooManyColumns {
        /// Line of the header.
        line: usize,
    },
    /// The pages have too many cells.
    #[error(
        "line {line}: more than {MAX_CELLS} cells; export fewer kernels (`--launch-count`) or \
         fewer metrics (`--metrics`)"
    )]
    TooManyCells { line: usize },
    /// A field is longer than the limit.
    #[error("line {line}: a field is longer than 64 KiB")]
    FieldTooLong { line: usize },
    /// Numbers in the text are from different locales.
    #[error(
        "{dot} and {comma} are not from the same locale; export again with the environment \
         variable LC_ALL=C"
    )]
    MixedLocales {
        /// Description of a cell with a decimal point.
        dot: String,
        /// Description of a cell with a decimal comma.
        comma: String,
    },
    /// A number is ambiguous.
    #[error(
        "line {line}, {column}: `{cell}` may be a fraction or a number with grouped digits; export \
         again with the environment variable LC_ALL=C"
    )]
    Ambiguous {
        line: usize,
        /// Name of the column or metric.
        column: String,
        /// Text of the ambiguous number.
        cell: String,
    },
}

impl From<Conflict> for NcuCsvError {
    fn from(conflict: Conflict) -> Self {
        NcuCsvError::MixedLocales { dot: conflict.dot, comma: conflict.comma }
    }
}

impl From<TooLong<'_>> for NcuCsvError {
    fn from(too_long: TooLong<'_>) -> Self {
        NcuCsvError::FieldTooLong { line: too_long.line }
    }
}

/// Parses the pages of a text. It skips lines before the first header, and the log of Nsight
/// Compute. For every other line that is not a row, it adds a note.
///
/// # Errors
/// See [`NcuCsvError`].
pub fn parse_csv(text: &str) -> Result<NcuReport, NcuCsvError> {
    let mut records = Records::new(text);
    let mut notes = Notes::default();
    let mut pages: Vec<Page<'_>> = Vec::new();
    let (mut skipped, mut cells) = (0, 0);
    while let Some(step) = records.step(header) {
        let record = match step {
            Ok(Step::Header(header)) => {
                pages.push(Page::new(&header)?);
                continue;
            }
            Ok(Step::Other(record)) => record,
            // Output of programs before the page may have very long lines.
            Err(_) if pages.is_empty() => {
                skipped += 1;
                continue;
            }
            Err(too_long) => return Err(too_long.into()),
        };
        let line = record.line;
        let Some(page) = pages.last_mut() else {
            skipped += 1;
            continue;
        };
        match page.take(record, &mut notes)? {
            Some(fields) => cells += fields,
            None => skipped += 1,
        }
        if cells > MAX_CELLS {
            return Err(NcuCsvError::TooManyCells { line });
        }
    }
    let Some(first) = pages.first() else { return Err(no_header(text)) };
    let (line, kinds) = (first.line, pages.iter().map(|page| page.kind).collect::<Vec<_>>());
    let last = pages.len() - 1;
    let mut merged = Merged::default();
    for (index, page) in pages.iter().enumerate() {
        let kernels = page.kernels(index == last, &mut notes)?;
        if kernels.is_empty() && last > 0 {
            notes.add(format!("line {}", page.line), "the page of this header is empty".to_owned());
        }
        merged.add(kernels, page.line, &mut notes);
    }
    if merged.kernels.is_empty() {
        return Err(NcuCsvError::NoKernels { line });
    }
    Ok(NcuReport {
        pages: kinds,
        kernels: merged.kernels,
        other_lines: skipped,
        notes: notes.into_texts(),
    })
}

/// Returns whether a text contains the header of a CSV page.
pub fn looks_like_page(text: &str) -> bool {
    text.contains("Kernel Name") && Records::have(text, header)
}

/// Returns the record, split at the separator that fits, if it is the header of a page.
pub(super) fn header<'a>(records: &mut Records<'a>, record: &Record<'a>) -> Option<Record<'a>> {
    record.text.contains("Kernel Name").then(|| records.recognise(record, is_header))?
}

/// Returns whether a record is a header. Programs that save the page again may insert columns at
/// the beginning.
fn is_header(record: &Record<'_>) -> bool {
    let has = |name: &str| record.fields.iter().any(|field| field.trim() == name);
    !record.broken && has("ID") && has("Kernel Name")
}

/// Returns the error for a text without a page.
fn no_header(text: &str) -> NcuCsvError {
    let summary = |record: Record<'_>| {
        let has = |name: &str| record.fields.iter().any(|field| field == name);
        has("Metric Name") && has("Average") && has("Maximum")
    };
    if !text.contains("Metric Name") {
        return NcuCsvError::NoHeader;
    }
    match Records::new(text).flatten().find(|record| summary(record.clone())) {
        Some(record) => NcuCsvError::Summary { line: record.line },
        None => NcuCsvError::NoHeader,
    }
}

/// Columns of a page and their positions.
#[derive(Debug)]
pub(super) struct Columns<'a> {
    pub(super) names: Vec<Cow<'a, str>>,
    by_name: BTreeMap<String, usize>,
    pub(super) id: usize,
    pub(super) kernel: usize,
}

impl<'a> Columns<'a> {
    pub(super) fn of(header: &Record<'a>) -> Result<Self, NcuCsvError> {
        let line = header.line;
        if header.fields.len() > MAX_COLUMNS {
            return Err(NcuCsvError::TooManyColumns { line });
        }
        let mut by_name = BTreeMap::new();
        let names: Vec<Cow<'a, str>> =
            header.fields.iter().map(|name| Cow::Owned(name.trim().to_owned())).collect();
        for (index, name) in names.iter().enumerate() {
            // A trailing comma creates a column without a name.
            if !name.is_empty() && by_name.insert(name.to_string(), index).is_some() {
                return Err(NcuCsvError::ColumnTwice { line, column: name.to_string() });
            }
        }
        let kernel = *by_name.get("Kernel Name").ok_or(NcuCsvError::NoHeader)?;
        let id = *by_name.get("ID").ok_or(NcuCsvError::NoHeader)?;
        Ok(Self { names, by_name, id, kernel })
    }

    pub(super) fn index(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Returns the field of a record in the named column. Returns `None` if the page has no such
    /// column, or the record is too short.
    pub(super) fn field<'r>(&self, record: &'r Record<'_>, name: &str) -> Option<&'r str> {
        record.fields.get(self.index(name)?).map(|field| field.trim())
    }
}

#[cfg(test)]
mod appended;
#[cfg(test)]
mod tests;
