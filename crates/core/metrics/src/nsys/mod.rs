//! Parses the output of Nsight Systems: the tables of `nsys stats` as CSV, as JSON, and as they
//! stand on the console, of all versions since 2019.
//!
//! A text may have several tables with the tool's messages between them. All columns together
//! identify a table, since `--quiet` omits its name; a given name is also used. Tables without GPU
//! activity or CUDA API calls are left out, with a note. Values are in base units: seconds and
//! bytes. The text should come from `nsys stats`, not from `nsys profile`, which may include the
//! output of programs.

mod columns;
mod console;
mod json;
mod messages;
mod report;
mod reports;
mod rows;
mod timeline;

pub use messages::cause;
pub use report::looks_like_stats;
pub use report::{MAX_ROWS, MAX_TRACE, NsysError, NsysReport, parse_stats, parse_stats_of};
pub use rows::{NsysEvent, NsysLaunch, NsysRow};
pub use timeline::{Timeline, timeline};
