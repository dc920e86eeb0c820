//! The raw page: the record after the header has the units, every other one is a kernel.

use super::csv::{Columns, NcuCsvError};
use super::kernel::{NcuKernel, describes};
use crate::profile::text::{Convention, Record};

const CUT_OFF: &str = "its row ends before this column";

pub(super) fn kernels(
    columns: &Columns<'_>,
    units: &Record<'_>,
    rows: &[Record<'_>],
) -> Result<Vec<NcuKernel>, NcuCsvError> {
    let metrics: Vec<usize> = (0..columns.names.len())
        .filter(|index| !columns.names[*index].is_empty() && !describes(&columns.names[*index]))
        .collect();
    let unit = |index: usize| units.fields.get(index).map_or("", |field| field.trim());
    let cells = rows.iter().flat_map(|row| {
        metrics.iter().filter_map(|index| row.fields.get(*index).map(AsRef::as_ref))
    });
    let convention = Convention::of(cells)?;
    let mut kernels = Vec::with_capacity(rows.len());
    for row in rows {
        let mut kernel = NcuKernel::of(columns, row);
        for &index in &metrics {
            let name = columns.names[index].as_ref();
            let Some(cell) = row.fields.get(index) else {
                kernel.missing.insert(name.to_owned(), CUT_OFF.to_owned());
                continue;
            };
            if !kernel.put(name, cell, unit(index), convention) {
                return Err(NcuCsvError::Ambiguous {
                    line: row.line,
                    column: name.to_owned(),
                    cell: cell.trim().to_owned(),
                });
            }
        }
        kernels.push(kernel);
    }
    Ok(kernels)
}
