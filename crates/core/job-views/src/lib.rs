//! Wire types of requests and answers about jobs.

#![forbid(unsafe_code)]

mod code;
mod counters;
mod jobs;
mod statistics;
mod unready;

pub use code::{CodeListing, KernelCodeView, SourceText};
pub use counters::{CodeCounters, LineCounters, ListedCounters};
pub use jobs::{
    CancelOutcome, CancelReport, JobEvent, JobList, JobSummary, JobView, MAX_AHEAD, SweepEvent,
};
pub use statistics::{
    CleanupReport, CompilationStatistics, DeviceStatistics, DeviceUse, Durations, JobCounts,
    ProfilingStatistics, ServiceStatistics, ThroughputStatistics,
};
pub use unready::Unready;
