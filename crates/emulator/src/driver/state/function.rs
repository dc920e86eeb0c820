//! Attributes of a function, and the number of its blocks that fit on a multiprocessor.

use std::ffi::{c_int, c_uint};
use std::sync::atomic::Ordering;

use super::attributes::{MAX_THREADS_PER_BLOCK, REGISTERS, SHARED_PER_BLOCK};
use super::context::context;
use super::device::Arch;
use super::module::{FunctionEntry, set_dynamic};
use super::registry::registry;
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::Out;
use crate::module::Function;

/// Values of `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES` and
/// `_PREFERRED_SHARED_MEMORY_CARVEOUT`.
const MAX_DYNAMIC: c_uint = 8;
const CARVEOUT: c_uint = 9;

/// Returns the dynamic shared memory that a launch may use if the function's limit was not raised,
/// bytes.
pub fn default_dynamic(function: &Function) -> u32 {
    SHARED_PER_BLOCK.saturating_sub(function.static_shared_bytes())
}

/// Returns the maximum number of threads per block of the function, which its launch bound and its
/// registers determine.
pub fn max_threads(function: &Function) -> u32 {
    let most = warps_by_registers(function) * 32;
    function.max_threads().min(most).min(MAX_THREADS_PER_BLOCK)
}

/// Returns the number of warps whose registers fit on a multiprocessor. Each of its four schedulers
/// has a quarter of the registers.
fn warps_by_registers(function: &Function) -> u32 {
    REGISTERS / 4 / registers_per_warp(function) * 4
}

/// Returns the maximum number of registers per thread in a block of `threads` threads.
pub fn registers_for(threads: u32) -> u32 {
    let warps = threads.div_ceil(32).div_ceil(4).max(1);
    (REGISTERS / 4 / warps / 32 / 8 * 8).min(255)
}

/// Returns the number of registers that a warp occupies. They are allocated in units of 256.
fn registers_per_warp(function: &Function) -> u32 {
    (function.registers().clamp(1, 255) * 32).next_multiple_of(256)
}

pub fn param_info(function: &Function, index: usize, offset: Out<usize>, bytes: Out<usize>) -> Res {
    let param = function.params().get(index).ok_or(Code::INVALID_VALUE)?;
    offset.required()?;
    bytes.set_if_asked(param.bytes);
    offset.set(param.offset)
}

pub fn attribute(entry: &FunctionEntry, which: c_uint) -> Res<c_int> {
    let function = &entry.function;
    Ok(match which {
        0 => max_threads(function) as c_int,
        1 => function.static_shared_bytes() as c_int,
        2 => function.const_bytes() as c_int,
        3 => function.local_bytes() as c_int,
        4 => function.registers() as c_int,
        // The PTX target architecture, regardless of the PTX version.
        5 => function.target_sm() as c_int,
        6 => {
            let arch = context(entry.context)?.device.arch;
            (arch.major * 10 + arch.minor) as c_int
        }
        7 => 0,
        MAX_DYNAMIC => entry.dynamic_limit.load(Ordering::Acquire) as c_int,
        CARVEOUT => entry.carveout.load(Ordering::Acquire) as c_int,
        // Attributes of clusters: not required, no size, not allowed, no preference.
        10..=15 => 0,
        _ => return Err(Code::INVALID_VALUE),
    })
}

pub fn set_attribute(entry: &FunctionEntry, which: c_uint, value: c_int) -> Res {
    match which {
        MAX_DYNAMIC => {
            let bytes = u32::try_from(value).map_err(|_| Code::INVALID_VALUE)?;
            let arch = context(entry.context)?.device.arch;
            let all = bytes.checked_add(entry.function.static_shared_bytes());
            if all.is_none_or(|all| all > arch.shared_optin) {
                return Err(Code::INVALID_VALUE);
            }
            set_dynamic(entry, bytes);
            Ok(())
        }
        CARVEOUT if (-1..=100).contains(&value) => {
            entry.carveout.store(value as u32, Ordering::Release);
            Ok(())
        }
        14 if value == 0 => Ok(()),
        10..=15 => {
            let text =
                format!("{}: thread block clusters are not supported", entry.function.name());
            registry()?.reports.message("launch", &text);
            Err(Code::NOT_SUPPORTED)
        }
        _ => Err(Code::INVALID_VALUE),
    }
}

/// Returns the number of blocks of the function that one multiprocessor holds at a time: the
/// minimum of the limits by threads, block slots, registers and shared memory.
pub fn blocks_per_sm(arch: &Arch, function: &Function, threads: u32, dynamic: u64) -> u32 {
    if threads == 0 || threads > max_threads(function) {
        return 0;
    }
    let warps = threads.div_ceil(32);
    let by_threads = arch.threads_per_sm / 32 / warps;
    let by_registers = warps_by_registers(function) / warps;
    let shared = shared_per_block(arch, function, dynamic);
    let by_shared = u64::from(arch.shared_per_sm).checked_div(shared).unwrap_or(u64::MAX);
    let most = by_threads.min(by_registers).min(arch.blocks_per_sm);
    u64::from(most).min(by_shared) as u32
}

/// Returns the shared memory that a block occupies, including the part reserved by the system,
/// rounded up to allocation units.
fn shared_per_block(arch: &Arch, function: &Function, dynamic: u64) -> u64 {
    let unit = if arch.major >= 8 { 128 } else { 256 };
    let used = u64::from(function.static_shared_bytes()) + dynamic;
    (used.saturating_add(u64::from(arch.shared_reserved))).next_multiple_of(unit)
}

/// Returns the maximum dynamic shared memory per block with which `blocks` blocks still fit on a
/// multiprocessor.
pub fn dynamic_for(arch: &Arch, function: &Function, blocks: u32) -> u64 {
    let unit = if arch.major >= 8 { 128 } else { 256 };
    let share = u64::from(arch.shared_per_sm) / u64::from(blocks.max(1)) / unit * unit;
    let fixed = u64::from(arch.shared_reserved) + u64::from(function.static_shared_bytes());
    let most = u64::from(arch.shared_optin.saturating_sub(function.static_shared_bytes()));
    share.saturating_sub(fixed).min(most)
}
