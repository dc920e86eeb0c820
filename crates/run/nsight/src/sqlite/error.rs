//! Reasons why an SQLite export cannot be imported.

use rusqlite::ErrorCode;
use warpgauge_metrics::nsys::ExportError;

use super::{MAX_LENGTH, TIME};

/// Reasons why a database cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum SqliteExportError {
    /// The file is not a database, or it is damaged or truncated.
    #[error(
        "the SQLite database cannot be read ({0}); export it again with \
         `nsys export --type sqlite --force-overwrite=true FILE.nsys-rep`"
    )]
    Unreadable(rusqlite::Error),
    /// Another program still writes the database, or was interrupted.
    #[error(
        "`{0}` beside the SQLite database contains changes that are not in it yet: close the program \
         that writes the database, or run `sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'`"
    )]
    NotClosed(String),
    /// The database has no table `StringIds` with ids and texts, which every export has.
    #[error(
        "this SQLite database is not an export of Nsight Systems: it has no table `StringIds` with the \
         columns `id` and `value`; export with `nsys export --type sqlite FILE.nsys-rep`"
    )]
    OtherDatabase,
    /// A table is a view or a virtual table.
    #[error("`{0}` is not a plain table, so this is no export of Nsight Systems; it is not read")]
    NoTable(&'static str),
    /// A statement on a table would do more than read its cells.
    #[error(
        "a table of this SQLite database runs code when it is read (`{0}`), so this is no export of \
         Nsight Systems; it is not read"
    )]
    Runs(String),
    /// A table lacks a column that its rows need.
    #[error(
        "table `{table}` has no column `{column}`, which exports of Nsight Systems have; export the \
         report again"
    )]
    NoColumn { table: &'static str, column: &'static str },
    /// The export contains no activities of a GPU, no calls and no ranges.
    #[error(
        "the SQLite export has no kernels, copies, calls of CUDA or ranges; trace with \
         `nsys profile --trace=cuda,nvtx PROGRAM`"
    )]
    Empty,
    /// The export contains no activities except launches of whole CUDA graphs.
    #[error(
        "the SQLite export has only CUDA graphs that are recorded as a whole; trace their kernels with \
         `nsys profile --trace=cuda,nvtx --cuda-graph-trace=node PROGRAM`"
    )]
    OnlyGraphs,
    /// A cell has a different type from the one that Nsight Systems writes.
    #[error(
        "table `{table}`, column `{column}`: a cell does not contain {what}, as it does in exports of \
         Nsight Systems; export the report again"
    )]
    Cell { table: &'static str, column: &'static str, what: &'static str },
    /// A text or a row is too long.
    #[error(
        "the SQLite database contains a text or a row of more than {MAX_LENGTH} bytes; export a table \
         of it with `nsys stats --format csv --report cuda_gpu_kern_sum FILE.sqlite`"
    )]
    TooLong,
    /// A row exceeds a limit or has invalid times.
    #[error(
        "table `{table}`: {error}; export a table of it with `nsys stats --format csv --report \
         cuda_gpu_kern_sum FILE.sqlite`"
    )]
    Row { table: &'static str, error: ExportError },
    /// Reading exceeds the time limit.
    #[error(
        "the SQLite database takes more than {} s to read; export a table of it with \
         `nsys stats --format csv --report cuda_gpu_kern_sum FILE.sqlite`",
        TIME.as_secs()
    )]
    TooSlow,
}

impl From<rusqlite::Error> for SqliteExportError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => SqliteExportError::TooSlow,
            Some(ErrorCode::TooBig) => SqliteExportError::TooLong,
            _ => SqliteExportError::Unreadable(error),
        }
    }
}
