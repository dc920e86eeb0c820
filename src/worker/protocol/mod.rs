//! Messages between the server and a device worker.
//!
//! Frames are length-bounded MessagePack over a Unix socket that the worker inherits as its standard
//! input; its standard output belongs to the kernels (`printf`). Tensor content travels in files of
//! the job's private directory, never in frames.

mod handshake;
mod job;
mod outcome;

pub use handshake::{
    DeviceInfo, DeviceKind, FromWorker, MAX_FRAME_BYTES, PROTOCOL_VERSION, SmLimits, TimesSoFar,
    ToWorker,
};
pub use job::{
    Argument, BufferSpec, Content, CounterPlan, Image, Job, KernelLaunch, MonitorPlan, PairedPlan,
    ReferenceRun, TracePlan, TraceView, TrialPlan,
};
pub use outcome::{
    AuditFacts, BatchFacts, Blame, CounterFacts, CounterTimings, FunctionFacts, LaunchCounts,
    MonitorFacts, MonitorWindow, OutputCheck, OutputSummary, RunFailure, RunOutcome, WorkerTimings,
};
