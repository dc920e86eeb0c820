//! Parses the source page of Nsight Compute (`--page source --csv`): counters of each line of code.
//! The main type is [`SourcePage`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::csv::{MAX_COLUMNS, NcuCsvError};
use crate::text::{Cell, Convention, Record, Records, Step, Value, value};

/// Maximum number of lines of code of all kernels.
const MAX_LINES: usize = 200_000;
/// Maximum number of counters of all lines.
const MAX_VALUES: usize = 1_000_000;
/// Maximum number of characters of a line of code.
const MAX_CODE: usize = 400;

/// Columns of a source page that are not counters.
const DESCRIPTION: [&str; 5] = ["#", "Address", "Source", "File", "Line"];

/// Source page of Nsight Compute: counters of each line of code.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct SourcePage {
    /// Kernels, in the order of the file.
    #[serde(rename = "source")]
    pub kernels: Vec<SourcePageKernel>,
    /// Lines that were left out, and caveats.
    pub notes: Vec<String>,
}

/// Source lines of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SourcePageKernel {
    /// Name of the kernel in the tool's output.
    pub kernel: String,
    /// Lines of code with their counters, in the order of the page.
    pub lines: Vec<SourceLine>,
}

/// A line of source code, PTX or machine code, depending on the page.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SourceLine {
    /// Number of the line, if the page contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Address of the instruction, if the page contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Text of the line.
    pub source: String,
    /// Counters by the names of their columns. Counters without a number are absent.
    pub counters: BTreeMap<String, f64>,
}

/// Returns whether a text looks like a source page of Nsight Compute.
pub fn looks_like_source(text: &str) -> bool {
    text.contains("Source") && Records::have(text, header)
}

fn header<'a>(records: &mut Records<'a>, record: &Record<'a>) -> Option<Record<'a>> {
    let words = record.text.contains("Source") && record.text.contains("Sampl")
        || record.text.contains("Address");
    words.then(|| records.recognise(record, is_header))?
}

/// Returns whether a record is a header, with columns of code and of counters.
fn is_header(record: &Record<'_>) -> bool {
    let has = |name: &str| record.fields.iter().any(|field| field.trim() == name);
    !record.broken
        && record.fields.len() > 2
        && has("Source")
        && (has("Address") || has("#"))
        && !has("Kernel Name")
}

/// Returns the name of the kernel whose page begins with this record. The tool ends it with a
/// separator.
fn kernel_name<'a>(record: &'a Record<'_>) -> Option<&'a str> {
    let mut fields = record.fields.iter().map(|field| field.trim());
    let name = fields.next().filter(|first| *first == "Kernel Name").and_then(|_| fields.next())?;
    fields.all(str::is_empty).then_some(name)
}

/// Parses source pages. The tool writes each kernel twice; equal pages that follow each other are
/// returned once.
///
/// # Errors
/// See [`NcuCsvError`].
pub fn parse_source(text: &str) -> Result<SourcePage, NcuCsvError> {
    let mut records = Records::new(text);
    let mut page = SourcePage::default();
    let mut name = String::new();
    let mut columns: Option<Vec<String>> = None;
    let mut rows: Vec<Record<'_>> = Vec::new();
    let (mut lines, mut left_out) = (0usize, 0usize);
    let mut values = 0;
    while let Some(step) = records.step(header) {
        let record = match step {
            Ok(Step::Header(header)) => {
                page.end(&name, columns.take(), &std::mem::take(&mut rows), &mut values)?;
                if header.fields.len() > MAX_COLUMNS {
                    return Err(NcuCsvError::TooManyColumns { line: header.line });
                }
                columns = Some(header.fields.iter().map(|name| name.trim().to_owned()).collect());
                continue;
            }
            Ok(Step::Other(record)) => record,
            Err(_) if columns.is_none() => continue,
            Err(too_long) => return Err(too_long.into()),
        };
        if let Some(kernel) = kernel_name(&record) {
            page.end(&name, columns.take(), &std::mem::take(&mut rows), &mut values)?;
            name = kernel.to_owned();
        } else if let Some(columns) = &columns {
            lines += 1;
            if record.broken || record.fields.len() != columns.len() {
                left_out += usize::from(!record.text.trim().is_empty());
            } else if lines > MAX_LINES {
                return Err(NcuCsvError::TooManyCells { line: record.line });
            } else {
                rows.push(record);
            }
        }
    }
    page.end(&name, columns, &rows, &mut values)?;
    if page.kernels.is_empty() {
        return Err(NcuCsvError::NoHeader);
    }
    page.notes.push(
        "this is a source page: it has counters of each line, but no metrics of the kernel; `ncu \
         --import FILE --csv --page raw --print-units base` exports a page with them"
            .to_owned(),
    );
    if left_out > 0 {
        page.notes.push(format!("{left_out} lines are not complete rows and are left out"));
    }
    Ok(page)
}

impl SourcePage {
    /// Adds the lines of a kernel.
    fn end(
        &mut self,
        kernel: &str,
        columns: Option<Vec<String>>,
        rows: &[Record<'_>],
        values: &mut usize,
    ) -> Result<(), NcuCsvError> {
        let Some(columns) = columns else { return Ok(()) };
        let index = |name: &str| columns.iter().position(|column| column == name);
        let counters: Vec<(usize, &String)> = columns
            .iter()
            .enumerate()
            .filter(|(_, name)| !name.is_empty() && !DESCRIPTION.contains(&name.as_str()))
            .collect();
        let cells = rows.iter().flat_map(|row| {
            counters.iter().map(|(at, column)| Cell {
                text: row.fields[*at].as_ref(),
                whole: false,
                line: row.line,
                column,
            })
        });
        let convention = Convention::of(cells)?;
        let mut lines = Vec::new();
        for row in rows {
            let field = |name: &str| {
                index(name).map(|at| row.fields[at].trim()).filter(|text| !text.is_empty())
            };
            let number = |cell: &str| match value(cell, convention) {
                Value::Number(number) => Some(number),
                Value::Ambiguous => cell.trim().replace([',', '.'], "").parse().ok(),
                Value::Missing(_) | Value::Text => None,
            };
            let of_row = counters.iter().filter_map(|(at, name)| {
                Some(((*name).clone(), number(row.fields[*at].as_ref())?))
            });
            let of_row: BTreeMap<String, f64> = of_row.collect();
            *values += of_row.len();
            if *values > MAX_VALUES {
                return Err(NcuCsvError::TooManyCells { line: row.line });
            }
            if !of_row.is_empty() {
                lines.push(SourceLine {
                    number: field("#").or_else(|| field("Line")).and_then(|text| text.parse().ok()),
                    address: field("Address").map(str::to_owned),
                    source: field("Source").unwrap_or_default().chars().take(MAX_CODE).collect(),
                    counters: of_row,
                });
            }
        }
        let kernel = SourcePageKernel { kernel: kernel.to_owned(), lines };
        if self.kernels.last() != Some(&kernel) {
            self.kernels.push(kernel);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
