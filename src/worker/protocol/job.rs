//! What a worker is to do.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::compile::ImageFormat;
use crate::contract::{CacheState, Role, TensorInit};
use crate::measure::StopRule;
use crate::measure::paired::ComparePolicy;
use crate::tensor::Dtype;
use crate::validate::ResolvedTolerance;

/// A loadable image.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Image {
    /// The bytes; shared, since they are the bulk of a job.
    #[serde(with = "crate::byte_string")]
    pub bytes: Arc<[u8]>,
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
    /// In place of all else: launch again and again while the driver monitors the GPU.
    pub monitored: Option<MonitorPlan>,
}

/// How long to monitor a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonitorPlan {
    /// Shortest time between two readings, milliseconds.
    pub window_ms: u32,
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
    /// One launch of a kernel, of which nothing is measured, verified or kept.
    pub fn new(
        id: String,
        directory: PathBuf,
        launch: KernelLaunch,
        buffers: Vec<BufferSpec>,
    ) -> Self {
        Self {
            id,
            directory,
            launch,
            buffers,
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
            monitored: None,
        }
    }

    /// The job's launch and its buffers, without anything that is measured, verified or kept.
    pub fn alone(&self) -> Self {
        let (launch, buffers) = (self.launch.clone(), self.buffers.clone());
        Self::new(self.id.clone(), self.directory.clone(), launch, buffers)
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
