//! Parses the output of Nsight Systems: the tables of `nsys stats` as CSV, as JSON and as printed
//! to the console, of all versions since 2019.
//!
//! A text may have several tables with the tool's messages between them. A table is identified by
//! all its columns, because `--quiet` omits its name; if there is a name, it is also used. Tables
//! without GPU activities or CUDA API calls are left out, and a note records this. Values are in
//! base units: seconds and bytes. The text should come from `nsys stats`, not from `nsys profile`,
//! whose output may include that of programs.

mod columns;
mod console;
mod export;
mod json;
mod locale;
mod messages;
mod report;
mod reports;
mod rows;
mod timeline;
mod trace;

pub use export::{ExportError, ExportedActivity, NsysExport};
pub use messages::cause;
pub use report::looks_like_stats;
pub use report::{MAX_ROWS, NsysError, NsysReport, parse_stats, parse_stats_of};
pub use rows::{NsysEvent, NsysLaunch, NsysRow};
pub use timeline::{Timeline, timeline};
pub use trace::{MAX_TRACE, SharedName};
