//! What a worker is to run.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::task::WorkerTask;
use warpgauge_contract::Role;
use warpgauge_model::{Image, TensorMap};
use warpgauge_tensor::{Dtype, TensorInit};

/// A program, and what is to be done with it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkerJob<T = WorkerTask> {
    /// Identifies the job in logs.
    pub id: String,
    /// Private directory of the job; outputs are written here.
    pub directory: PathBuf,
    /// What is run.
    pub program: KernelProgram,
    /// What is done with it.
    pub task: T,
}

impl<T> WorkerJob<T> {
    /// The same program for another task.
    pub fn with<U>(&self, task: U) -> WorkerJob<U> {
        let (id, directory) = (self.id.clone(), self.directory.clone());
        WorkerJob { id, directory, program: self.program.clone(), task }
    }
}

impl<T: Into<WorkerTask>> WorkerJob<T> {
    /// The job, whatever its task.
    pub fn any(self) -> WorkerJob {
        let Self { id, directory, program, task } = self;
        WorkerJob { id, directory, program, task: task.into() }
    }
}

/// Launches over named buffers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KernelProgram {
    /// Device buffers, in the order in which [`Argument::Buffer`] names them.
    pub buffers: Vec<BufferSpec>,
    /// What is launched on them.
    pub launches: Launches,
}

/// One launch or several, one after the other in the order of a stream.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Launches {
    /// The first; mostly the only one. What is told of "the kernel" is told of it.
    pub first: KernelLaunch,
    /// The others.
    pub rest: Vec<KernelLaunch>,
}

impl Launches {
    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &KernelLaunch> {
        std::iter::once(&self.first).chain(&self.rest)
    }
}

impl From<KernelLaunch> for Launches {
    fn from(first: KernelLaunch) -> Self {
        Self { first, rest: Vec::new() }
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
    Scalar(#[serde(with = "warpgauge_model::byte_string")] Vec<u8>),
    /// Pointer to memory of the launch's own, which is no buffer of the program: so many bytes.
    Scratch(u64),
    /// A tensor map by value: a buffer, by index, as the copy engine of compute capability 9.0 and later
    /// reads it.
    Map(usize, Box<TensorMap>),
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
    pub content: BufferContent,
}

/// Initial content of a buffer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum BufferContent {
    /// None is defined: the worker poisons it.
    Undefined,
    /// Generated on the device.
    Init(TensorInit),
    /// Raw elements in a file.
    File(PathBuf),
    /// Raw elements in memory of the device, which another process holds: a block of so many bytes that begins
    /// with them.
    Shared {
        /// Opens it: CUDA IPC.
        #[serde(with = "warpgauge_model::byte_string")]
        handle: Vec<u8>,
        /// Its size, bytes.
        bytes: u64,
    },
}
