//! What Nsight Systems writes: the tables of `nsys stats --format csv`, of all versions since 2020.
//!
//! A text may hold several tables with the tool's remarks between them. Tables are known by all
//! their columns, since `--quiet` leaves out their names, and by their names where they have any:
//! what is no activity of the GPU and no call of the CUDA API is left out, and said to be. Values are in base units: seconds and bytes.
//! The text should be that of `nsys stats` and not of `nsys profile`, in which a program's output
//! may stand.

mod columns;
mod messages;
mod report;
mod reports;
mod rows;
mod timeline;

pub use messages::cause;
pub use report::looks_like_stats;
pub use report::{MAX_ROWS, NsysError, NsysReport, parse_stats, parse_stats_of};
pub use rows::{NsysEvent, NsysLaunch, NsysRow};
pub use timeline::{Timeline, timeline};
