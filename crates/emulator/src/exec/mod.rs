//! Runs a grid of blocks on the CPU.

mod alu;
mod approx;
mod atomic;
mod bits;
mod block;
mod call;
mod check;
mod collective;
mod copy;
mod cvt;
mod dot;
mod fault;
mod float;
mod fragment;
mod grid;
mod half;
mod int;
mod memory;
mod nan;
mod printf;
mod race;
mod regs;
mod runtime;
pub(crate) mod soft;
mod special;
mod step;
mod tensor;
mod traffic;
mod warp;

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::check::Finding;
use crate::counts::Counts;
use crate::memory::{AllocKind, Memory, MemoryError};
use crate::module::Function;

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
}

/// What a finished launch leaves.
#[derive(Debug, Clone, Default)]
pub struct LaunchReport {
    /// Event counts.
    pub counts: Counts,
    /// What the sanitiser found; empty without [`LaunchOptions::sanitize`].
    pub findings: Vec<Finding>,
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

/// Most threads of a block.
const MAX_THREADS: u64 = 1024;
/// Most shared memory of a block, in bytes: what the largest supported device has.
const MAX_SHARED: u64 = 227 << 10;
/// Most blocks in x; in y and z they are fewer.
const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];

/// Whether the device could run a block of that shape.
fn check_shape(f: &Function, cfg: &LaunchConfig, params: &[u8]) -> Result<(), String> {
    let name = f.name();
    let threads = cfg.block.iter().map(|n| u64::from(*n)).product::<u64>();
    let [x, y, z] = cfg.grid;
    if [x, y, z].iter().zip(MAX_GRID).any(|(n, most)| *n == 0 || *n > most) {
        return Err(format!("{name}: a grid of {x} × {y} × {z} blocks is not possible"));
    }
    if cfg.block.contains(&0) || threads > MAX_THREADS || cfg.block[2] > 64 {
        let [x, y, z] = cfg.block;
        return Err(format!("{name}: a block of {x} × {y} × {z} threads is not possible"));
    }
    if threads > f.max_threads().into() {
        return Err(format!("{name}: {threads} threads; it is compiled for {}", f.max_threads()));
    }
    let shared = u64::from(f.static_shared_bytes()) + u64::from(cfg.dynamic_shared_bytes);
    if shared > MAX_SHARED {
        return Err(format!("{name}: {shared} bytes of shared memory; {MAX_SHARED} are possible"));
    }
    if params.len() < f.param_bytes() {
        let (have, want) = (params.len(), f.param_bytes());
        return Err(format!("{name}: {have} bytes of parameters instead of {want}"));
    }
    Ok(())
}

/// Size of the workspace of a cooperative launch, in bytes.
const WORKSPACE: u32 = 256;

/// Memory in which cooperative groups keep the barrier of the grid: its size in the first word,
/// the count of arrivals in the second.
struct Workspace<'a> {
    memory: &'a Memory,
    va: u64,
}

impl<'a> Workspace<'a> {
    fn new(memory: &'a Memory, wanted: bool, device: u32) -> Result<Self, String> {
        let mut out = Self { memory, va: 0 };
        if wanted {
            let make = || {
                let va = memory.alloc(WORKSPACE.into(), AllocKind::Device(device))?;
                memory.fill(va, &[0], WORKSPACE.into())?;
                memory.write(va, &WORKSPACE.to_le_bytes())?;
                Ok::<_, MemoryError>(va)
            };
            out.va = make().map_err(|e| format!("no workspace for a cooperative launch: {e}"))?;
        }
        Ok(out)
    }
}

impl Drop for Workspace<'_> {
    fn drop(&mut self) {
        if self.va != 0 {
            // It can only fail if the memory is gone already.
            let _ = self.memory.free(self.va);
        }
    }
}

/// Runs every block of the grid and returns when all have ended.
///
/// With [`LaunchOptions::sanitize`] wrong accesses are not faults: they are skipped, and listed in
/// the report.
///
/// # Errors
/// The first fault of any thread; memory keeps what was written before it.
#[expect(clippy::result_large_err, reason = "one fault ends a launch: its size does not matter")]
pub fn launch(
    f: &Function,
    memory: &Memory,
    cfg: &LaunchConfig,
    params: &[u8],
    opts: &LaunchOptions<'_>,
) -> Result<LaunchReport, LaunchFault> {
    let program = f.program();
    let refuse = |message| LaunchFault { kind: FaultKind::LaunchResources, message, finding: None };
    check_shape(f, cfg, params).map_err(refuse)?;
    if program.uses_heap {
        memory.heap().prepare(memory, opts.device);
    }
    let lacks = |message| LaunchFault { kind: FaultKind::Unsupported, message, finding: None };
    let workspace = Workspace::new(memory, cfg.cooperative, opts.device).map_err(lacks)?;
    let grid = grid::Grid::new(
        &program.code,
        f.name(),
        &program.files,
        &program.index,
        *cfg,
        opts,
        params,
        memory,
        workspace.va,
    );
    grid::run(&grid).map_err(|fault| *fault)
}
