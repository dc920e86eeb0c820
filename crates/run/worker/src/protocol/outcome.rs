//! The outcome of a job.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::steps::LineTimes;
use warpgauge_device::{ClockReading, GpuHealth, GpuSettings};
use warpgauge_model::{
    FailureCode, FunctionFacts, LaunchCounts, MonitorFacts, Unavailable, WorkerTimings,
};
use warpgauge_statistics::StopReason;
use warpgauge_statistics::paired::PairedBlock;
use warpgauge_validate::{Comparison, Weakness};

/// Outcome of a job: the facts that all tasks report, and the task's own result.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RunOutcome<T = TaskOutcome> {
    /// The error, if the job failed.
    pub failure: Option<RunFailure>,
    /// Time per stage, milliseconds of wall clock.
    pub timings: WorkerTimings,
    /// Text that the kernel printed, bounded; lossy UTF-8.
    pub printed: String,
    /// Occupancy and resources, as the driver reports them for the first kernel.
    pub function: Option<FunctionFacts>,
    /// Result of the task. After a failure, it contains the results up to the failure.
    pub told: T,
}

impl<T> RunOutcome<T> {
    /// Returns the outcome with its result converted by a function.
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

/// Result of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum TaskOutcome {
    /// Result of launching and verifying a program.
    Evaluated(Box<EvaluatedRun>),
    /// Result of timing two programs side by side.
    Paired(PairedRun),
    /// Result of reading hardware counters.
    Counted(CountedRun),
    /// Result of launches under a tool.
    Traced(TracedRun),
    /// Result of launches that the driver monitored.
    Monitored(MonitoredRun),
    /// The task has no result of its launches, because their judge reports it.
    Served,
}

/// Treatment of the variables and constants of a kernel's modules before each timed launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum VariablesKept {
    /// The worker restored the content that the variables had after loading.
    PutBack,
    /// The worker restored nothing, because it does not know all variables; the text gives the
    /// reason.
    NotKnown(String),
}

/// Result of an evaluation.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EvaluatedRun {
    /// Time of each timed launch in launch order, milliseconds, measured with events.
    pub samples_ms: Vec<f32>,
    /// The batches that the samples come from, in order.
    pub batches: Vec<BatchFacts>,
    /// Number of warm-up launches.
    pub warmup_launches: u32,
    /// Whether the warm-up ended because times were stable.
    pub warmup_stable: bool,
    /// Reason why timing stopped.
    pub stopped: Option<StopReason>,
    /// State of the GPU before the first and after the last timed launch.
    pub health: Option<[GpuHealth; 2]>,
    /// Settings of the GPU.
    pub settings: Option<GpuSettings>,
    /// Median time of an empty kernel, measured in the same way as the samples, milliseconds.
    pub empty_launch_ms: Option<f64>,
    /// Whether each timed launch got inputs that no earlier launch had.
    pub inputs_moved: bool,
    /// Number of sets of inputs, of which each launch gets one at random. Set only if inputs are
    /// neither new for each launch nor the same in all.
    pub input_sets: Option<u32>,
    /// Treatment of the variables and constants of the kernel's modules before each timed launch.
    /// Set only if some inputs did not vary.
    pub variables: Option<VariablesKept>,
    /// Counts of timed launches whose outputs were verified.
    pub audits: AuditFacts,
    /// Timed launches that were judged by a separate process.
    pub sealed: SealedFacts,
    /// The load before timed launches, if the plan requests it.
    pub load: Option<LoadFacts>,
    /// Times of each line of a list of steps.
    pub lines: Vec<LineTimes>,
    /// Launches between which module state was not restored, if the kernel's modules keep any
    /// state.
    pub lasting: Option<LastingFacts>,
    /// Ways in which a kernel that does not do the work could pass.
    pub weaknesses: Vec<Weakness>,
    /// Result of the comparison of each checked output.
    pub checks: Vec<OutputCheck>,
    /// Every output buffer: index, BLAKE3 hash, and file if its content is stored.
    pub outputs: Vec<OutputSummary>,
    /// The emulator's report (findings), JSON.
    pub emulator_report: Option<serde_json::Value>,
    /// The emulator's counts of a separate, untimed launch.
    pub counts: Option<LaunchCounts>,
}

impl EvaluatedRun {
    /// Returns whether outputs were checked and all are correct.
    pub fn all_passed(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|check| check.comparison.passed)
    }
}

/// Result of timing two programs side by side.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PairedRun {
    /// Blocks of paired launches, in order.
    pub blocks: Vec<PairedBlock>,
    /// Counts of timed launches whose outputs were verified.
    pub audits: AuditFacts,
}

