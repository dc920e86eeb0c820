//! `cuGetProcAddress`: finds functions of this library by their names without a version suffix.

use std::ffi::{CString, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{Out, Text, api};

/// Values of `CUdriverProcAddressQueryResult`: the symbol was found, was not found, or is newer
/// than the requested CUDA version.
const FOUND: c_uint = 0;
const NOT_FOUND: c_uint = 1;
const TOO_OLD: c_uint = 2;

/// Suffixes of the versions of a function, newest first.
const SUFFIXES: [&str; 4] = ["_v4", "_v3", "_v2", ""];

/// The CUDA version that introduced each version of a function, for callers that request an older
/// CUDA version. All other functions are unchanged since before CUDA 11.
const SINCE: &[(&str, c_int)] = &[
    ("cuCtxCreate_v3", 11040),
    ("cuCtxCreate_v4", 12050),
    ("cuCtxGetDevice_v2", 13000),
    ("cuCtxSynchronize_v2", 13000),
    ("cuDeviceGetUuid_v2", 11040),
    ("cuEventElapsedTime_v2", 12080),
    ("cuGetProcAddress_v2", 12000),
    ("cuGraphAddDependencies_v2", 12030),
    ("cuGraphAddKernelNode_v2", 12000),
    ("cuGraphExecKernelNodeSetParams_v2", 12000),
    ("cuGraphExecUpdate_v2", 12000),
    ("cuGraphGetEdges_v2", 12030),
    ("cuLaunchKernelEx", 11060),
    ("cuMemAdvise_v2", 12020),
    ("cuMemPrefetchAsync_v2", 12020),
    ("cuStreamGetCaptureInfo_v2", 11030),
    ("cuStreamGetCaptureInfo_v3", 12030),
];

/// Returns the loader's handle of this library, or null if the library is linked into a program.
fn own_library() -> *mut c_void {
    static OWN: OnceLock<usize> = OnceLock::new();
    *OWN.get_or_init(|| {
        // SAFETY: all fields of the structure may be zero.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        let inside: extern "C" fn() -> *const std::ffi::c_char =
            crate::driver::api::report::wgEmulatorVersion;
        // SAFETY: any address is allowed; the structure is ours.
        if unsafe { libc::dladdr(inside as *const c_void, &mut info) } == 0 {
            return 0;
        }
        // SAFETY: the name belongs to the loader and remains valid; no library is loaded.
        unsafe { libc::dlopen(info.dli_fname, libc::RTLD_NOLOAD | libc::RTLD_LAZY) as usize }
    }) as *mut c_void
}

fn exported(name: &str) -> *mut c_void {
    let library = own_library();
    let Ok(name) = CString::new(name) else {
        return null_mut();
    };
    if library.is_null() {
        return null_mut();
    }
    // SAFETY: a handle of the loader and a C string.
    unsafe { libc::dlsym(library, name.as_ptr()) }
}

/// Returns the newest version of a function that exists in CUDA `version`.
fn find(symbol: &str, version: c_int) -> (*mut c_void, c_uint) {
    let mut status = NOT_FOUND;
    if !symbol.starts_with("cu") {
        return (null_mut(), status);
    }
    for suffix in SUFFIXES {
        let name = format!("{symbol}{suffix}");
        let address = exported(&name);
        if address.is_null() {
            continue;
        }
        let since = SINCE.iter().find(|row| row.0 == name).map_or(0, |row| row.1);
        if since <= version {
            return (address, FOUND);
        }
        status = TOO_OLD;
    }
    (null_mut(), status)
}

fn answer(symbol: Text, out: Out<*mut c_void>, version: c_int, flags: u64) -> Res<c_uint> {
    out.required()?;
    // 0: default, 1: legacy stream, 2: per-thread default stream.
    if flags > 2 {
        return Err(Code::INVALID_VALUE);
    }
    let (address, status) = find(&symbol.get()?, version);
    out.set(address)?;
    Ok(status)
}

api! {
    fn cuGetProcAddress(symbol: Text, out: Out<*mut c_void>, version: c_int, flags: u64) {
        match answer(symbol, out, version, flags)? {
            FOUND => Ok(()),
            _ => Err(Code::NOT_FOUND),
        }
    }

    fn cuGetProcAddress_v2(
        symbol: Text,
        out: Out<*mut c_void>,
        version: c_int,
        flags: u64,
        status: Out<c_uint>,
    ) {
        status.set_if_asked(answer(symbol, out, version, flags)?);
        Ok(())
    }
}
