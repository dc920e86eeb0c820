//! Adds rows to the lists of a report.

use super::super::columns::{Quantity, Table};
use super::super::reports;
use super::super::rows::Fields;
use super::{NsysError, NsysReport};

/// Adds a row to its table. Returns the reason if the row is left out. `named` means that the
/// report's name identifies it as a report about CUDA.
pub(super) fn push(
    report: &mut NsysReport,
    table: Table,
    fields: &Fields<'_>,
    named: bool,
) -> Result<Option<&'static str>, NsysError> {
    let name = fields.text("name").unwrap_or_default();
    match table {
        Table::Kernels if !named && name.starts_with("MPI_") => {
            return Ok(Some("this is a call of MPI and not a kernel"));
        }
        Table::Kernels => report.kernels.push(fields.row("name", "instances", Quantity::Time)?),
        Table::MemoryTime => {
            report.memory_time.push(fields.row("operation", operations(fields), Quantity::Time)?)
        }
        Table::MemorySize => {
            report.memory_size.push(fields.row("operation", operations(fields), Quantity::Bytes)?)
        }
        Table::Api if !named && !reports::is_cuda_call(name) => {
            return Ok(Some("this function is not part of the CUDA API"));
        }
        Table::Api => report.api.push(fields.row("name", "num calls", Quantity::Time)?),
        Table::ByCategory => {
            let row = fields.row("operation", "instances", Quantity::Time)?;
            match fields.text("category").unwrap_or_default() {
                "CUDA_KERNEL" => report.kernels.push(row),
                "MEMORY_OPER" => report.memory_time.push(row),
                "CUDA_API" => report.api.push(row),
                _ => return Ok(Some("its category is none of kernels, copies and calls")),
            }
        }
        Table::Launches => report.launches.push(fields.launch()?),
        Table::Trace | Table::Other => {}
    }
    Ok(None)
}

/// Returns the name of the column with the number of operations.
fn operations(fields: &Fields<'_>) -> &'static str {
    match fields.columns.iter().any(|column| column.name == "operations") {
        true => "operations",
        false => "count",
    }
}
