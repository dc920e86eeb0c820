//! Parses the output of Nsight Compute: its CSV pages and its log.
//!
//! Columns are found by their headers and never by position, because versions and options insert
//! columns. Values are converted to base units. The text should be the tool's own (`--import …
//! --csv`, or `--log-file`). In a stream shared with a program, the program could forge the tool's
//! output.

mod console;
mod csv;
mod derived;
mod details;
mod expected;
mod kernel;
mod log;
mod merge;
mod page;
mod places;
mod raw;
mod source;
mod streamed;

pub use console::{looks_like_console, parse_console};
pub use csv::looks_like_page;
pub use csv::{MAX_CELLS, MAX_COLUMNS, NcuCsvError, NcuPage, NcuReport, parse_csv};
pub(crate) use kernel::PASSES;
pub use kernel::{NcuKernel, NcuRule};
pub use log::{NcuLog, cause, parse_log};
pub(crate) use places::{PlacedLaunch, at, place};
pub use source::{SourceLine, SourcePage, SourcePageKernel, looks_like_source, parse_source};
pub(crate) use streamed::each_launch;
