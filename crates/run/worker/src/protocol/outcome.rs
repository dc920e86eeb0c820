//! What came of a job.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use warpgauge_device::{ClockReading, GpuHealth, GpuSettings};
use warpgauge_model::{
    FailureCode, FunctionFacts, LaunchCounts, MonitorFacts, Unavailable, WorkerTimings,
};
use warpgauge_statistics::StopReason;
use warpgauge_statistics::paired::PairedBlock;
use warpgauge_validate::{Comparison, Weakness};

/// How a job ended: what every task has, and what its own told.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RunOutcome<T = TaskOutcome> {
    /// What went wrong, if anything.
    pub failure: Option<RunFailure>,
    /// Where the time went, milliseconds of wall clock.
    pub timings: WorkerTimings,
    /// What the kernel printed, bounded; lossy UTF-8.
    pub printed: String,
    /// Occupancy and resources as the driver reports them for the kernel launched first.
    pub function: Option<FunctionFacts>,
    /// What the task found out, as far as it came.
    pub told: T,
}

impl<T> RunOutcome<T> {
    /// The same, with what was told as something else.
    pub fn map<U>(self, told: impl FnOnce(T) -> U) -> RunOutcome<U> {
        let Self { failure, timings, printed, function, told: found } = self;
        RunOutcome { failure, timings, printed, function, told: told(found) }
    }
}

impl<T: Default> From<RunFailure> for RunOutcome<T> {
    fn from(failure: RunFailure) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }
}

/// What a task found out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum TaskOutcome {
    /// Of a program that was launched and verified.
    Evaluated(Box<EvaluatedRun>),
    /// Of two that were timed side by side.
    Paired(PairedRun),
    /// Of hardware counters.
    Counted(CountedRun),
    /// Of launches under a tool.
    Traced(TracedRun),
    /// Of launches that the driver monitored.
    Monitored(MonitoredRun),
    /// Nothing: whoever judged the launches has it.
    Served,
}

/// What became of the variables and constants of a kernel's modules before each timed launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum VariablesKept {
    /// They were put back to what they were after loading.
    PutBack,
    /// Nothing was: why they are not known.
    NotKnown(String),
}

/// What was found out about a program.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EvaluatedRun {
    /// Time of each timed launch, milliseconds, as the events gave it, in launch order.
    pub samples_ms: Vec<f32>,
    /// The batches that the samples come from, in order.
    pub batches: Vec<BatchFacts>,
    /// Warm-up launches.
    pub warmup_launches: u32,
    /// Whether the warm-up ended because times were stable.
    pub warmup_stable: bool,
    /// Why no more launches were timed.
    pub stopped: Option<StopReason>,
    /// How the GPU was before the first and after the last timed launch.
    pub health: Option<[GpuHealth; 2]>,
    /// What the GPU is set to.
    pub settings: Option<GpuSettings>,
    /// Median time of a kernel that does nothing, measured the same way, milliseconds.
    pub empty_launch_ms: Option<f64>,
    /// Whether each timed launch got inputs that none before it saw.
    pub inputs_moved: bool,
    /// Number of sets of inputs that launches got in a random order, where there are several and no more.
    pub input_sets: Option<u32>,
    /// Where not all inputs moved: what became of the variables and constants of the kernel's modules
    /// before each timed launch.
    pub variables: Option<VariablesKept>,
    /// Timed launches whose outputs were verified.
    pub audits: AuditFacts,
    /// Timed launches that a process apart judged.
    pub sealed: SealedFacts,
    /// The load before timed launches, where that was asked for.
    pub load: Option<LoadFacts>,
    /// Launches that followed one another with what the kernel's modules keep, if they keep anything.
    pub lasting: Option<LastingFacts>,
    /// How a kernel that does not do the work could pass.
    pub weaknesses: Vec<Weakness>,
    /// Verdict of each checked output.
    pub checks: Vec<OutputCheck>,
    /// Every output buffer: name, blake3, and its file if kept.
    pub outputs: Vec<OutputSummary>,
    /// The emulator's report (findings), JSON.
    pub emulator_report: Option<serde_json::Value>,
    /// What the emulator counted in a launch of its own, apart from the timed ones.
    pub counts: Option<LaunchCounts>,
}

impl EvaluatedRun {
    /// Whether outputs were checked, and all are right.
    pub fn all_passed(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|check| check.comparison.passed)
    }
}

