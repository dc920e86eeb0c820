//! What an interpreter with Triton answers. It ran a stranger's code, so nothing of it is believed that
//! is not checked against the PTX that came with it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::artifact::Constant;
use crate::tunable::Tunable;
use warpgauge_model::FailureCode;

/// One of these.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TritonAnswer {
    /// PTX, and machine code where it was wanted.
    Built(Box<TritonBuilt>),
    /// Nothing yet: there is a choice.
    Tunable(Tunable),
    /// The source, the arguments or an option are at fault.
    Refused(TritonRefused),
}

/// What was compiled.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TritonBuilt {
    /// The kernel's name in the source.
    pub kernel: String,
    /// By language: `ttir`, `ttgir`, `llir`, `ptx`.
    pub texts: BTreeMap<String, String>,
    /// Parameters of the function that are there at run time, in order.
    pub parameters: Vec<TritonParameter>,
    /// Compile-time constants by name.
    pub constants: BTreeMap<String, Constant>,
    /// What the compiler says of the launch.
    pub metadata: TritonMetadata,
    /// Machine code, if it was assembled.
    #[serde(default, with = "warpgauge_model::byte_string")]
    pub cubin: Vec<u8>,
    /// What the assembler said.
    #[serde(default)]
    pub log: String,
    /// Time of interpreter and assembler, milliseconds.
    #[serde(default)]
    pub compiler_ms: f64,
}

/// A parameter of the function.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TritonParameter {
    /// Its name there.
    pub name: String,
    /// Its type in Triton's words: `*fp32`, `i32`, `tensordesc<fp16[64, 64]>`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The argument of the contract that it gets.
    #[serde(default)]
    pub argument: Option<usize>,
    /// The value that it gets, if no argument.
    #[serde(default)]
    pub value: Option<Constant>,
    /// Of a descriptor: of what.
    #[serde(default)]
    pub descriptor: Option<Descriptor>,
}

/// What a tensor descriptor is made of, beside its tensor.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Descriptor {
    /// Type of an element in Triton's words.
    pub dtype: String,
    /// Extents of the tensor.
    pub shape: Vec<i64>,
    /// Elements between neighbours in each dimension.
    pub strides: Vec<i64>,
    /// What lies beyond the extents is NaN, and not zero.
    #[serde(default)]
    pub nan: bool,
    /// Elements of `float` are rounded to tf32 on the way.
    #[serde(default)]
    pub tf32: bool,
}

/// How the device's copy engine reads a tensor, as the compiler decided it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DescriptorMeta {
    /// Pattern in shared memory, by its number in `CUtensorMapSwizzle`.
    pub swizzle: u32,
    /// Bytes of an element.
    pub elem_size: u64,
    /// Its type, by the number that instructions have for it.
    pub elem_type: u32,
    /// Extents of what one instruction copies.
    pub block_size: Vec<u32>,
    /// Elements are pairs of four bits, padded.
    #[serde(default)]
    pub fp4_padded: bool,
    /// The tensor is read as a convolution does.
    #[serde(default)]
    pub is_im2col: bool,
}

/// What Triton's compiler notes beside the code. What a version does not have stays as it is by default.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TritonMetadata {
    /// Symbol of the kernel.
    pub name: String,
    /// Shared memory, bytes.
    pub shared: u32,
    /// Warps of a block.
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
    #[serde(default = "yes")]
    pub enable_fp_fusion: bool,
    /// For each descriptor, how the device's copy engine reads it; nothing where it is not used.
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

/// Why nothing was compiled.
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
