//! Finds driver functions by their names.

use std::ffi::{c_int, c_uint, c_void};

use super::call::{bare, begin, driver};
use crate::driver::api::device::DRIVER_VERSION;
use crate::driver::api::procaddr::cuGetProcAddress_v2;
use crate::driver::c::code::Res;
use crate::driver::c::entry::{Out, Text};

fn find(
    symbol: Text,
    out: Out<*mut c_void>,
    version: c_int,
    flags: u64,
    status: Out<c_uint>,
) -> Res {
    begin()?;
    driver!(cuGetProcAddress_v2(symbol, out, version, flags, status))
}

bare! {
    fn cudaGetDriverEntryPoint(
        symbol: Text,
        out: Out<*mut c_void>,
        flags: u64,
        status: Out<c_uint>,
    ) {
        find(symbol, out, DRIVER_VERSION, flags, status)
    }

    fn cudaGetDriverEntryPoint_ptsz(
        symbol: Text,
        out: Out<*mut c_void>,
        flags: u64,
        status: Out<c_uint>,
    ) {
        find(symbol, out, DRIVER_VERSION, flags, status)
    }

    fn cudaGetDriverEntryPointByVersion(
        symbol: Text,
        out: Out<*mut c_void>,
        version: c_uint,
        flags: u64,
        status: Out<c_uint>,
    ) {
        find(symbol, out, version as c_int, flags, status)
    }

    fn cudaGetDriverEntryPointByVersion_ptsz(
        symbol: Text,
        out: Out<*mut c_void>,
        version: c_uint,
        flags: u64,
        status: Out<c_uint>,
    ) {
        find(symbol, out, version as c_int, flags, status)
    }
}
