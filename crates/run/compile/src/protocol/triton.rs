//! Answers of an interpreter with Triton. The interpreter ran submitted code, so an answer is only
//! accepted if it matches the PTX that it contains.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::artifact::Constant;
use crate::tunable::Tunable;
use warpgauge_model::FailureCode;

/// An interpreter's answer to a request to compile a kernel.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TritonAnswer {
    /// A compiled kernel: PTX, and machine code if requested.
    Built(Box<TritonBuilt>),
    /// Nothing is compiled yet: the kernel has several configurations.
    Tunable(Tunable),
    /// The source, the arguments or an option caused the failure.
    Refused(TritonRefused),
}

/// The result of compiling a kernel with Triton.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TritonBuilt {
    /// Name of the kernel in the source.
    pub kernel: String,
    /// Texts by language: `ttir`, `ttgir`, `llir`, `ptx`.
    pub texts: BTreeMap<String, String>,
    /// Parameters of the function that exist at run time, in order.
    pub parameters: Vec<TritonParameter>,
    /// Values of compile-time constants, by name.
    pub constants: BTreeMap<String, Constant>,
    /// The compiler's facts about the launch.
    pub metadata: TritonMetadata,
    /// Statements of the module that failed, so that the module ran without them.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// Machine code, if it was assembled.
    #[serde(default, with = "warpgauge_model::byte_string")]
    pub cubin: Vec<u8>,
    /// Output of the assembler.
    #[serde(default)]
    pub log: String,
    /// Time that the interpreter and the assembler took, milliseconds.
    #[serde(default)]
    pub compiler_ms: f64,
}

/// A statement of the module that failed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LeftOut {
    pub line: u32,
    pub message: String,
}

/// A parameter of the Triton function.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TritonParameter {
    /// Name of the parameter in the source.
    pub name: String,
    /// Type in Triton's notation: `*fp32`, `i32`, `tensordesc<fp16[64, 64]>`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Index of the contract's argument that the parameter receives.
    #[serde(default)]
    pub argument: Option<usize>,
    /// Value that the parameter receives instead of an argument.
    #[serde(default)]
    pub value: Option<Constant>,
    /// Description of the tensor descriptor. `None` for other parameters.
    #[serde(default)]
    pub descriptor: Option<Descriptor>,
}

/// Shape, strides and element type of a tensor descriptor. It does not contain the tensor's
/// address.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Descriptor {
    /// Type of an element in Triton's notation.
    pub dtype: String,
    /// Extents of the tensor.
    pub shape: Vec<i64>,
    /// Distance between adjacent elements in each dimension, in elements.
    pub strides: Vec<i64>,
    /// Whether reads beyond the extents give NaN instead of zero.
    #[serde(default)]
    pub nan: bool,
    /// Whether elements of type `float` are rounded to tf32 when they are read.
    #[serde(default)]
    pub tf32: bool,
}

/// How the Tensor Memory Accelerator reads a tensor, as the compiler decided.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DescriptorMeta {
    /// Swizzle pattern in shared memory, as a number of `CUtensorMapSwizzle`.
    pub swizzle: u32,
    /// Size of an element, bytes.
    pub elem_size: u64,
    /// Element type, as the number that instructions use.
    pub elem_type: u32,
    /// Extents of the block that one instruction copies.
    pub block_size: Vec<u32>,
    /// Whether elements are padded pairs of 4-bit numbers.
    #[serde(default)]
    pub fp4_padded: bool,
    /// Whether the tensor is read in convolution mode (im2col).
    #[serde(default)]
    pub is_im2col: bool,
}

/// Metadata that Triton's compiler stores with the code. Fields that a version of Triton lacks have
/// default values.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TritonMetadata {
    pub name: String,
    /// Shared memory of a block, bytes.
    pub shared: u32,
    /// Number of warps per block.
    pub num_warps: u32,
    #[serde(default = "one")]
    pub num_ctas: u32,
    #[serde(default)]
    pub launch_cooperative_grid: bool,
    #[serde(default)]
    pub global_scratch_size: u64,
    #[serde(default = "one_64")]
    pub global_scratch_align: u64,
    #[serde(default)]
    pub profile_scratch_size: u64,
    /// Number of stages of software pipelines.
    #[serde(default)]
    pub num_stages: Option<u32>,
    /// Maximum number of registers per thread, if the caller or a configuration sets one.
    #[serde(default)]
    pub maxnreg: Option<u32>,
    #[serde(default = "yes")]
    pub enable_fp_fusion: bool,
    /// For each descriptor, how the Tensor Memory Accelerator reads it. An entry is `None` if it
    /// does not read the descriptor.
    #[serde(default)]
    pub tensordesc_meta: Option<Vec<Option<DescriptorMeta>>>,
}

fn one() -> u32 {
    1
}

fn one_64() -> u64 {
    1
}

fn yes() -> bool {
    true
}

/// Reason why the interpreter compiled nothing.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TritonRefused {
    pub code: FailureCode,
    pub message: String,
    #[serde(default)]
    pub line: Option<u32>,
    #[serde(default)]
    pub column: Option<u32>,
    #[serde(default)]
    pub log: String,
}
