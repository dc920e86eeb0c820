//! Exported functions in addition to the driver API: the report, its settings, and the variables of
//! modules.

use std::ffi::{c_char, c_uint};
use std::sync::atomic::Ordering;

use crate::driver::c::abi::{Address, Handle};
use crate::driver::c::code::Code;
use crate::driver::c::entry::{Out, guard};
use crate::driver::state::module::variables_of;
use crate::driver::state::registry::registry;

/// Returns the version of the emulator as a constant, NUL-terminated string.
#[unsafe(no_mangle)]
pub extern "C" fn wgEmulatorVersion() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Switches the sanitiser on (not 0) or off for later launches and allocations. Requires `cuInit`.
/// Returns a `CUresult`.
#[unsafe(no_mangle)]
pub extern "C" fn wgEmulatorSetSanitize(on: c_uint) -> u32 {
    guard("wgEmulatorSetSanitize", || {
        let registry = registry()?;
        registry.reports.sanitize.store(on != 0, Ordering::Release);
        registry.memory.track_initialisation(on != 0);
        Ok(())
    })
}

/// Makes the allocation that contains an address read-only for kernels (`on` not 0), or writable
/// again. A write by a kernel is a fault, or with the sanitiser a finding. Returns a `CUresult`.
#[unsafe(no_mangle)]
pub extern "C" fn wgEmulatorSetReadOnly(address: Address, on: c_uint) -> u32 {
    guard("wgEmulatorSetReadOnly", || {
        let memory = &registry()?.memory;
        memory.set_read_only(address, on != 0).map_err(|_| Code::INVALID_VALUE)
    })
}

/// Switches the counts of memory traffic on (1; the default) or off (0), which is faster. With 2 the
/// report also has the counts of each instruction. Requires `cuInit`. Returns a `CUresult`.
#[unsafe(no_mangle)]
pub extern "C" fn wgEmulatorSetCounting(on: c_uint) -> u32 {
    guard("wgEmulatorSetCounting", || {
        let reports = &registry()?.reports;
        reports.silent.store(on == 0, Ordering::Release);
        reports.by_instruction.store(on == 2, Ordering::Release);
        Ok(())
    })
}

/// Takes the report of everything that has run since the last call: writes its JSON (UTF-8, no NUL)
/// to `buffer` and returns its length. If `room` is too small or `buffer` is null, the report is
/// kept and the function returns the needed length. Returns 0 before `cuInit`.
///
/// # Safety
/// `buffer` is null or valid for writing `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgEmulatorTakeReport(buffer: Out<u8>, room: usize) -> usize {
    let mut length = 0;
    guard("wgEmulatorTakeReport", || {
        let room = if buffer.is_null() { 0 } else { room };
        match registry()?.reports.take(room) {
            Ok(text) => {
                length = text.len();
                buffer.fill(length, text.bytes())
            }
            Err(needed) => {
                length = needed;
                Err(Code::INVALID_VALUE)
            }
        }
    });
    length
}

/// Describes the state that a module keeps between launches: writes JSON (UTF-8, no NUL) to
/// `buffer` and returns its length. If `room` is too small or `buffer` is null, writes nothing and
/// returns the needed length. Returns 0 if the module does not exist.
///
/// # Safety
/// `buffer` is null or valid for writing `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wgEmulatorModuleVariables(
    module: Handle,
    buffer: Out<u8>,
    room: usize,
) -> usize {
    let mut length = 0;
    guard("wgEmulatorModuleVariables", || {
        let text = variables_of(module)?;
        length = text.len();
        if buffer.is_null() || room < length {
            return Err(Code::INVALID_VALUE);
        }
        buffer.fill(length, text.bytes())
    });
    length
}
