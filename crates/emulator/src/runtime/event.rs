//! The CUDA runtime's functions for events, which call the driver's.

use std::ffi::c_uint;

use super::call::{driver, runtime, streamed};
use crate::driver::api::event::{
    cuEventCreate, cuEventDestroy_v2, cuEventElapsedTime, cuEventQuery, cuEventRecord,
    cuEventRecordWithFlags, cuEventSynchronize,
};
use crate::driver::c::abi::Handle;
use crate::driver::c::entry::Out;

runtime! {
    fn cudaEventCreate(out: Out<Handle>) {
        driver!(cuEventCreate(out, 0))
    }

    fn cudaEventCreateWithFlags(out: Out<Handle>, flags: c_uint) {
        driver!(cuEventCreate(out, flags))
    }

    fn cudaEventDestroy(event: Handle) {
        driver!(cuEventDestroy_v2(event))
    }

    fn cudaEventQuery(event: Handle) {
        driver!(cuEventQuery(event))
    }

    fn cudaEventSynchronize(event: Handle) {
        driver!(cuEventSynchronize(event))
    }

    fn cudaEventElapsedTime(out: Out<f32>, start: Handle, end: Handle) {
        driver!(cuEventElapsedTime(out, start, end))
    }

    fn cudaEventElapsedTime_v2(out: Out<f32>, start: Handle, end: Handle) {
        driver!(cuEventElapsedTime(out, start, end))
    }
}

streamed! {
    fn cudaEventRecord / cudaEventRecord_ptsz [stream](event: Handle, stream: Handle) {
        driver!(cuEventRecord(event, stream))
    }

    fn cudaEventRecordWithFlags / cudaEventRecordWithFlags_ptsz [stream](
        event: Handle,
        stream: Handle,
        flags: c_uint,
    ) {
        driver!(cuEventRecordWithFlags(event, stream, flags))
    }
}
