//! What came of a job.

use std::collections::BTreeMap;
use std::path::PathBuf;

use poem_openapi::Object;
use serde::{Deserialize, Serialize};

use crate::device::{ClockReading, GpuHealth, GpuSettings};
use crate::measure::StopReason;
use crate::measure::paired::PairedBlock;
use crate::profile::Unavailable;
use crate::validate::{Comparison, Weakness};

/// How a job ended.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RunOutcome {
    /// What went wrong, if anything.
    pub failure: Option<RunFailure>,
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
    /// Whether, with the same inputs for all, the kernel's variables and shared memory were put
    /// back before each timed launch.
    pub state_wiped: bool,
    /// Timed launches whose outputs were verified.
    pub audits: AuditFacts,
    /// Blocks of a paired measurement, in order.
    pub paired_blocks: Vec<PairedBlock>,
    /// How a kernel that does not do the work could pass.
    pub weaknesses: Vec<Weakness>,
    /// Verdict of each checked output.
    pub checks: Vec<OutputCheck>,
    /// Every output buffer: name, blake3, and its file if kept.
    pub outputs: Vec<OutputSummary>,
    /// Where the time went, milliseconds of wall clock.
    pub timings: WorkerTimings,
    /// What the kernel printed, bounded; lossy UTF-8.
    pub printed: String,
    /// The emulator's report (findings), JSON.
    pub emulator_report: Option<serde_json::Value>,
    /// What the emulator counted in a launch of its own, apart from the timed ones.
    pub counts: Option<LaunchCounts>,
    /// What hardware counters told in launches of their own.
    pub counters: Option<CounterFacts>,
    /// What monitoring told of launches of their own.
    pub monitored: Option<MonitorFacts>,
    /// Device memory that the buffers of a traced job took, as the driver tells, bytes.
    pub memory_bytes: Option<u64>,
    /// Occupancy and resources as the driver reports them for the launched kernel.
    pub function: Option<FunctionFacts>,
}

impl RunOutcome {
    /// Whether outputs were checked, and all are right.
    pub fn all_passed(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|check| check.comparison.passed)
    }
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

/// What the emulator counted in one launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchCounts {
    /// Symbol of the kernel.
    pub kernel: String,
    /// Version of the emulator.
    pub version: String,
    /// Counts by the emulator's names.
    pub counts: BTreeMap<String, u64>,
}

/// Why a job did not run to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFailure {
    /// Stable code: `illegal_address`, `launch_failed`, `out_of_memory`, `timeout`, `worker_died`, ….
    pub code: String,
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

/// Where a worker's time went, milliseconds of wall clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerTimings {
    /// Loading modules.
    pub load_ms: f64,
    /// Allocating and filling buffers.
    pub h2d_ms: f64,
    /// Launches: warm-up, trials, flushes, verification runs.
    pub execute_ms: f64,
    /// Part of `execute_ms` between events around every batch. The device waits in it for the host
    /// where a launch must not begin before it is queued.
    pub device_busy_ms: f64,
    /// Copying outputs back and hashing them.
    pub d2h_ms: f64,
    /// Verifying: guard bands, inputs, reference kernels, comparisons.
    pub verify_ms: f64,
    /// Asking the management library how the GPU is.
    pub monitor_ms: f64,
    /// Scrubbing that the answer waited for: none, it happens after the answer was sent.
    pub scrub_ms: f64,
}

/// A function's facts as the driver reports them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct FunctionFacts {
    /// Registers per thread.
    pub registers: u32,
    /// Static shared memory, bytes.
    pub static_shared_bytes: u32,
    /// Local memory per thread, bytes.
    pub local_bytes: u32,
    /// Constant memory, bytes.
    pub const_bytes: u32,
    /// Largest block.
    pub max_threads_per_block: u32,
    /// Blocks of this launch that fit one multiprocessor.
    pub max_active_blocks: u32,
}

/// What the driver's monitoring told of a GPU on which a kernel ran again and again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MonitorFacts {
    /// The time in which the kernel ran.
    pub running: MonitorWindow,
    /// The time in which only that was done which must be done before each launch; `None`: nothing
    /// must be.
    pub restoring: Option<MonitorWindow>,
    /// From one launch to the next of a kernel that does nothing, seconds.
    pub empty_period_s: f64,
    /// Processes on the GPU that are not known to be this service's.
    pub other_processes: Option<u32>,
    /// Why there are no values at all.
    pub unavailable: Option<Unavailable>,
}

/// What a GPU did between two readings while the same was queued again and again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MonitorWindow {
    /// Percentages of the whole GPU, by the catalogue's names of the readings; finite.
    pub values: BTreeMap<String, f64>,
    /// Those without a value, and why.
    pub missing: BTreeMap<String, String>,
    /// Between the readings, seconds.
    pub window_s: f64,
    /// From one repetition to the next, seconds.
    pub period_s: f64,
    /// Repetitions that the time is the mean of.
    pub repetitions: u64,
}
