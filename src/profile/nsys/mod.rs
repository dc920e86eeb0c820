//! What Nsight Systems writes: the tables of `nsys stats --format csv`, of all versions since 2020.
//!
//! A text may hold several tables with the tool's remarks between them. Tables are known by their
//! columns, since `--quiet` leaves out their names. Values are in base units: seconds and bytes.
//! The text should be that of `nsys stats` and not of `nsys profile`, in which a program's output
//! may stand.

mod columns;
mod messages;
mod report;
mod rows;
mod timeline;

pub use messages::cause;
pub(in crate::profile) use report::looks_like_stats;
pub use report::{MAX_ROWS, NsysError, NsysReport, parse_stats};
pub use rows::{NsysEvent, NsysLaunch, NsysRow};
pub use timeline::{Timeline, timeline};
