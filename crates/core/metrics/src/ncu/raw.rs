//! Parses raw pages. The first record after the header contains the units. Each further record
//! describes a launch of a kernel.

use super::csv::{Columns, NcuCsvError};
use super::expected::{Expected, expected};
use super::kernel::{NcuKernel, Put, describes};
use crate::text::{Cell, Convention, Notes, Record};

const CUT_OFF: &str = "its row ends before this column";
const MAYBE_CUT: &str = "its row ends here, and digits may be cut off";

/// Column of a metric.
pub(super) struct Metric<'a> {
    index: usize,
    name: &'a str,
    unit: &'a str,
    expected: Expected,
}

pub(super) fn kernels(
    columns: &Columns<'_>,
    units: &Record<'_>,
    rows: &[Record<'_>],
    notes: &mut Notes,
) -> Result<Vec<NcuKernel>, NcuCsvError> {
    let metrics = metrics(columns, units, |_| true);
    let convention = Convention::of(rows.iter().flat_map(|row| cells(columns, &metrics, row)))?;
    rows.iter().map(|row| kernel(columns, &metrics, row, convention, notes)).collect()
}

/// Returns the columns that contain metrics, if `wanted` accepts the metric's name.
pub(super) fn metrics<'a>(
    columns: &'a Columns<'_>,
    units: &'a Record<'_>,
    wanted: impl Fn(&str) -> bool,
) -> Vec<Metric<'a>> {
    let names = columns.names.iter().enumerate();
    let names = names.filter(|(_, name)| !name.is_empty() && !describes(name) && wanted(name));
    names
        .map(|(index, name)| {
            let unit = units.fields.get(index).map_or("", |field| field.trim());
            Metric { index, name, unit, expected: expected(name) }
        })
        .collect()
}

/// Returns the cells from which the number format of the locale is determined.
fn cells<'a>(
    columns: &'a Columns<'_>,
    metrics: &'a [Metric<'a>],
    row: &'a Record<'_>,
) -> impl Iterator<Item = Cell<'a>> {
    let cell =
        move |column: &'a str, text: &'a str, whole| Cell { text, whole, line: row.line, column };
    let process = columns.field(row, "Process ID");
    let process = process.map(|text| cell("Process ID", text, true));
    let metrics = metrics.iter().filter_map(move |metric| {
        let whole = metric.expected.whole && metric.unit.find(['K', 'M', 'G']).is_none();
        Some(cell(metric.name, row.fields.get(metric.index)?.as_ref(), whole))
    });
    process.into_iter().chain(metrics)
}

/// Returns the number of complete fields of a row. The last field is complete if its closing quote
/// exists, or if the row has all columns.
pub(super) fn complete(columns: &Columns<'_>, row: &Record<'_>) -> usize {
    let fields = row.fields.len();
    match row.text.ends_with('"') || fields >= columns.names.len() {
        true => fields,
        false => fields - 1,
    }
}

pub(super) fn kernel(
    columns: &Columns<'_>,
    metrics: &[Metric<'_>],
    row: &Record<'_>,
    convention: Convention,
    notes: &mut Notes,
) -> Result<NcuKernel, NcuCsvError> {
    let mut kernel = NcuKernel::of(columns, row);
    let line = row.line;
    let mut tell = |metric: &str, why: &str| {
        notes.add(format!("line {line}, {metric}"), format!("{why}; it has no value"));
    };
    let complete = complete(columns, row);
    for metric in metrics {
        let Metric { index, name, unit, expected } = *metric;
        let Some(cell) = row.fields.get(index) else {
            kernel.missing.insert(name.to_owned(), CUT_OFF.to_owned());
            continue;
        };
        if index >= complete {
            kernel.missing.insert(name.to_owned(), MAYBE_CUT.to_owned());
            continue;
        }
        match kernel.put(name, cell, unit, convention, expected) {
            Put::Done => {}
            Put::Refused(why) if expected.used => tell(name, &why),
            Put::Refused(_) => {}
            Put::Ambiguous => {
                return Err(NcuCsvError::Ambiguous {
                    line,
                    column: name.to_owned(),
                    cell: cell.trim().to_owned(),
                });
            }
        }
    }
    for (name, why) in kernel.contradictions() {
        tell(name, &why);
    }
    Ok(kernel)
}
