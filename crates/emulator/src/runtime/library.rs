//! Libraries of kernels that a program loads at run time.

use std::ffi::{c_int, c_uint, c_void};

use super::call::{driver, runtime};
use crate::driver::api::library::{
    cuKernelSetAttribute, cuLibraryEnumerateKernels, cuLibraryGetGlobal, cuLibraryGetKernel,
    cuLibraryGetKernelCount, cuLibraryLoadData, cuLibraryLoadFromFile, cuLibraryUnload,
};
use crate::driver::c::abi::{Address, Handle};
use crate::driver::c::entry::{In, Out, Text};

runtime! {
    fn cudaLibraryLoadData(
        out: Out<Handle>,
        image: *const c_void,
        options: In<c_uint>,
        values: Out<usize>,
        count: c_uint,
        library_options: *const c_void,
        library_values: *const c_void,
        library_count: c_uint,
    ) {
        driver!(cuLibraryLoadData(
            out, image, options, values, count, library_options, library_values, library_count
        ))
    }

    fn cudaLibraryLoadFromFile(
        out: Out<Handle>,
        path: Text,
        options: In<c_uint>,
        values: Out<usize>,
        count: c_uint,
        library_options: *const c_void,
        library_values: *const c_void,
        library_count: c_uint,
    ) {
        driver!(cuLibraryLoadFromFile(
            out, path, options, values, count, library_options, library_values, library_count
        ))
    }

    fn cudaLibraryUnload(library: Handle) {
        driver!(cuLibraryUnload(library))
    }

    fn cudaLibraryGetKernel(out: Out<Handle>, library: Handle, name: Text) {
        driver!(cuLibraryGetKernel(out, library, name))
    }

    fn cudaLibraryGetGlobal(
        out: Out<Address>,
        bytes: Out<usize>,
        library: Handle,
        name: Text,
    ) {
        driver!(cuLibraryGetGlobal(out, bytes, library, name))
    }

    fn cudaLibraryGetKernelCount(count: Out<c_uint>, library: Handle) {
        driver!(cuLibraryGetKernelCount(count, library))
    }

    fn cudaLibraryEnumerateKernels(out: Out<Handle>, room: c_uint, library: Handle) {
        driver!(cuLibraryEnumerateKernels(out, room, library))
    }

    fn cudaKernelSetAttributeForDevice(
        kernel: Handle,
        which: c_uint,
        value: c_int,
        ordinal: c_int,
    ) {
        driver!(cuKernelSetAttribute(which, value, kernel, ordinal))
    }
}
