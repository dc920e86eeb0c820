//! Messages between the server and a device worker.
//!
//! Frames are length-bounded MessagePack over a Unix socket that the worker inherits as its standard
//! input; its standard output belongs to the kernels (`printf`). Tensor content travels in files of
//! the job's private directory, never in frames.

use std::collections::BTreeMap;
use std::path::PathBuf;

use poem_openapi::{Enum, Object};
use serde::{Deserialize, Serialize};

use crate::compile::{ImageFormat, Target};
use crate::contract::{CacheState, Role, TensorInit};
use crate::device::{ClockReading, GpuHealth, GpuSettings};
use crate::measure::paired::{ComparePolicy, PairedBlock};
use crate::measure::{StopReason, StopRule};
use crate::profile::Unavailable;
use crate::tensor::Dtype;
use crate::validate::{Comparison, ResolvedTolerance, Weakness};

/// Version of this protocol; both sides must have the same.
pub const PROTOCOL_VERSION: u32 = 4;

/// Largest frame, in bytes. Machine code is the largest thing that travels in one.
pub const MAX_FRAME_BYTES: usize = 64 << 20;

/// From the server to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToWorker {
    /// First frame.
    Hello {
        /// The server's [`PROTOCOL_VERSION`].
        protocol: u32,
    },
    /// Gives the worker its own kernels (seeded initialisation, scrubbing), compiled for its device.
    Support(Image),
    /// Run one job.
    Run(Box<Job>),
    /// Give hardware counters back, for whoever else wants to read them. Answered with `Idle`.
    Release,
    /// Finish.
    Exit,
}

/// From a worker to the server.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromWorker {
    /// Answer to `Hello`: context created, device known.
    Ready {
        /// The worker's [`PROTOCOL_VERSION`].
        protocol: u32,
        /// The device it holds.
        device: DeviceInfo,
    },
    /// Answer to `Support` and `Release`: waiting for jobs.
    Idle,
    /// The job's deadline starts now.
    Started,
    /// Stage reached and trials done.
    Progress {
        /// Timed trials finished.
        trials: u32,
        /// What they say so far, where times are taken.
        times: Option<TimesSoFar>,
    },
    /// The candidate's launches have ended; what follows is verification.
    Executed,
    /// The job ended, well or not. The worker scrubs the device now and then sends `Scrubbed`.
    Done(Box<RunOutcome>),
    /// The device holds nothing of the job any more, as far as could be shown.
    Scrubbed {
        /// How long it took, milliseconds of wall clock.
        scrub_ms: f64,
        /// Why the worker must not take another job: something could not be shown to be gone.
        retire: Option<String>,
    },
    /// The job ended and the context is lost: the worker exits after this frame.
    Lost(Box<RunOutcome>),
    /// The worker could not start.
    Unable {
        /// Why, and what to do.
        reason: String,
    },
}

/// Times of the trials so far.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TimesSoFar {
    /// Median, milliseconds.
    pub median_ms: f64,
    /// Its 95 % confidence interval, milliseconds.
    pub ci_ms: (f64, f64),
}

/// A device as the driver describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// CUDA ordinal.
    pub ordinal: u32,
    /// `cuda` or `emulator`.
    pub kind: DeviceKind,
    /// Product name.
    pub name: String,
    /// UUID, `GPU-…`.
    pub uuid: String,
    /// What to compile for.
    pub target: Target,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Device memory, bytes.
    pub memory_bytes: u64,
    /// L2 cache, bytes.
    pub l2_bytes: u64,
    /// Peak SM clock, kHz.
    pub clock_khz: u32,
    /// Peak memory clock, kHz.
    pub memory_clock_khz: u32,
    /// Memory bus width, bits.
    pub memory_bus_bits: u32,
    /// Shared memory one block may opt in to, bytes.
    pub max_shared_optin_bytes: u32,
    /// PCI address, `0000:1b:00.0`.
    pub pci_bus_id: String,
    /// What one multiprocessor holds at once.
    pub sm: SmLimits,
}

/// What one multiprocessor holds at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmLimits {
    /// Threads.
    pub threads: u32,
    /// Blocks; 0 if the driver does not say.
    pub blocks: u32,
    /// 32-bit registers.
    pub registers: u32,
    /// Shared memory, bytes.
    pub shared_bytes: u32,
    /// Shared memory that each block occupies beyond its own, bytes.
    pub reserved_shared_bytes: u32,
}

/// Where a kernel runs. Times of different kinds are never compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(Enum)]
#[oai(rename_all = "lowercase")]
pub enum DeviceKind {
    /// A GPU through NVIDIA's driver.
    Cuda,
    /// The CPU, executing PTX.
    Emulator,
}

/// A loadable image.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Image {
    /// The bytes.
    #[serde(with = "crate::byte_string")]
    pub bytes: Vec<u8>,
    /// Their format.
    pub format: ImageFormat,
}

