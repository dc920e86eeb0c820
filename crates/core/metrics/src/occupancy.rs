//! Computes the occupancy: the number of blocks of a launch that fit on a multiprocessor, and the
//! limits of each resource.
//!
//! The rules are those of NVIDIA's occupancy calculator (`cuda_occupancy.h`). Registers are
//! allocated to warps in units of 256, from the quarter of the registers that belongs to a
//! scheduler. Shared memory is allocated to blocks in units of 128 bytes (256 before compute
//! capability 8.0).

use warpgauge_model::SmLimits;

/// Number of threads in a warp.
const WARP: u32 = 32;
/// Allocation unit of registers. The number of a warp's registers is rounded up to a multiple of
/// it.
const REGISTER_UNIT: u32 = 256;
/// Number of schedulers of a multiprocessor. The registers are divided equally among them.
const SCHEDULERS: u32 = 4;

/// Resources that a block needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) threads: u32,
    /// Registers per thread.
    pub(super) registers: u32,
    /// Static and dynamic shared memory per block, bytes.
    pub(super) shared_bytes: u32,
}

/// Number of blocks that each resource of a multiprocessor allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) warps: u32,
    pub(super) registers: u32,
    pub(super) shared: u32,
    pub(super) blocks: u32,
}

/// Returns the number of blocks that each resource allows. Returns `None` if the block is empty or
/// the device's limits are not known.
pub(super) fn limits(sm: &SmLimits, major: u32, block: Block) -> Option<Limits> {
    let warps = block.threads.div_ceil(WARP);
    if warps == 0 || sm.threads == 0 || sm.blocks == 0 {
        return None;
    }
    let per_warp = block.registers.clamp(1, 255) * WARP;
    let per_warp = per_warp.next_multiple_of(REGISTER_UNIT);
    let by_registers = sm.registers / SCHEDULERS / per_warp * SCHEDULERS;
    let unit = if major >= 8 { 128 } else { 256 };
    let shared = u64::from(block.shared_bytes) + u64::from(sm.reserved_shared_bytes);
    let by_shared = u64::from(sm.shared_bytes).checked_div(shared.next_multiple_of(unit));
    Some(Limits {
        warps: sm.threads / WARP / warps,
        registers: by_registers / warps,
        // A block without shared memory is not limited by it.
        shared: by_shared.map_or(sm.blocks, |blocks| u32::try_from(blocks).unwrap_or(u32::MAX)),
        blocks: sm.blocks,
    })
}

/// Returns the number of warps that can be resident, as a percentage of the multiprocessor's
/// maximum.
pub(super) fn theoretical_pct(sm: &SmLimits, threads: u32, blocks: u32) -> f64 {
    let warps = f64::from(threads.div_ceil(WARP)) * f64::from(blocks);
    100.0 * warps / f64::from((sm.threads / WARP).max(1))
}

#[cfg(test)]
mod tests {
    use super::super::testing::H200_SM;
    use super::*;

    /// The limits are those that Nsight Compute 2025.3.1 reported on an H200. The limit by shared
    /// memory is left out, because it depends on the driver's configuration.
    #[test]
    fn limits_are_those_the_profiler_reports() {
        let of = |threads, registers, shared_bytes| {
            let limits = limits(&H200_SM, 9, Block { threads, registers, shared_bytes }).unwrap();
            (limits.registers, limits.warps, limits.blocks)
        };
        assert_eq!(of(256, 16, 0), (16, 8, 32), "vector_add");
        assert_eq!(of(1024, 29, 8448), (2, 2, 32), "matmul_tiled");
        assert_eq!(of(1024, 16, 4096), (4, 2, 32), "bank_conflict");
    }

    /// The numbers are those that Nsight Compute 2025.3.1 reported on an H200: configured shared
    /// memory, static shared memory of a block, and the limit. The limit is the quotient of the
    /// first and of a block's allocation.
    #[test]
    fn the_limit_by_shared_memory_is_of_what_was_set_up() {
        for (shared_bytes, of_block, reported) in
            [(32_768, 0, 32), (32_768, 8448, 3), (16_384, 4096, 3), (16_384, 128, 14)]
        {
            let set_up = SmLimits { shared_bytes, ..H200_SM };
            let block = Block { threads: 32, registers: 16, shared_bytes: of_block };
            assert_eq!(limits(&set_up, 9, block).unwrap().shared, reported, "{of_block}");
        }
    }

    #[test]
    fn the_scarcest_resource_decides() {
        let block = Block { threads: 128, registers: 255, shared_bytes: 99 << 10 };
        let limits = limits(&H200_SM, 9, block).unwrap();
        assert_eq!(limits, Limits { warps: 16, registers: 2, shared: 2, blocks: 32 });
        assert_eq!(theoretical_pct(&H200_SM, 128, 2), 12.5);
        assert_eq!(super::limits(&SmLimits::default(), 9, block), None);
    }
}
