//! What Nsight Compute writes: its CSV pages and its log.
//!
//! Columns are found by their header and never by position: versions and options insert some.
//! Values are brought to base units. The text should be the tool's own (`--import … --csv`, or
//! `--log-file`): what a program prints to the same stream cannot be told from a forgery.

mod csv;
mod details;
mod expected;
mod kernel;
mod log;
mod merge;
mod page;
mod raw;

pub use csv::looks_like_page;
pub use csv::{MAX_CELLS, MAX_COLUMNS, NcuCsvError, NcuPage, NcuReport, parse_csv};
pub use kernel::{NcuKernel, NcuRule};
pub use log::{NcuLog, cause, parse_log};