/// One kernel, its arguments, and what to do with it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// Identifies the job in logs.
    pub id: String,
    /// Private directory of the job; outputs are written here.
    pub directory: PathBuf,
    /// The kernel to run.
    pub launch: KernelLaunch,
    /// Device buffers, in the order in which [`Argument::Buffer`] names them.
    pub buffers: Vec<BufferSpec>,
    /// Kernels that compute expected outputs, each with the outputs it is asked for.
    pub references: Vec<ReferenceRun>,
    /// Expected content given as data: buffer index, file of raw elements.
    pub expected_files: Vec<(usize, PathBuf)>,
    /// Tolerance of each buffer that is checked, by buffer index.
    pub tolerances: Vec<(usize, ResolvedTolerance)>,
    /// Buffers whose content is written to `directory` as raw elements.
    pub keep_outputs: Vec<usize>,
    /// Timing plan; `None`: run once, do not time.
    pub trials: Option<TrialPlan>,
    /// Whether findings of the emulator's memory checks are wanted.
    pub sanitize: bool,
    /// Whether to look for what would pass without doing the work.
    pub lint: bool,
    /// In place of all else: time `launch` and a rival side by side.
    pub paired: Option<PairedPlan>,
    /// Whether the emulator's counts of one more launch are wanted.
    pub profile: bool,
    /// In place of all else: launch for a tool that watches this process. Nothing is timed or
    /// verified.
    pub traced: Option<TracePlan>,
    /// In place of all else: read hardware counters of the launch.
    pub counters: Option<CounterPlan>,
}

/// Hardware counters to read, by a worker that is for that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterPlan {
    /// NVIDIA's metrics.
    pub metrics: Vec<String>,
    /// State of L2 at each launch.
    pub cache: CacheState,
    /// Launches that it may take.
    pub max_passes: u32,
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

/// Launches for a tool round the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracePlan {
    /// What the tool is to see.
    pub view: TraceView,
    /// State of L2 at each launch, as far as this process sets it.
    pub cache: CacheState,
}

/// What a tool round a worker is to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TraceView {
    /// Hardware counters: after one launch that it does not see, one launch and nothing else.
    Counters,
    /// The timeline: so many launches, what each needs before it, and the copies of the outputs.
    Timeline {
        /// How many.
        launches: u32,
    },
    /// Every access: one launch on buffers with nothing round them, of which only the defined
    /// content is written, and none is read.
    Checks,
}

impl Job {
    /// The job's launch and its buffers, without anything that is measured, verified or kept.
    pub fn alone(&self) -> Self {
        Self {
            id: self.id.clone(),
            directory: self.directory.clone(),
            launch: self.launch.clone(),
            buffers: self.buffers.clone(),
            references: Vec::new(),
            expected_files: Vec::new(),
            tolerances: Vec::new(),
            keep_outputs: Vec::new(),
            trials: None,
            sanitize: false,
            lint: false,
            paired: None,
            profile: false,
            traced: None,
            counters: None,
        }
    }

    /// Tolerance of a buffer, if it is checked.
    pub fn tolerance(&self, buffer: usize) -> Option<&ResolvedTolerance> {
        self.tolerances.iter().find(|(index, _)| *index == buffer).map(|(_, tolerance)| tolerance)
    }
}

/// A kernel with everything needed to launch it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KernelLaunch {
    /// Module that holds it.
    pub image: Image,
    /// Symbol of the kernel.
    pub symbol: String,
    /// Arguments in parameter order.
    pub arguments: Vec<Argument>,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads per block.
    pub block: [u32; 3],
    /// Dynamic shared memory per block, bytes.
    pub shared_bytes: u32,
    /// Blocks per cluster.
    pub cluster: Option<[u32; 3]>,
    /// Cooperative launch.
    pub cooperative: bool,
}

/// One kernel argument.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Argument {
    /// Pointer to a buffer, by index.
    Buffer(usize),
    /// The bytes of a scalar, already in the parameter's C type.
    Scalar(#[serde(with = "crate::byte_string")] Vec<u8>),
}

/// A reference kernel and the outputs it defines.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReferenceRun {
    /// The kernel.
    pub launch: KernelLaunch,
    /// Indices of the buffers whose expected content it computes.
    pub outputs: Vec<usize>,
}

/// One device buffer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BufferSpec {
    /// Argument name.
    pub name: String,
    /// Element type.
    pub dtype: Dtype,
    /// Shape, C order.
    pub shape: Vec<u64>,
    /// Direction.
    pub role: Role,
    /// Initial content.
    pub content: Content,
}

/// Initial content of a buffer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Content {
    /// None is defined: the worker poisons it.
    Undefined,
    /// Generated on the device.
    Init(TensorInit),
    /// Raw elements in a file.
    File(PathBuf),
}

/// How often to launch and time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialPlan {
    /// When there are enough timed launches.
    pub stop: StopRule,
    /// Shortest warm-up, seconds.
    pub min_warmup_s: f64,
    /// State of L2 at each launch.
    pub cache: CacheState,
    /// Whether each launch gets random inputs that none before it saw, where the contract has
    /// random inputs and its expectation can be computed for them.
    pub fresh_inputs: bool,
    /// Timed launches whose outputs are verified, about.
    pub audits: u32,
}

/// How to time two kernels side by side.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PairedPlan {
    /// The candidate; the job's `launch` is the reference.
    pub rival: KernelLaunch,
    /// When there are enough blocks.
    pub policy: ComparePolicy,
    /// Timed launches in each of a block's four slots.
    pub trials_per_slot: u32,
    /// Time for all blocks, seconds; then what there is decides.
    pub max_time_s: f64,
    /// State of L2 at each launch.
    pub cache: CacheState,
    /// Whether launches get random inputs that none before them saw.
    pub fresh_inputs: bool,
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
