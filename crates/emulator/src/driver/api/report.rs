//! Exported functions besides the driver API: the report, its settings, and the variables of modules.

use std::ffi::{c_char, c_uint};
use std::sync::atomic::Ordering;

use crate::driver::c::abi::{Address, Handle};
use crate::driver::c::code::Code;
use crate::driver::c::entry::{Out, guard};
use crate::driver::state::module::variables_of;
use crate::driver::state::registry::registry;

/// The version of the emulator, NUL-terminated and constant.
#[unsafe(no_mangle)]
pub extern "C" fn wgEmulatorVersion() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Switches the sanitiser on (not 0) or off for later launches and allocations. Needs `cuInit`; returns a
/// `CUresult`.
#[unsafe(no_mangle)]
pub extern "C" fn wgEmulatorSetSanitize(on: c_uint) -> u32 {
    guard("wgEmulatorSetSanitize", || {
        let registry = registry()?;
        registry.reports.sanitize.store(on != 0, Ordering::Release);
        registry.memory.track_initialisation(on != 0);
        Ok(())
    })
}

/// Protects the allocation of device memory that contains an address from writes by kernels (`on` not 0),
/// or ends the protection. A write is a fault, or with the sanitiser a finding. Returns a `CUresult`.
#[unsafe(no_mangle)]
pub extern "C" fn wgEmulatorSetReadOnly(address: Address, on: c_uint) -> u32 {
    guard("wgEmulatorSetReadOnly", || {
        let memory = &registry()?.memory;
        memory.set_read_only(address, on != 0).map_err(|_| Code::INVALID_VALUE)
    })
}

/// Switches the detailed counts on (not 0; the default) or off, which is faster. Needs `cuInit`; returns
/// a `CUresult`.
#[unsafe(no_mangle)]
pub extern "C" fn wgEmulatorSetCounting(on: c_uint) -> u32 {
    guard("wgEmulatorSetCounting", || {
        registry()?.reports.silent.store(on == 0, Ordering::Release);
        Ok(())
    })
}

/// Takes the report of everything that has run since the last call: writes its JSON (UTF-8, no NUL) to
/// `buffer` and returns its length. If `room` is too small, or `buffer` is null, the report stays and the
/// function returns the needed length; 0 before `cuInit`.
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

/// Writes the state that a module keeps between launches as JSON (UTF-8, no NUL) to `buffer` and returns
/// its length. If `room` is too small, or `buffer` is null, writes nothing and returns the needed length.
/// Returns 0 if there is no such module.
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
