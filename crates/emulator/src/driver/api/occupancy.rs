//! Exported occupancy functions.

use std::ffi::{c_int, c_uint};

use crate::driver::c::abi::{BlockToShared, Handle, LaunchConfigC};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{In, Out, api};
use crate::driver::state::context::context;
use crate::driver::state::device::{Arch, SM_COUNT};
use crate::driver::state::function::{blocks_per_sm, dynamic_for, max_threads};
use crate::driver::state::module::{FunctionEntry, function};

fn arch(entry: &FunctionEntry) -> Res<Arch> {
    Ok(context(entry.context)?.device.arch)
}

fn active(out: Out<c_int>, handle: Handle, block: c_int, dynamic: usize, flags: c_uint) -> Res {
    let entry = function(handle)?;
    let threads = u32::try_from(block).map_err(|_| Code::INVALID_VALUE)?;
    if threads == 0 || flags > 1 {
        return Err(Code::INVALID_VALUE);
    }
    out.set(blocks_per_sm(&arch(&entry)?, &entry.function, threads, dynamic as u64) as c_int)
}

/// Returns the block size that keeps the most threads resident, and the number of blocks that then
/// fill the device. The candidates are the maximum block size and the smaller multiples of the warp
/// size. Of several equally good block sizes, returns the largest.
fn potential(
    grid: Out<c_int>,
    block: Out<c_int>,
    handle: Handle,
    shared_of: BlockToShared,
    dynamic: usize,
    limit: c_int,
) -> Res {
    grid.required()?;
    block.required()?;
    let entry = function(handle)?;
    let arch = arch(&entry)?;
    let most = max_threads(&entry.function);
    let limit = match u32::try_from(limit).map_err(|_| Code::INVALID_VALUE)? {
        0 => most,
        limit => limit.min(most),
    };
    let mut best = (0, 0, 0);
    let mut threads = limit;
    while threads > 0 {
        let dynamic = match shared_of {
            // SAFETY: the caller passed this function to be called with any block size.
            Some(shared_of) => unsafe { shared_of(threads as c_int) },
            None => dynamic,
        };
        let blocks = blocks_per_sm(&arch, &entry.function, threads, dynamic as u64);
        if blocks * threads > best.0 {
            best = (blocks * threads, threads, blocks);
        }
        threads = (threads - 1) / 32 * 32;
    }
    block.set(best.1 as c_int)?;
    grid.set((best.2 * SM_COUNT) as c_int)
}

api! {
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        out: Out<c_int>,
        function: Handle,
        block: c_int,
        dynamic: usize,
    ) {
        active(out, function, block, dynamic, 0)
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        out: Out<c_int>,
        function: Handle,
        block: c_int,
        dynamic: usize,
        flags: c_uint,
    ) {
        active(out, function, block, dynamic, flags)
    }

    fn cuOccupancyMaxPotentialBlockSize(
        grid: Out<c_int>,
        block: Out<c_int>,
        function: Handle,
        shared_of: BlockToShared,
        dynamic: usize,
        limit: c_int,
    ) {
        potential(grid, block, function, shared_of, dynamic, limit)
    }

    fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: Out<c_int>,
        block: Out<c_int>,
        function: Handle,
        shared_of: BlockToShared,
        dynamic: usize,
        limit: c_int,
        flags: c_uint,
    ) {
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        potential(grid, block, function, shared_of, dynamic, limit)
    }

    fn cuOccupancyAvailableDynamicSMemPerBlock(
        out: Out<usize>,
        handle: Handle,
        blocks: c_int,
        block: c_int,
    ) {
        let entry = function(handle)?;
        let arch = arch(&entry)?;
        let blocks = u32::try_from(blocks).map_err(|_| Code::INVALID_VALUE)?;
        let threads = u32::try_from(block).map_err(|_| Code::INVALID_VALUE)?;
        if blocks == 0 || blocks > blocks_per_sm(&arch, &entry.function, threads, 0) {
            return Err(Code::INVALID_VALUE);
        }
        out.set(dynamic_for(&arch, &entry.function, blocks) as usize)
    }

    fn cuOccupancyMaxActiveClusters(
        _out: Out<c_int>,
        handle: Handle,
        _config: In<LaunchConfigC>,
    ) {
        function(handle)?;
        Err(Code::NOT_SUPPORTED)
    }

    fn cuOccupancyMaxPotentialClusterSize(
        _out: Out<c_int>,
        handle: Handle,
        _config: In<LaunchConfigC>,
    ) {
        function(handle)?;
        Err(Code::NOT_SUPPORTED)
    }
}
