//! The tables of a text.

use serde::Serialize;

use super::columns::{Column, Table, header};
use super::messages;
use super::rows::{Fields, NsysEvent, NsysLaunch, NsysRow};
use crate::profile::text::{Record, Records, TooLong};
use crate::profile::types::Unavailable;

/// Most rows of all tables.
pub const MAX_ROWS: usize = 1_000_000;
/// Remarks that are kept.
const MAX_PROBLEMS: usize = 100;

/// Reports that are of no interest here and have columns like those of others.
const OTHERS: [&str; 12] = [
    "osrt", "nvtx", "vulkan", "opengl", "openmp", "openacc", "mpi", "ucx", "dx1", "wddm",
    "network", "syscall",
];

/// What the tables of `nsys stats` tell.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NsysReport {
    /// Kernels by name; seconds.
    pub kernels: Vec<NsysRow>,
    /// Copies and fillings; seconds.
    pub memory_time: Vec<NsysRow>,
    /// Copies and fillings; bytes, which the tool rounds to thousands.
    pub memory_size: Vec<NsysRow>,
    /// Calls of the API; seconds.
    pub api: Vec<NsysRow>,
    /// Each activity of the GPU.
    pub trace: Vec<NsysEvent>,
    /// Launches by kernel.
    pub launches: Vec<NsysLaunch>,
    /// What the tool could not do, and what would help.
    pub problems: Vec<Unavailable>,
}

/// Why a text cannot be trusted.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NsysError {
    /// Neither a table nor a remark that says why there is none.
    #[error(
        "this is no output of Nsight Systems' `stats`: no line has the columns of one of its \
         reports; export with `nsys stats --format csv --force-export=true FILE`"
    )]
    NoTable,
    /// A number is none.
    #[error("line {line}, {column}: `{cell}` is no number")]
    BadNumber {
        /// Where.
        line: usize,
        /// Column.
        column: String,
        /// The cell.
        cell: String,
    },
    /// A column of numbers without a unit.
    #[error("line {line}, {column}: the header tells no unit that is known")]
    NoUnit {
        /// Where.
        line: usize,
        /// Column.
        column: String,
    },
    /// Rows are too many.
    #[error("line {line}: more than {MAX_ROWS} rows; leave out the report `cuda_gpu_trace`")]
    TooManyRows {
        /// Where.
        line: usize,
    },
    /// A field has no end.
    #[error("line {line}: a field is longer than 64 KiB")]
    FieldTooLong {
        /// Where.
        line: usize,
    },
}

impl From<TooLong> for NsysError {
    fn from(too_long: TooLong) -> Self {
        NsysError::FieldTooLong { line: too_long.line }
    }
}

/// Reads the tables of a text, and the remarks between them.
///
/// # Errors
/// See [`NsysError`]. A text with remarks and no table is none: [`NsysReport::problems`] says why.
pub fn parse_stats(text: &str) -> Result<NsysReport, NsysError> {
    let mut report = NsysReport::default();
    let mut table: Option<(Table, Vec<Column>)> = None;
    let (mut rows, mut seen, mut other) = (0, false, false);
    for record in Records::new(text) {
        let record = record?;
        if let Some(name) = processing(record.text) {
            other = OTHERS.iter().any(|other| name.contains(other));
            table = None;
        } else if let Some(found) = header(&record) {
            table = (!other).then_some(found);
            seen = true;
        } else if let Some((_, problem)) = messages::problem(record.text) {
            table = None;
            if report.problems.len() < MAX_PROBLEMS {
                report.problems.push(problem);
            }
        } else if let Some((kind, columns)) = &table {
            if !is_row(&record, columns) {
                table = None;
                continue;
            }
            rows += 1;
            if rows > MAX_ROWS {
                return Err(NsysError::TooManyRows { line: record.line });
            }
            report.push(*kind, &Fields { columns, record: &record })?;
        }
    }
    if !seen && report.problems.is_empty() {
        return Err(NsysError::NoTable);
    }
    Ok(report)
}

/// Whether a text looks like tables of this kind.
pub(in crate::profile) fn looks_like_stats(text: &str) -> bool {
    Records::new(text).flatten().any(|record| header(&record).is_some())
}

/// The report of `Processing [x.sqlite] with [/opt/…/cuda_gpu_kern_sum.py]...`.
fn processing(line: &str) -> Option<&str> {
    let script = line.trim().strip_prefix("Processing [")?.split_once("] with [")?.1;
    script.split(']').next()?.rsplit(['/', '\\']).next()
}

/// Whether a record belongs to the table above it: tables end with an empty line.
fn is_row(record: &Record<'_>, columns: &[Column]) -> bool {
    let number = |field: &str| field.trim().parse::<f64>().is_ok();
    record.fields.len() == columns.len() && record.fields.first().is_some_and(|f| number(f))
}

impl NsysReport {
    fn push(&mut self, table: Table, fields: &Fields<'_>) -> Result<(), NsysError> {
        match table {
            Table::Kernels => self.kernels.push(fields.row("name", "instances")?),
            Table::MemoryTime => {
                self.memory_time.push(fields.row("operation", operations(fields))?)
            }
            Table::MemorySize => {
                self.memory_size.push(fields.row("operation", operations(fields))?)
            }
            Table::Api => self.api.push(fields.row("name", "count")?),
            Table::Trace => self.trace.push(fields.event()?),
            Table::Launches => self.launches.push(fields.launch()?),
        }
        Ok(())
    }
}

/// What the column of numbers of operations is called.
fn operations(fields: &Fields<'_>) -> &'static str {
    match fields.columns.iter().any(|column| column.name == "operations") {
        true => "operations",
        false => "count",
    }
}

#[cfg(test)]
mod tests;
