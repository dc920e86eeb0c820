//! What goes back to the caller: the report of one evaluation.

mod compare;
mod compile;
mod jobs;
mod measurement;
mod sweep;
mod types;

pub use crate::measure::RuntimeStats;
pub use compare::{CandidateReport, CompareResponse, CountComparison};
pub use compile::CompileResponse;
pub use jobs::{JobState, JobView};
pub use measurement::{BatchReport, ClockReport, GpuReport, InputsShown, MeasurementReport};
pub use sweep::{
    BestPoint, SweepBest, SweepPoint, SweepReason, SweepResponse, SweepStarted, SweepStatus,
    SweepTable, SweepView,
};
pub use types::*;
