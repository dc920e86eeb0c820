//! Configuration and result of a launch.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::check::Finding;
use crate::counts::{Counts, InstructionCounts};

/// Grid, block and dynamic shared memory of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Number of blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads per block in x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory per block, bytes.
    pub dynamic_shared_bytes: u32,
    /// Whether all blocks must be resident at once (`cuLaunchCooperativeKernel`).
    pub cooperative: bool,
}

/// Options of a launch. They do not change the result of a correct kernel.
pub struct LaunchOptions<'a> {
    /// Time at which the launch is stopped.
    pub deadline: Option<Instant>,
    /// Another thread sets this to stop the launch early.
    pub cancel: Option<&'a AtomicBool>,
    /// Receives the text of device-side `printf`. It is called once for each call in the kernel.
    pub printf: &'a (dyn Fn(&[u8]) + Sync),
    /// Number of multiprocessors of the device.
    pub sm_count: u32,
    /// Ordinal of the device.
    pub device: u32,
    /// Whether to detect errors that do not stop a kernel.
    pub sanitize: bool,
    /// Whether to count memory traffic too, which slows the launch down.
    pub count: bool,
    /// Whether to return the counts of each instruction too. Without `count` they have no memory
    /// accesses.
    pub by_instruction: bool,
    /// The order in which blocks start: 0 means the order of their indices, any other number a
    /// shuffled order. The same number always gives the same order.
    pub order: u64,
}

/// Result of a finished launch.
#[derive(Debug, Clone, Default)]
pub struct LaunchReport {
    /// Counts of instructions and memory traffic.
    pub counts: Counts,
    /// Counts of each PTX instruction that was executed; empty without
    /// [`LaunchOptions::by_instruction`].
    pub instructions: Vec<InstructionCounts>,
    /// Findings of the sanitiser; empty without [`LaunchOptions::sanitize`].
    pub findings: Vec<Finding>,
    /// Whether the kernel used more global memory than race detection covers.
    pub unwatched: bool,
}

/// Reason why a launch stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// An access outside every allocation or to freed memory, a write to read-only memory, or an
    /// invalid `free`.
    IllegalAddress,
    /// An address that is not a multiple of the access size.
    MisalignedAddress,
    /// An instruction that cannot be executed.
    IllegalInstruction,
    /// The kernel executed `trap`.
    Trap,
    /// An `assert` in the kernel failed.
    Assert,
    /// The deadline passed, or the launch was cancelled or stopped.
    Timeout,
    /// Recursion that is too deep, or an `alloca` that is too large.
    StackOverflow,
    /// Every remaining warp waits at a barrier that cannot complete.
    DivergentBarrierDeadlock,
    /// The launch requires more than the device supports.
    LaunchResources,
    /// The kernel requires a feature that GPUs have and the emulator does not support.
    Unsupported,
}

/// Description of a launch that stopped before its end.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct LaunchFault {
    /// The class of the fault, which determines the driver's error code.
    pub kind: FaultKind,
    /// Description with thread and source position.
    pub message: String,
    /// The fault as a finding, if a check of the sanitiser found it.
    pub finding: Option<Finding>,
}

/// Returns a fault without a finding.
pub(in crate::exec) fn fault(kind: FaultKind, message: String) -> Box<LaunchFault> {
    Box::new(LaunchFault { kind, message, finding: None })
}

/// Returns a fault that a check of the sanitiser found.
pub(in crate::exec) fn found(kind: FaultKind, finding: Finding) -> Box<LaunchFault> {
    Box::new(LaunchFault { kind, message: finding.message.clone(), finding: Some(finding) })
}
