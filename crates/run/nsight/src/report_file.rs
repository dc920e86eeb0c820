//! Reads the content of a report of any format: text or SQLite.

use std::io;

use warpgauge_metrics::Selection;
use warpgauge_metrics::import::{self, ImportError, Imported};

use crate::sqlite::{self, SqliteExportError};

/// Reasons why a report cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReportFileError {
    /// The content is malformed, or its format is not supported.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The SQLite database is not a readable export.
    #[error(transparent)]
    Sqlite(#[from] SqliteExportError),
    /// The temporary file for SQLite cannot be written.
    #[error("cannot write a temporary file: {0}")]
    Temporary(#[from] io::Error),
}

/// Reads the content of a report, after [`import::unpacked`]. The content decides the format; `name` may identify the table of
/// Nsight Systems. A report of Nsight Compute (`.ncu-rep`) is refused with the command that exports
/// it.
///
/// # Errors
/// See [`ReportFileError`].
pub fn read_report(
    bytes: Vec<u8>,
    name: &str,
    selection: &Selection,
) -> Result<Imported, ReportFileError> {
    if import::is_sqlite(&bytes) {
        // SQLite can open only a file.
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("report.sqlite");
        std::fs::write(&file, &bytes)?;
        drop(bytes);
        return Ok(import::nsys_export(sqlite::read_export(&file)?));
    }
    let name = name.strip_suffix(".gz").unwrap_or(name);
    Ok(import::import_bytes(bytes, name, selection)?)
}
