//! Device memory and events shared between processes.

use std::ffi::c_uint;

use super::call::{driver, runtime};
use crate::driver::api::ipc::{
    cuIpcCloseMemHandle, cuIpcGetEventHandle, cuIpcGetMemHandle, cuIpcOpenEventHandle,
    cuIpcOpenMemHandle_v2,
};
use crate::driver::c::abi::{Address, Bytes, Handle};
use crate::driver::c::entry::Out;

runtime! {
    fn cudaIpcGetEventHandle(out: Out<Bytes<64>>, event: Handle) {
        driver!(cuIpcGetEventHandle(out, event))
    }

    fn cudaIpcOpenEventHandle(out: Out<Handle>, handle: Bytes<64>) {
        driver!(cuIpcOpenEventHandle(out, handle))
    }

    fn cudaIpcGetMemHandle(out: Out<Bytes<64>>, address: Address) {
        driver!(cuIpcGetMemHandle(out, address))
    }

    fn cudaIpcOpenMemHandle(out: Out<Address>, handle: Bytes<64>, flags: c_uint) {
        driver!(cuIpcOpenMemHandle_v2(out, handle, flags))
    }

    fn cudaIpcCloseMemHandle(address: Address) {
        driver!(cuIpcCloseMemHandle(address))
    }
}
