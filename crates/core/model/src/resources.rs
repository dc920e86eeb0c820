//! Hardware resources of a kernel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one thread or block of a kernel takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resources {
    /// 32-bit registers per thread.
    pub registers: u32,
    /// Static shared memory per block, bytes.
    pub static_shared_bytes: u32,
    /// Local memory per thread, bytes (stack frame and spills).
    pub local_bytes: u32,
    /// Stack frame per thread, bytes, where the compiler said.
    #[schemars(extend("nullable" = true))]
    pub stack_bytes: Option<u32>,
    /// Spill stores, bytes per thread, where the compiler said.
    #[schemars(extend("nullable" = true))]
    pub spill_store_bytes: Option<u32>,
    /// Spill loads, bytes per thread, where the compiler said.
    #[schemars(extend("nullable" = true))]
    pub spill_load_bytes: Option<u32>,
    /// Constant memory, bytes.
    pub const_bytes: u32,
    /// Largest block the kernel can be launched with.
    pub max_threads_per_block: u32,
}

/// A function's facts as the driver reports them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
