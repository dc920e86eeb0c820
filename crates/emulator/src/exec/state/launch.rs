//! Configuration of a launch, and how it ended.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::check::Finding;
use crate::counts::Counts;

/// Shape of a launch.
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

/// Settings of a launch that the kernel's result does not depend on.
pub struct LaunchOptions<'a> {
    /// When to stop the launch.
    pub deadline: Option<Instant>,
    /// Another thread sets this to stop the launch early.
    pub cancel: Option<&'a AtomicBool>,
    /// Receives the text of device-side `printf`, one call for each call in the kernel.
    pub printf: &'a (dyn Fn(&[u8]) + Sync),
    /// Multiprocessors of the device.
    pub sm_count: u32,
    /// Ordinal of the device.
    pub device: u32,
    /// Whether to detect errors that do not stop a kernel.
    pub sanitize: bool,
    /// Whether to count memory traffic too, which takes time.
    pub count: bool,
    /// The order in which blocks begin: 0 for the order of their indices, any other number for a
    /// different one. The same number gives the same order.
    pub order: u64,
}

/// Result of a finished launch.
#[derive(Debug, Clone, Default)]
pub struct LaunchReport {
    /// Event counts.
    pub counts: Counts,
    /// Findings of the sanitiser; empty without [`LaunchOptions::sanitize`].
    pub findings: Vec<Finding>,
    /// Whether the kernel used more global memory than race detection covers.
    pub unwatched: bool,
}

/// Why a launch stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// An access outside every allocation, or after `free`.
    IllegalAddress,
    /// An address that is not a multiple of the access size.
    MisalignedAddress,
    /// An instruction that cannot be executed.
    IllegalInstruction,
    /// `trap`.
    Trap,
    /// `assert` failed.
    Assert,
    /// The deadline passed, or the launch was cancelled.
    Timeout,
    /// Calls that are nested too deeply, or too much local memory.
    StackOverflow,
    /// Every remaining warp waits at a barrier that cannot complete.
    DivergentBarrierDeadlock,
    /// The launch requires more than the device has.
    LaunchResources,
    /// The kernel requires a feature that a GPU has and the emulator lacks.
    Unsupported,
}

/// A launch that stopped before its end.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct LaunchFault {
    /// The class of the fault, from which the driver's error code follows.
    pub kind: FaultKind,
    /// Description, with position and thread.
    pub message: String,
    /// The fault as a finding, if a check of the sanitiser found it.
    pub finding: Option<Finding>,
}

/// Returns a fault without a finding.
pub(in crate::exec) fn fault(kind: FaultKind, message: String) -> Box<LaunchFault> {
    Box::new(LaunchFault { kind, message, finding: None })
}

/// Returns a fault that is one of the sanitiser's checks.
pub(in crate::exec) fn found(kind: FaultKind, finding: Finding) -> Box<LaunchFault> {
    Box::new(LaunchFault { kind, message: finding.message.clone(), finding: Some(finding) })
}
