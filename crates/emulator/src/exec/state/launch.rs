//! What a launch is asked to do, and how it ended.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::check::Finding;
use crate::counts::Counts;

/// Shape of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub dynamic_shared_bytes: u32,
    /// Whether all blocks must be resident at once (`cuLaunchCooperativeKernel`).
    pub cooperative: bool,
}

/// Circumstances of a launch.
pub struct LaunchOptions<'a> {
    /// When to give up.
    pub deadline: Option<Instant>,
    /// Set by another thread to give up early.
    pub cancel: Option<&'a AtomicBool>,
    /// Receives the text of device-side `printf`, one call for each call in the kernel.
    pub printf: &'a (dyn Fn(&[u8]) + Sync),
    /// Multiprocessors of the device.
    pub sm_count: u32,
    /// Ordinal of the device.
    pub device: u32,
    /// Whether to look for errors that do not stop a kernel.
    pub sanitize: bool,
    /// Whether to count memory traffic too, which costs time.
    pub count: bool,
    /// The order in which blocks begin: 0 for that of their indices, any other number for one of
    /// its own. The same number gives the same order.
    pub order: u64,
}

/// What a finished launch leaves.
#[derive(Debug, Clone, Default)]
pub struct LaunchReport {
    /// Event counts.
    pub counts: Counts,
    /// What the sanitiser found; empty without [`LaunchOptions::sanitize`].
    pub findings: Vec<Finding>,
    /// Whether the kernel used more global memory than is watched for races.
    pub unwatched: bool,
}

/// Why a launch stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// An access outside every allocation, or after `free`.
    IllegalAddress,
    /// An address that is not a multiple of the access size.
    MisalignedAddress,
    /// An instruction that cannot be executed here.
    IllegalInstruction,
    /// `trap`.
    Trap,
    /// `assert` failed.
    Assert,
    /// The deadline passed, or the launch was cancelled.
    Timeout,
    /// Calls too deep, or too much local memory.
    StackOverflow,
    /// Every remaining warp waits at a barrier that cannot complete.
    DivergentBarrierDeadlock,
    /// The launch asks for more than the device has.
    LaunchResources,
    /// The kernel needs what a GPU has and the emulator lacks.
    Unsupported,
}

/// A launch that stopped before its end.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct LaunchFault {
    /// The class of the fault, from which the driver's error code follows.
    pub kind: FaultKind,
    /// What happened, where, in which thread.
    pub message: String,
    /// The same for programs, where it is one of the sanitiser's checks.
    pub finding: Option<Finding>,
}

/// A fault without a finding.
pub(in crate::exec) fn fault(kind: FaultKind, message: String) -> Box<LaunchFault> {
    Box::new(LaunchFault { kind, message, finding: None })
}

/// A fault that the sanitiser has a name for.
pub(in crate::exec) fn found(kind: FaultKind, finding: Finding) -> Box<LaunchFault> {
    Box::new(LaunchFault { kind, message: finding.message.clone(), finding: Some(finding) })
}
