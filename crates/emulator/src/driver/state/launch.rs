//! Kernel launches: checks as in the real driver, parameters, and execution.

use std::ffi::c_void;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::attributes::{MAX_THREADS_PER_BLOCK, REGISTERS};
use super::context::Core;
use super::device::SM_COUNT;
use super::function::{blocks_per_sm, max_threads, registers_for};
use super::module::{FunctionEntry, function};
use super::registry::registry;
use crate::driver::c::abi::Handle;
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{In, host_bytes};
use crate::exec::{FaultKind, LaunchConfig, LaunchOptions};

/// A launch that has passed all checks. It can run any number of times.
pub struct KernelTask {
    pub entry: Arc<FunctionEntry>,
    pub config: LaunchConfig,
    pub params: Vec<u8>,
}

/// The pointers through which a call passes the kernel's parameters. At most one is not null.
#[derive(Clone, Copy)]
pub struct Arguments {
    pub params: In<usize>,
    pub extra: In<usize>,
}

/// Keys of the `extra` array: `CU_LAUNCH_PARAM_BUFFER_POINTER`, `_BUFFER_SIZE`, `_END`.
const BUFFER: usize = 1;
const BUFFER_SIZE: usize = 2;
const END: usize = 0;

impl Arguments {
    /// Returns the contents of the function's parameter buffer.
    fn read(self, entry: &FunctionEntry) -> Res<Vec<u8>> {
        let function = &entry.function;
        if !self.extra.is_null() {
            if !self.params.is_null() {
                return Err(Code::INVALID_VALUE);
            }
            return self.read_extra(function.param_bytes());
        }
        let mut buffer = vec![0; function.param_bytes()];
        if function.params().is_empty() {
            return Ok(buffer);
        }
        let places = self.params.list(function.params().len())?;
        for (param, place) in function.params().iter().zip(places) {
            if place == 0 {
                return Err(Code::INVALID_VALUE);
            }
            // SAFETY: by the C contract each entry points to a value of the parameter's size.
            let bytes = unsafe { host_bytes(place as *const c_void, param.bytes) };
            let range = param.offset..param.offset + param.bytes;
            buffer.get_mut(range).ok_or(Code::INVALID_VALUE)?.copy_from_slice(&bytes);
        }
        Ok(buffer)
    }

    fn read_extra(self, wanted: usize) -> Res<Vec<u8>> {
        let (mut buffer, mut size) = (0, None);
        for pair in 0..8 {
            let key = self.extra.at(2 * pair).get()?;
            if key == END {
                break;
            }
            let value = self.extra.at(2 * pair + 1).get()?;
            match key {
                BUFFER => buffer = value,
                // SAFETY: by the C contract of the key, the value is the address of a `size_t`.
                BUFFER_SIZE => size = Some(unsafe { In::<usize>::from_address(value) }.get()?),
                _ => return Err(Code::INVALID_VALUE),
            }
        }
        let size = size.ok_or(Code::INVALID_VALUE)?;
        if buffer == 0 || size < wanted {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: by the C contract the buffer has `size` bytes, at least the wanted number.
        Ok(unsafe { host_bytes(buffer as *const c_void, wanted) })
    }
}

/// Records in the report that the emulator does not support a launch. Returns the status code of
/// the call.
pub fn lacks(text: &str) -> Code {
    if let Ok(registry) = registry() {
        registry.reports.message("launch", text);
    }
    Code::NOT_SUPPORTED
}

/// Returns whether grid and block are within the limits that apply to every kernel.
pub fn has_size(config: &LaunchConfig) -> bool {
    let most = [(config.grid, [i32::MAX as u32, 65535, 65535]), (config.block, [1024, 1024, 64])];
    let fits = |size: [u32; 3], most: [u32; 3]| {
        size.iter().zip(most).all(|(&size, most)| (1..=most).contains(&size))
    };
    most.iter().all(|(size, most)| fits(*size, *most))
        && config.block.iter().product::<u32>() <= MAX_THREADS_PER_BLOCK
}

/// Checks that the device can run the function with this grid and block.
fn check(entry: &FunctionEntry, config: &LaunchConfig, core: &Core) -> Res {
    if !has_size(config) {
        return Err(Code::INVALID_VALUE);
    }
    let threads: u32 = config.block.iter().product();
    if threads > entry.function.max_threads() {
        return Err(Code::LAUNCH_OUT_OF_RESOURCES);
    }
    if threads > max_threads(&entry.function) {
        // The estimate may be too high, but by less than half.
        if entry.function.registers() > 3 * registers_for(threads) / 2 {
            return Err(Code::LAUNCH_OUT_OF_RESOURCES);
        }
        let registers = entry.function.registers();
        return Err(lacks(&format!(
            "{}: a block of {threads} threads with about {registers} registers each may \
             exceed the {REGISTERS} registers that a GPU has for a block; only its assembler knows \
             the exact number: declare the size with __launch_bounds__({threads})",
            entry.function.name()
        )));
    }
    if config.dynamic_shared_bytes > entry.dynamic_limit.load(Ordering::Acquire) {
        return Err(Code::INVALID_VALUE);
    }
    let arch = &core.device.arch;
    let dynamic = u64::from(config.dynamic_shared_bytes);
    let resident = blocks_per_sm(arch, &entry.function, threads, dynamic);
    if resident == 0 {
        return Err(Code::LAUNCH_OUT_OF_RESOURCES);
    }
    let blocks: u64 = config.grid.iter().map(|&size| u64::from(size)).product();
    if config.cooperative && blocks > u64::from(resident) * u64::from(SM_COUNT) {
        return Err(Code::COOPERATIVE_LAUNCH_TOO_LARGE);
    }
    Ok(())
}

impl KernelTask {
    /// Checks a launch and reads its parameters.
    pub fn new(
        handle: Handle,
        config: LaunchConfig,
        arguments: Arguments,
        core: &Core,
    ) -> Res<Arc<Self>> {
        let entry = function(handle)?;
        check(&entry, &config, core)?;
        let params = arguments.read(&entry)?;
        Ok(Arc::new(KernelTask { entry, config, params }))
    }