/// Result of reading hardware counters over separate launches.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CountedRun {
    /// `None` if the task failed before it read the counters.
    pub facts: Option<CounterFacts>,
}

/// Result of launches that a tool watched.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct TracedRun {
    /// Device memory that the buffers take according to the driver, bytes.
    pub memory_bytes: Option<u64>,
}

/// Result of monitoring separate launches.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct MonitoredRun {
    /// `None` if the task failed before the monitoring ended.
    pub facts: Option<MonitorFacts>,
    /// Settings of the GPU.
    pub settings: Option<GpuSettings>,
}

/// Hardware counters of one launch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterFacts {
    /// Name and version of the library that read the counters.
    pub tool: String,
    /// Name of the chip according to the library.
    pub chip: String,
    /// Values of NVIDIA's metrics in base units; finite.
    pub values: BTreeMap<String, f64>,
    /// Metrics without a value, by NVIDIA's name, each with the reason.
    pub missing: BTreeMap<String, String>,
    /// Number of passes, each of which is a launch.
    pub passes: u32,
    pub timings: CounterTimings,
    /// Why no counters could be read.
    pub unavailable: Option<Unavailable>,
}

/// Time that reading counters took, milliseconds of wall clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterTimings {
    /// Time to open the library and reserve the counters; needed once per worker.
    pub open_ms: f64,
    /// Time to plan the passes; needed once per set of metrics.
    pub plan_ms: f64,
    /// Time to set the counters up.
    pub begin_ms: f64,
    /// Time to run the passes.
    pub passes_ms: f64,
    /// Part of `passes_ms`: time to restore buffers and empty L2.
    pub prepare_ms: f64,
    /// Time to read the counters and evaluate the metrics.
    pub read_ms: f64,
}

/// Timed launches that were queued together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BatchFacts {
    /// Number of launches in the batch.
    pub trials: u32,
    /// Clock of the multiprocessors during the batch, if it can be measured.
    pub clock: Option<ClockReading>,
    /// NVML's bit mask of the reasons for reduced clocks at the end of the batch.
    pub throttle_reasons: Option<u64>,
}

/// Counts of timed launches whose outputs were verified.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AuditFacts {
    /// Number of launches verified.
    pub done: u32,
    /// Number of launches not verified, because verification takes too long.
    pub skipped: u32,
}

/// Timed launches that were judged by a process in which the kernel never ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedFacts {
    /// Indices of the judged launches in the samples, ascending.
    pub launches: Vec<u32>,
    /// Number of launches handed over to the judge, including those of measurements that were
    /// repeated.
    pub turns: u32,
    /// Number of the handed-over launches that the judge verified.
    pub verified: u32,
    /// Why there are no sealed launches although the plan requests some.
    pub unavailable: Option<String>,
}

impl SealedFacts {
    /// Returns facts without launches, with the reason.
    pub fn unavailable(reason: String) -> Self {
        Self { unavailable: Some(reason), ..Self::default() }
    }
}

/// Launches that put the device under the load of continuous use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadFacts {
    pub launches: u64,
    /// Number of load launches that were verified.
    pub verified: u32,
    /// Fraction (0–1) of the wall time of all timed launches, verification included, in which the
    /// device was under load. The timed launches count as load.
    pub share: f64,
    /// Median time of the last launch of each stretch of load, milliseconds.
    pub median_ms: Option<f64>,
}

/// Consecutive launches between which the state of the kernel's modules was not restored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastingFacts {
    /// Number of launches made; the last ones were verified.
    pub launches: u32,
    /// Number of launches planned. The worker makes fewer if the time limit leaves too little time.
    pub wanted: u32,
}

/// Reason why a job did not complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFailure {
    /// Stable code, such as `illegal_address`, `out_of_memory`, `timeout` or `worker_died`.
    pub code: FailureCode,
    /// The problem, its location, and a remedy.
    pub message: String,
    /// Who is at fault: the candidate, the reference kernel, or the service.
    pub blame: Blame,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// The submitted kernel or its contract.
    Candidate,
    /// The contract's reference kernel.
    Reference,
    /// The machine that runs the kernel.
    Environment,
}

/// Comparison of one output with its expectation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OutputCheck {
    /// Index of the buffer.
    pub buffer: usize,
    /// Result of the comparison.
    pub comparison: Comparison,
}

/// An output buffer after the run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OutputSummary {
    /// Index of the buffer.
    pub buffer: usize,
    /// blake3 hash of the raw elements, hex.
    pub blake3: String,
    /// File of raw elements, if the content is stored.
    pub file: Option<PathBuf>,
}
