//! The functions that code made by nvcc calls before `main`, before it uses managed variables, and at the
//! end.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::Arc;

use super::call::{answer, bare, enter};
use super::exit::report_at_exit;
use super::unit::{self, Unit};
use crate::driver::c::abi::Handle;
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{Out, Text, guard};

/// Returns the unit to which a registration belongs.
fn registering(key: usize) -> Res<Arc<Unit>> {
    unit::unit(key).ok_or(Code::INVALID_HANDLE)
}

/// Registers a fat binary without loading it, and returns its key.
///
/// # Safety
/// The wrapper and its fat binary stay until `__cudaUnregisterFatBinary`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaRegisterFatBinary(wrapper: *const c_void) -> usize {
    let mut key = 0;
    guard("__cudaRegisterFatBinary", || {
        report_at_exit();
        key = unit::add(wrapper);
        Ok(())
    });
    key
}

/// Called when all of a fat binary is registered.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterFatBinaryEnd(_unit: usize) {}

/// Removes a fat binary, with its kernels and variables.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaUnregisterFatBinary(key: usize) {
    guard("__cudaUnregisterFatBinary", || {
        unit::remove(key);
        Ok(())
    });
}

/// Registers a kernel: the function that represents it on the host, and its name in the PTX.
///
/// # Safety
/// The name is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaRegisterFunction(
    key: usize,
    host: usize,
    _device: *const c_char,
    name: Text,
    _thread_limit: c_int,
    _tid: *const c_void,
    _bid: *const c_void,
    _block: *const c_void,
    _grid: *const c_void,
    _warp: *const c_int,
) {
    guard("__cudaRegisterFunction", || {
        let name = CString::new(name.get()?).map_err(|_| Code::INVALID_VALUE)?;
        unit::add_kernel(registering(key)?, host, name);
        Ok(())
    });
}

/// Registers a variable: its shadow on the host, and its name in the PTX.
///
/// # Safety
/// The name is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaRegisterVar(
    key: usize,
    host: usize,
    _device: *const c_char,
    name: Text,
    _external: c_int,
    _bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
    guard("__cudaRegisterVar", || {
        unit::add_variable(registering(key)?, host, name.get()?);
        Ok(())
    });
}

/// Registers a managed variable: the place where the program keeps its address, and its name in the PTX.
///
/// # Safety
/// The name is a C string, and the place exists until the fat binary is removed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaRegisterManagedVar(
    key: usize,
    place: usize,
    _device: *const c_char,
    name: Text,
    _external: c_int,
    _bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
    guard("__cudaRegisterManagedVar", || {
        unit::add_managed(&*registering(key)?, place, name.get()?);
        Ok(())
    });
}

/// Loads a fat binary, so that the program gets the addresses of its managed variables. Returns 0 if that
/// fails.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaInitModule(key: usize) -> c_char {
    let load = || {
        enter()?;
        registering(key)?.module().map(|_| ())
    };
    c_char::from(answer("__cudaInitModule", load) == Code::SUCCESS.0)
}

bare! {
    fn __cudaGetKernel(out: Out<Handle>, host: usize) {
        out.required()?;
        out.set(unit::kernel(host)?)
    }

    fn cudaGetKernel(out: Out<Handle>, host: usize) {
        out.required()?;
        out.set(unit::loaded_kernel(host)?)
    }
}
