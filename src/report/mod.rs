//! What goes back to the caller: the report of one evaluation.

mod capabilities;
mod compare;
mod compile;
mod job_statistics;
mod jobs;
mod measurement;
mod profile_plan;
mod sweep;
mod timeline;
mod types;

pub use crate::measure::RuntimeStats;
pub use capabilities::{Capability, DeviceTooling, SourceCapability, ToolReport, Tooling};
pub use compare::{CandidateReport, CompareResponse, CountComparison, VerdictBy};
pub use compile::CompileResponse;
pub use job_statistics::{
    CleanupReport, CompilationStatistics, DeviceStatistics, DeviceUse, Durations, JobCounts,
    ProfilingStatistics, ServiceStatistics, ThroughputStatistics,
};
pub use jobs::{
    CancelOutcome, CancelReport, JobEvent, JobKind, JobList, JobStage, JobState, JobSummary,
    JobView, PartialStatistics,
};
pub use measurement::{BatchReport, ClockReport, GpuReport, InputsShown, MeasurementReport};
pub use profile_plan::ProfilePlan;
pub use sweep::{
    BestPoint, SweepBest, SweepPoint, SweepReason, SweepResponse, SweepStarted, SweepStatus,
    SweepTable, SweepView,
};
pub use timeline::{ExecutionSummary, GpuTime, LaunchRow, TimelineReport, TimelineRow};
pub use types::*;
