//! A CSV page of Nsight Compute: which one it is, and what both kinds have in common.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::kernel::NcuKernel;
use super::{details, raw};
use crate::profile::text::{Conflict, Record, Records, TooLong};

/// Most columns.
pub const MAX_COLUMNS: usize = 20_000;
/// Most cells of all kernels: 1,800 kernels with every metric that `--set full` has.
pub const MAX_CELLS: usize = 4_000_000;

/// A page of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct NcuReport {
    /// Which page it is.
    pub page: NcuPage,
    /// The kernels, as they ran.
    pub kernels: Vec<NcuKernel>,
    /// Lines that are no part of the page: the tool's log and what programs print.
    pub other_lines: usize,
}

/// Pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NcuPage {
    /// `--page raw`: a row per kernel, a column per metric.
    Raw,
    /// `--page details`: a row per kernel, section and metric.
    Details,
}

/// Why a text is no page that can be trusted.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NcuCsvError {
    /// No line is a header.
    #[error(
        "this is no CSV page of Nsight Compute: no line begins with the column `ID`; export with \
         `ncu --import FILE --csv --page raw --print-units base`"
    )]
    NoHeader,
    /// There is a header and nothing else.
    #[error("the page holds no kernels: the header in line {line} is all there is of it")]
    NoKernels {
        /// Of the header.
        line: usize,
    },
    /// A raw page without the record of units, without which its numbers say nothing.
    #[error(
        "line {line}: no record of units follows the header; export again with `--print-units base`"
    )]
    NoUnits {
        /// Of the header.
        line: usize,
    },
    /// A column twice.
    #[error("line {line}: the column `{column}` stands there twice")]
    ColumnTwice {
        /// Of the header.
        line: usize,
        /// Its name.
        column: String,
    },
    /// Columns are more than any version has.
    #[error("line {line}: more than {MAX_COLUMNS} columns")]
    TooManyColumns {
        /// Of the header.
        line: usize,
    },
    /// Cells are too many.
    #[error(
        "line {line}: more than {MAX_CELLS} cells; export fewer kernels (`--launch-count`) or \
         fewer metrics (`--metrics`)"
    )]
    TooManyCells {
        /// Where.
        line: usize,
    },
    /// A field has no end.
    #[error("line {line}: a field is longer than 64 KiB")]
    FieldTooLong {
        /// Where.
        line: usize,
    },
    /// No locale writes such numbers.
    #[error(
        "`{dot}` and `{comma}` are not of one locale; export again with the environment variable \
         LC_ALL=C"
    )]
    MixedLocales {
        /// A cell with a decimal point.
        dot: String,
        /// A cell with a decimal comma.
        comma: String,
    },
    /// A number has two readings.
    #[error(
        "line {line}, {column}: `{cell}` may be a fraction or a number with grouped digits; export \
         again with the environment variable LC_ALL=C"
    )]
    Ambiguous {
        /// Where.
        line: usize,
        /// Column or metric.
        column: String,
        /// The number.
        cell: String,
    },
}

impl From<Conflict> for NcuCsvError {
    fn from(conflict: Conflict) -> Self {
        NcuCsvError::MixedLocales { dot: conflict.dot, comma: conflict.comma }
    }
}

impl From<TooLong> for NcuCsvError {
    fn from(too_long: TooLong) -> Self {
        NcuCsvError::FieldTooLong { line: too_long.line }
    }
}

/// Reads a page; lines before the header, and log lines after it, are skipped.
///
/// # Errors
/// See [`NcuCsvError`].
pub fn parse_csv(text: &str) -> Result<NcuReport, NcuCsvError> {
    let mut records = Records::new(text);
    let mut skipped = 0;
    let header = loop {
        let Some(record) = records.next() else { return Err(NcuCsvError::NoHeader) };
        match record {
            Ok(record) if is_header(&record) => break record,
            Ok(_) | Err(_) => skipped += 1,
        }
    };
    let columns = Columns::of(&header)?;
    let page = match columns.index("Metric Name").is_some() {
        true => NcuPage::Details,
        false => NcuPage::Raw,
    };
    let mut rows = Vec::new();
    let mut cells = 0;
    for record in records {
        let record = record?;
        if !is_row(&record, &columns, rows.is_empty() && page == NcuPage::Raw) {
            skipped += usize::from(!record.text.trim().is_empty());
            continue;
        }
        cells += record.fields.len();
        if cells > MAX_CELLS {
            return Err(NcuCsvError::TooManyCells { line: record.line });
        }
        rows.push(record);
    }
    if rows.is_empty() {
        return Err(NcuCsvError::NoKernels { line: header.line });
    }
    let kernels = match page {
        NcuPage::Raw => {
            let line = header.line;
            let Some((units, rows)) = rows.split_first().filter(|(units, _)| has_no_id(units))
            else {
                return Err(NcuCsvError::NoUnits { line });
            };
            raw::kernels(&columns, units, rows)?
        }
        NcuPage::Details => details::kernels(&columns, &rows)?,
    };
    if kernels.is_empty() {
        return Err(NcuCsvError::NoKernels { line: header.line });
    }
    Ok(NcuReport { page, kernels, other_lines: skipped })
}

/// Whether a text looks like a page of this kind.
pub(in crate::profile) fn looks_like_page(text: &str) -> bool {
    Records::new(text).flatten().any(|record| is_header(&record))
}

fn is_header(record: &Record<'_>) -> bool {
    record.fields.first().is_some_and(|first| first == "ID")
        && record.fields.iter().any(|field| field == "Kernel Name")
}

/// Whether a record is a kernel's, or the units that follow the header of a raw page. Others are
/// the tool's log, or a program's.
fn is_row(record: &Record<'_>, columns: &Columns<'_>, units: bool) -> bool {
    let id = record.fields[columns.id].trim();
    let enough = record.fields.len() > columns.kernel;
    enough && ((units && id.is_empty()) || is_id(id))
}

fn has_no_id(record: &Record<'_>) -> bool {
    record.fields.first().is_none_or(|id| id.trim().is_empty())
}

fn is_id(id: &str) -> bool {
    !id.is_empty() && id.len() < 20 && id.chars().all(|c| c.is_ascii_digit() || ".,".contains(c))
}

/// Where the columns are.
#[derive(Debug)]
pub(super) struct Columns<'a> {
    pub(super) names: Vec<Cow<'a, str>>,
    by_name: BTreeMap<String, usize>,
    pub(super) id: usize,
    pub(super) kernel: usize,
}

impl<'a> Columns<'a> {
    fn of(header: &Record<'a>) -> Result<Self, NcuCsvError> {
        let line = header.line;
        if header.fields.len() > MAX_COLUMNS {
            return Err(NcuCsvError::TooManyColumns { line });
        }
        let mut by_name = BTreeMap::new();
        for (index, name) in header.fields.iter().enumerate() {
            // A trailing comma makes a column without a name.
            if !name.is_empty() && by_name.insert(name.to_string(), index).is_some() {
                return Err(NcuCsvError::ColumnTwice { line, column: name.to_string() });
            }
        }
        let kernel = *by_name.get("Kernel Name").ok_or(NcuCsvError::NoHeader)?;
        Ok(Self { names: header.fields.clone(), by_name, id: 0, kernel })
    }

    pub(super) fn index(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// A field of a record, if the record is long enough and the column exists.
    pub(super) fn field<'r>(&self, record: &'r Record<'_>, name: &str) -> Option<&'r str> {
        record.fields.get(self.index(name)?).map(|field| field.trim())
    }
}

#[cfg(test)]
mod tests;
