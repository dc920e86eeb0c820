//! Hardware resources of a kernel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Resources of one thread or block of a kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resources {
    /// Number of 32-bit registers per thread.
    pub registers: u32,
    /// Static shared memory per block, bytes.
    pub static_shared_bytes: u32,
    /// Local memory per thread, bytes (stack frame and spills).
    pub local_bytes: u32,
    /// Stack frame per thread, bytes. Absent if the compiler does not report it.
    #[schemars(extend("nullable" = true))]
    pub stack_bytes: Option<u32>,
    /// Spill stores per thread, bytes. Absent if the compiler does not report them.
    #[schemars(extend("nullable" = true))]
    pub spill_store_bytes: Option<u32>,
    /// Spill loads per thread, bytes. Absent if the compiler does not report them.
    #[schemars(extend("nullable" = true))]
    pub spill_load_bytes: Option<u32>,
    /// Constant memory, bytes.
    pub const_bytes: u32,
    /// Maximum number of threads per block with which the kernel can be launched.
    pub max_threads_per_block: u32,
}

/// Resources of a kernel that the driver reports for a launch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionFacts {
    /// Number of registers per thread.
    pub registers: u32,
    /// Static shared memory per block, bytes.
    pub static_shared_bytes: u32,
    /// Local memory per thread, bytes.
    pub local_bytes: u32,
    /// Constant memory, bytes.
    pub const_bytes: u32,
    /// Maximum number of threads per block.
    pub max_threads_per_block: u32,
    /// Number of blocks of this launch that can be resident on one multiprocessor.
    pub max_active_blocks: u32,
}
