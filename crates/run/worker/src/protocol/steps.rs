//! Programs of several launches, with all loops unrolled.

use serde::{Deserialize, Serialize};

use super::job::{Argument, KernelLaunch};
use warpgauge_model::{Image, TexelGrid, TextureLayout};

/// Steps that are run in place of one launch. All kernels are in the image of the program's first
/// launch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StepProgram {
    /// Symbols of the kernels that steps launch.
    pub symbols: Vec<String>,
    /// Sizes of the scratch memory that steps share, bytes.
    pub workspaces: Vec<u64>,
    /// Arrays of pointers in device memory that kernels receive. Each entry is the target of a
    /// pointer, or `None` for a null pointer.
    pub pointer_arrays: Vec<Vec<Option<Pointee>>>,
    /// CUDA arrays that hold buffers or scratch memory during a run.
    pub arrays: Vec<ArraySpec>,
    /// Texture and surface objects that access the arrays.
    pub objects: Vec<ArrayObject>,
    /// Variables of the image that hold buffers.
    pub globals: Vec<GlobalVariable>,
    /// Steps that fill the scratch memory before the timed launches. The resulting content is the
    /// scratch memory's content before each run.
    pub setup: Vec<Step>,
    /// Steps of one run.
    pub steps: Vec<Step>,
    /// Number of lines of the list that the steps come from.
    pub lines: usize,
}

/// A CUDA array that holds a buffer or scratch memory during a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ArraySpec {
    pub memory: Memory,
    pub grid: TexelGrid,
    /// Whether the array's content is copied to the memory after a run.
    pub is_written: bool,
}

/// The object through which a kernel accesses an array.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ArrayObject {
    /// Index of the CUDA array.
    pub array: usize,
    /// Layout with which a texture object reads the array; `None` for a surface object.
    pub texture: Option<TextureLayout>,
}

/// A variable of the image that holds a buffer during a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GlobalVariable {
    pub symbol: String,
    /// Index of the buffer.
    pub buffer: usize,
    /// Size of the buffer and of the variable, bytes.
    pub bytes: u64,
    /// Whether the variable's content is copied to the buffer after a run.
    pub is_written: bool,
}

/// One step of a program without loops.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Step {
    /// Launches one of the kernels.
    Launch(StepLaunch),
    /// Sets every byte of a piece of memory.
    Fill { line: usize, at: Piece, value: u8 },
    /// Copies memory to other memory of the same size.
    Copy { line: usize, from: Piece, to: Piece },
    /// Ends a pass of a loop. Continues at step `end` if all bytes of the flag are 0, and otherwise
    /// with the next step.
    Pass {
        flag: Piece,
        end: usize,
        /// Whether this is the last allowed pass, so that a flag that is still set is an error.
        is_last: bool,
    },
}

/// Launch of a kernel, as one step of a program.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StepLaunch {
    /// Index of the line of the list that the launch comes from.
    pub line: usize,
    /// Index of the kernel's symbol in the program.
    pub kernel: usize,
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

impl StepLaunch {
    /// Returns the launch with the kernel `symbol` of `image`.
    pub fn whole(&self, image: Image, symbol: &str) -> KernelLaunch {
        KernelLaunch {
            image,
            symbol: symbol.to_owned(),
            arguments: self.arguments.clone(),
            grid: self.grid,
            block: self.block,
            shared_bytes: self.shared_bytes,
            cluster: self.cluster,
            cooperative: self.cooperative,
        }
    }
}

/// The whole of a buffer or of scratch memory.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Piece {
    pub memory: Memory,
    /// Size of the buffer or of the scratch memory, bytes.
    pub bytes: u64,
}

/// Target of a pointer in an array of pointers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pointee {
    pub memory: Memory,
    /// Offset in the memory, bytes.
    pub offset: u64,
}

/// Memory that steps use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Memory {
    /// A buffer of the program, by index.
    Buffer(usize),
    /// Scratch memory, by index among the workspaces.
    Workspace(usize),
}

/// Times of one line of a list of steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LineTimes {
    /// Number of times that the line runs in one run of the program.
    pub count: u32,
    /// Median time of one execution, milliseconds.
    pub median_ms: f64,
    /// Total time of the line in one run, milliseconds.
    pub total_ms: f64,
}
