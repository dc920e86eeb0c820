//! Reports that are returned to the caller. The main type is [`EvaluateResponse`], the report of
//! one evaluation.

#![forbid(unsafe_code)]

mod capabilities;
mod compare;
mod compile;
mod explained;
mod launches;
mod measurement;
mod placeholders;
mod profile_plan;
mod program;
pub mod readable;
mod sweep;
mod timeline;
mod torch;
mod tuning;
mod types;
mod verdict;

pub use capabilities::{Capability, DeviceTooling, SourceCapability, ToolReport, Tooling, Warning};
pub use compare::{CandidateReport, CompareResponse, CountComparison, VerdictBy};
pub use compile::{CompileResponse, KernelParameter, KernelSignature};
pub use launches::{LaunchReport, StepReport};
pub use measurement::{
    BatchReport, ClockReport, DeviceReading, GpuReport, InputsShown, LoadReport, MeasurementReport,
    ReadingOccasion, SealedReport, StateReport,
};
pub use placeholders::Pod;
pub use profile_plan::ProfilePlan;
pub use program::{PrintedText, ProgramKernel, ProgramReport};
pub use sweep::{
    BestPoint, SweepBest, SweepPoint, SweepReason, SweepResponse, SweepStarted, SweepStatus,
    SweepTable, SweepView,
};
pub use timeline::{ExecutionSummary, GpuTime, LaunchRow, TimelineReport, TimelineRow};
pub use torch::{
    TorchArgument, TorchClock, TorchClocks, TorchExtension, TorchInputSource, TorchInputs,
    TorchMaking, TorchParameters, TorchReport,
};
pub use tuning::{TunedBy, TunedConfiguration, TunedOutcome, TuningReport};
pub use types::*;
pub use verdict::KernelVerdict;
pub use warpgauge_statistics::RuntimeStats;
