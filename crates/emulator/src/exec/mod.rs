//! Runs a grid of blocks on the CPU.
//!
//! # Modules
//! Lowest level first. No module uses one of a higher level:
//! - `lanes`: registers, and arithmetic on all lanes of a warp.
//! - `state`: the launch, its blocks, warps and workers as data, and their faults.
//! - `step`: the inner loop, and instructions other than arithmetic.
//! - `schedule`: assigns blocks to threads.

mod lanes;
mod schedule;
mod state;
mod step;

use crate::memory::{AllocKind, Memory, MemoryError};
use crate::module::Function;
pub use state::{FaultKind, LaunchConfig, LaunchFault, LaunchOptions, LaunchReport};

/// Maximum number of threads of a block.
const MAX_THREADS: u64 = 1024;
/// Maximum shared memory of a block, bytes, on the largest supported device.
const MAX_SHARED: u64 = 227 << 10;
/// Maximum number of blocks in x, y and z.
const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];

/// Checks that the device can run a grid of this shape.
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
        return Err(format!(
            "{name}: {threads} threads per block; it is compiled for at most {}",
            f.max_threads()
        ));
    }
    let shared = u64::from(f.static_shared_bytes()) + u64::from(cfg.dynamic_shared_bytes);
    if shared > MAX_SHARED {
        return Err(format!(
            "{name}: {shared} bytes of shared memory; the maximum is {MAX_SHARED}"
        ));
    }
    if params.len() < f.param_bytes() {
        let (have, want) = (params.len(), f.param_bytes());
        return Err(format!("{name}: {have} bytes of parameters instead of {want}"));
    }
    Ok(())
}

/// Size of the memory that a cooperative launch reserves for its grid barrier, bytes.
const WORKSPACE: u32 = 256;

/// Memory in which cooperative groups keep the state of the grid barrier. The first word holds the
/// size of this memory, the second the number of arrivals.
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
            out.va = make().map_err(|e| {
                format!("no memory for the grid barrier of a cooperative launch: {e}")
            })?;
        }
        Ok(out)
    }
}

impl Drop for Workspace<'_> {
    fn drop(&mut self) {
        if self.va != 0 {
            // This fails only if the memory is already freed.
            let _ = self.memory.free(self.va);
        }
    }
}

/// Runs every block of the grid and returns when all have ended.
///
/// With [`LaunchOptions::sanitize`] an invalid access is not a fault: it is skipped and listed in
/// the report.
///
/// # Errors
/// Returns the first fault of any thread. Memory keeps all writes before the fault.
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
    let grid = state::Grid::new(
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
    schedule::run(&grid).map_err(|fault| *fault)
}