/// What was found out of two programs side by side.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PairedRun {
    /// Blocks, in order.
    pub blocks: Vec<PairedBlock>,
    /// Timed launches whose outputs were verified.
    pub audits: AuditFacts,
}

/// What hardware counters told of launches of their own.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CountedRun {
    /// `None`: it did not come so far.
    pub facts: Option<CounterFacts>,
}

/// What a worker tells of launches that a tool watched.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct TracedRun {
    /// Device memory that the buffers took, as the driver tells, bytes.
    pub memory_bytes: Option<u64>,
}

/// What monitoring told of launches of their own.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct MonitoredRun {
    /// `None`: it did not come so far.
    pub facts: Option<MonitorFacts>,
    /// What the GPU is set to.
    pub settings: Option<GpuSettings>,
}

/// What hardware counters told of one launch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterFacts {
    /// The library, with its version.
    pub tool: String,
    /// The chip, as the library names it.
    pub chip: String,
    /// NVIDIA's metrics in base units; finite.
    pub values: BTreeMap<String, f64>,
    /// NVIDIA's metrics without a value, and why.
    pub missing: BTreeMap<String, String>,
    /// Launches that it took.
    pub passes: u32,
    /// Where the time went.
    pub timings: CounterTimings,
    /// Why there are no values at all.
    pub unavailable: Option<Unavailable>,
}

/// Where the time went that counters took, milliseconds of wall clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterTimings {
    /// Opening the library and taking the counters: once for a worker.
    pub open_ms: f64,
    /// Planning: once for each set of metrics.
    pub plan_ms: f64,
    /// Setting the counters up.
    pub begin_ms: f64,
    /// The passes.
    pub passes_ms: f64,
    /// Part of them: restoring buffers, emptying L2.
    pub prepare_ms: f64,
    /// Reading the counters and evaluating the metrics.
    pub read_ms: f64,
}

/// Timed launches that were queued together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BatchFacts {
    /// How many.
    pub trials: u32,
    /// Clock of the multiprocessors over the batch, where it can be measured.
    pub clock: Option<ClockReading>,
    /// Why clocks were low at its end: NVML's bits.
    pub throttle_reasons: Option<u64>,
}

/// Timed launches whose outputs were verified.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AuditFacts {
    /// Verified.
    pub done: u32,
    /// Not verified, because the reference kernel takes long.
    pub skipped: u32,
}

/// Timed launches that were judged by a process in which the kernel never ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedFacts {
    /// Their places among the samples, ascending.
    pub launches: Vec<u32>,
    /// Launches that were handed over, those of a measurement that was made again too.
    pub turns: u32,
    /// Of them, those that were verified.
    pub verified: u32,
    /// Why there are none, though there were to be some.
    pub unavailable: Option<String>,
}

impl SealedFacts {
    /// None, for a reason.
    pub fn unavailable(reason: String) -> Self {
        Self { unavailable: Some(reason), ..Self::default() }
    }
}

/// Launches that put the device under the load of continuous use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadFacts {
    /// How many.
    pub launches: u64,
    /// Of them, those that were verified.
    pub verified: u32,
    /// Part of the wall time of all timed launches, verification included, that was load, 0–1.
    pub share: f64,
    /// Their median time, milliseconds: of the last before each timed launch.
    pub median_ms: Option<f64>,
}

/// Launches that followed one another with what the kernel's modules keep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastingFacts {
    /// How many; the last of them were verified.
    pub launches: u32,
    /// How many were wanted. Fewer are made where the time limit leaves no time for them.
    pub wanted: u32,
}

/// Why a job did not run to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFailure {
    /// Stable code: `illegal_address`, `launch_failed`, `out_of_memory`, `timeout`, `worker_died`, ….
    pub code: FailureCode,
    /// What happened, where, and what to do.
    pub message: String,
    /// Whether the candidate, the reference kernel, or the service is at fault.
    pub blame: Blame,
}

/// Who is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// The submitted kernel or its contract.
    Candidate,
    /// The contract's reference kernel.
    Reference,
    /// The machine it runs on.
    Environment,
}

/// Verdict on one output.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OutputCheck {
    /// Buffer index.
    pub buffer: usize,
    /// The comparison.
    pub comparison: Comparison,
}

/// One output buffer after the run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OutputSummary {
    /// Buffer index.
    pub buffer: usize,
    /// blake3 of the raw elements, hex.
    pub blake3: String,
    /// File of raw elements, if kept.
    pub file: Option<PathBuf>,
}
