//! Messages between the server and a device worker.
//!
//! Frames are length-bounded MessagePack over a Unix socket. The worker inherits the socket as its
//! standard input; its standard output belongs to the kernels (`printf`). Tensor content is passed
//! in files of the job's private directory, never in frames.

mod handshake;
mod job;
mod outcome;
mod reports;
mod served;
mod steps;
mod task;

pub use handshake::{FromWorker, GpuReading, MAX_FRAME_BYTES, PROTOCOL_VERSION, ToWorker};
pub use job::{
    Argument, BufferContent, BufferSpec, KernelLaunch, KernelProgram, Launches, WorkerJob,
};
pub use outcome::{
    AuditFacts, BatchFacts, Blame, CountedRun, CounterFacts, CounterTimings, EvaluatedRun,
    LastingFacts, LoadFacts, MonitoredRun, OutputCheck, OutputSummary, PairedRun, RunFailure,
    RunOutcome, SealedFacts, TaskOutcome, TracedRun, VariablesKept,
};
pub use reports::{PlanReport, ProbeReport};
pub use served::{
    FromRunner, JudgePlan, JudgedTask, LaunchHow, LentBuffer, LentSets, TimedLaunch, ToRunner,
};
pub use steps::{
    ArrayObject, ArraySpec, GlobalVariable, LineTimes, Memory, Piece, Pointee, Step, StepLaunch,
    StepProgram,
};
pub use task::{
    Checks, CountPlan, EvaluatePlan, MonitorPlan, PairPlan, ReferenceRun, TaskPlan, Tolerances,
    TracePlan, TraceView, TrialPlan, WorkerTask,
};
