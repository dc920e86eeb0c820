//! A worker's job: a program and a task.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::steps::StepProgram;
use super::task::WorkerTask;
use warpgauge_contract::Role;
use warpgauge_model::{Image, TensorMap, TextureLayout};
use warpgauge_tensor::{Dtype, TensorInit};

/// A program and the task to perform on it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkerJob<T = WorkerTask> {
    /// Name of the job in logs.
    pub id: String,
    /// Private directory of the job, to which outputs are written.
    pub directory: PathBuf,
    pub program: KernelProgram,
    pub task: T,
}

impl<T> WorkerJob<T> {
    /// Returns the same job with another task.
    pub fn with<U>(&self, task: U) -> WorkerJob<U> {
        let (id, directory) = (self.id.clone(), self.directory.clone());
        WorkerJob { id, directory, program: self.program.clone(), task }
    }
}

impl<T: Into<WorkerTask>> WorkerJob<T> {
    /// Returns the job with its task as a [`WorkerTask`].
    pub fn any(self) -> WorkerJob {
        let Self { id, directory, program, task } = self;
        WorkerJob { id, directory, program, task: task.into() }
    }
}

/// A program: kernel launches, and the named buffers that they use.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KernelProgram {
    /// Device buffers, in the order in which [`Argument::Buffer`] names them.
    pub buffers: Vec<BufferSpec>,
    /// Launches that use the buffers.
    pub launches: Launches,
}

/// One or more launches, in stream order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Launches {
    /// The first launch, which is usually the only one. Facts about "the kernel" are about this
    /// launch.
    pub first: KernelLaunch,
    pub rest: Vec<KernelLaunch>,
    /// Steps that are run instead of these launches, if the program is a list of steps.
    pub program: Option<Box<StepProgram>>,
}

impl Launches {
    /// Returns all launches in order.
    pub fn iter(&self) -> impl Iterator<Item = &KernelLaunch> {
        std::iter::once(&self.first).chain(&self.rest)
    }
}

impl From<KernelLaunch> for Launches {
    fn from(first: KernelLaunch) -> Self {
        Self { first, rest: Vec::new(), program: None }
    }
}

/// A kernel with everything that a launch needs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KernelLaunch {
    /// Module that contains the kernel.
    pub image: Image,
    /// Symbol of the kernel.
    pub symbol: String,
    /// Arguments in parameter order.
    pub arguments: Vec<Argument>,
    /// Number of blocks, in each dimension.
    pub grid: [u32; 3],
    /// Threads per block, in each dimension.
    pub block: [u32; 3],
    /// Dynamic shared memory per block, bytes.
    pub shared_bytes: u32,
    /// Blocks per cluster, in each dimension.
    pub cluster: Option<[u32; 3]>,
    /// Whether the launch is cooperative.
    pub cooperative: bool,
}

/// One kernel argument.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Argument {
    /// Pointer to a buffer, by index.
    Buffer(usize),
    /// Bytes of a scalar, already in the parameter's C type.
    Scalar(#[serde(with = "warpgauge_model::byte_string")] Vec<u8>),
    /// Pointer into a buffer: its index, and the offset in bytes.
    Inside(usize, u64),
    /// Pointer into the scratch memory of a list of steps: its index, and the offset in bytes.
    Workspace(usize, u64),
    /// Pointer to scratch memory of this size in bytes. The memory is not a buffer of the program.
    Scratch(u64),
    /// A structure, passed by value: its bytes, and the pointers in it with their offsets.
    Structure(#[serde(with = "warpgauge_model::byte_string")] Vec<u8>, Vec<(u32, Argument)>),
    /// A tensor map, passed by value: the index of a buffer, and the layout with which the Tensor
    /// Memory Accelerator (compute capability 9.0 and later) reads it.
    Map(usize, Box<TensorMap>),
    /// A texture object that reads the memory of a buffer: the buffer's index, and the layout.
    Texture(usize, Box<TextureLayout>),
    /// A texture or surface object that accesses a CUDA array, by its index in the list of steps.
    Object(usize),
    /// Pointer to an array of pointers, by its index in the list of steps.
    PointerArray(usize),
}

/// Description of a device buffer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BufferSpec {
    /// Name of the kernel's argument.
    pub name: String,
    /// Element type of the contract.
    pub element: Dtype,
    /// Type of the numbers that are filled, perturbed and compared. For complex elements, the type
    /// of a part.
    pub dtype: Dtype,
    /// Shape of the numbers, C order. The shape of a complex tensor ends with a dimension of 2.
    pub shape: Vec<u64>,
    /// Whether the kernel reads the buffer, writes it, or both.
    pub role: Role,
    /// Initial content of the buffer.
    pub content: BufferContent,
}

impl BufferSpec {
    /// Returns the element type and the shape of the contract.
    pub fn tensor(&self) -> (Dtype, &[u64]) {
        let of_parts = usize::from(self.element.is_complex());
        (self.element, &self.shape[..self.shape.len().saturating_sub(of_parts)])
    }
}

/// Initial content of a buffer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum BufferContent {
    /// No content is defined, so the worker poisons the buffer.
    Undefined,
    /// Content that the worker generates, on the device or on the CPU.
    Init(Box<TensorInit>),
    /// Content of a file of raw elements.
    File(PathBuf),
    /// Raw elements in device memory that another process holds. They are at the beginning of the
    /// block.
    Shared {
        /// CUDA IPC handle of the block.
        #[serde(with = "warpgauge_model::byte_string")]
        handle: Vec<u8>,
        /// Size of the block, bytes.
        bytes: u64,
    },
}