    /// Runs all blocks of the grid.
    pub fn run(&self, core: &Core) -> Res {
        let registry = registry()?;
        let reports = &registry.reports;
        let options = LaunchOptions {
            deadline: time_limit().map(|limit| Instant::now() + limit),
            cancel: Some(&core.cancel),
            printf: &|text| core.print(text),
            sm_count: SM_COUNT,
            device: core.device.ordinal,
            sanitize: reports.sanitizes(),
            count: reports.counts(),
            by_instruction: reports.counts_instructions(),
            order: order(reports.counts()),
        };
        let function = &self.entry.function;
        let outcome =
            crate::exec::launch(function, &registry.memory, &self.config, &self.params, &options);
        match outcome {
            Ok(report) => {
                reports.add(function.name(), &report);
                Ok(())
            }
            Err(fault) => {
                reports.fault(function.name(), &fault);
                Err(code_of(fault.kind))
            }
        }
    }
}

/// Returns the status code of the driver for a fault.
fn code_of(kind: FaultKind) -> Code {
    match kind {
        FaultKind::IllegalAddress => Code::ILLEGAL_ADDRESS,
        FaultKind::MisalignedAddress => Code::MISALIGNED_ADDRESS,
        FaultKind::IllegalInstruction => Code::ILLEGAL_INSTRUCTION,
        FaultKind::Trap => Code::LAUNCH_FAILED,
        FaultKind::Assert => Code::ASSERT,
        FaultKind::Timeout | FaultKind::DivergentBarrierDeadlock => Code::LAUNCH_TIMEOUT,
        FaultKind::StackOverflow => Code::HARDWARE_STACK_ERROR,
        FaultKind::LaunchResources => Code::LAUNCH_OUT_OF_RESOURCES,
        FaultKind::Unsupported => Code::NOT_SUPPORTED,
    }
}

/// Returns the seed for the order of the next launch's blocks. It differs for each launch and is
/// derived from `WARPGAUGE_EMULATOR_ORDER`, by default a random number. Launches whose memory
/// traffic is counted use the order of the indices, so that counts are reproducible. So do all
/// launches if the variable is 0.
fn order(counted: bool) -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    static LAUNCHES: AtomicU64 = AtomicU64::new(0);
    let seed = *SEED.get_or_init(|| {
        let random = || RandomState::new().build_hasher().finish() | 1;
        let Ok(text) = std::env::var("WARPGAUGE_EMULATOR_ORDER") else { return random() };
        text.parse().unwrap_or_else(|_| {
            eprintln!(
                "warpgauge emulator: WARPGAUGE_EMULATOR_ORDER={text}: expected a number; blocks \
                 begin in any order"
            );
            random()
        })
    });
    if counted || seed == 0 {
        return 0;
    }
    let launch = LAUNCHES.fetch_add(1, Ordering::Relaxed);
    seed.wrapping_add(launch.wrapping_mul(0x9e37_79b9_7f4a_7c15)).max(1)
}

/// Returns the time limit of a kernel, from `WARPGAUGE_EMULATOR_TIMEOUT_MS`. By default there is no
/// limit.
fn time_limit() -> Option<Duration> {
    static LIMIT: OnceLock<Option<Duration>> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let text = std::env::var("WARPGAUGE_EMULATOR_TIMEOUT_MS").ok()?;
        let limit = text.parse().ok().filter(|&limit| limit > 0).map(Duration::from_millis);
        if limit.is_none() {
            eprintln!(
                "warpgauge emulator: WARPGAUGE_EMULATOR_TIMEOUT_MS={text}: expected a positive \
                 number of milliseconds; kernels have no time limit"
            );
        }
        limit
    })
}
