//! Streams, captures, and host functions in streams.

use std::ffi::{c_int, c_uint, c_void};

use super::call::{driver, runtime, streamed};
use crate::driver::api::capture::{
    cuStreamBeginCapture_v2, cuStreamEndCapture, cuStreamGetCaptureInfo_v2,
    cuStreamGetCaptureInfo_v3, cuStreamIsCapturing, cuThreadExchangeStreamCaptureMode,
};
use crate::driver::api::stream::{
    cuLaunchHostFunc, cuStreamAddCallback, cuStreamAttachMemAsync, cuStreamCopyAttributes,
    cuStreamCreate, cuStreamCreateWithPriority, cuStreamDestroy_v2, cuStreamGetDevice,
    cuStreamGetFlags, cuStreamGetId, cuStreamGetPriority, cuStreamQuery, cuStreamSynchronize,
    cuStreamWaitEvent,
};
use crate::driver::c::abi::{Handle, HostFn, StreamCallback};
use crate::driver::c::entry::Out;

runtime! {
    fn cudaStreamCreate(out: Out<Handle>) {
        driver!(cuStreamCreate(out, 0))
    }

    fn cudaStreamCreateWithFlags(out: Out<Handle>, flags: c_uint) {
        driver!(cuStreamCreate(out, flags))
    }

    fn cudaStreamCreateWithPriority(out: Out<Handle>, flags: c_uint, priority: c_int) {
        driver!(cuStreamCreateWithPriority(out, flags, priority))
    }

    fn cudaStreamDestroy(stream: Handle) {
        driver!(cuStreamDestroy_v2(stream))
    }

    fn cudaThreadExchangeStreamCaptureMode(mode: Out<c_uint>) {
        driver!(cuThreadExchangeStreamCaptureMode(mode))
    }
}

streamed! {
    fn cudaStreamSynchronize / cudaStreamSynchronize_ptsz [stream](stream: Handle) {
        driver!(cuStreamSynchronize(stream))
    }

    fn cudaStreamQuery / cudaStreamQuery_ptsz [stream](stream: Handle) {
        driver!(cuStreamQuery(stream))
    }

    fn cudaStreamWaitEvent / cudaStreamWaitEvent_ptsz [stream](
        stream: Handle,
        event: Handle,
        flags: c_uint,
    ) {
        driver!(cuStreamWaitEvent(stream, event, flags))
    }

    fn cudaStreamGetPriority / cudaStreamGetPriority_ptsz [stream](
        stream: Handle,
        out: Out<c_int>,
    ) {
        driver!(cuStreamGetPriority(stream, out))
    }

    fn cudaStreamGetFlags / cudaStreamGetFlags_ptsz [stream](stream: Handle, out: Out<c_uint>) {
        driver!(cuStreamGetFlags(stream, out))
    }

    fn cudaStreamGetId / cudaStreamGetId_ptsz [stream](stream: Handle, out: Out<u64>) {
        driver!(cuStreamGetId(stream, out))
    }

    fn cudaStreamGetDevice / cudaStreamGetDevice_ptsz [stream](stream: Handle, out: Out<c_int>) {
        driver!(cuStreamGetDevice(stream, out))
    }

    fn cudaStreamCopyAttributes / cudaStreamCopyAttributes_ptsz [dst](dst: Handle, src: Handle) {
        driver!(cuStreamCopyAttributes(dst, src))
    }

    fn cudaStreamAttachMemAsync / cudaStreamAttachMemAsync_ptsz [stream](
        stream: Handle,
        address: u64,
        bytes: usize,
        flags: c_uint,
    ) {
        driver!(cuStreamAttachMemAsync(stream, address, bytes, flags))
    }

    fn cudaStreamAddCallback / cudaStreamAddCallback_ptsz [stream](
        stream: Handle,
        callback: StreamCallback,
        data: *mut c_void,
        flags: c_uint,
    ) {
        driver!(cuStreamAddCallback(stream, callback, data, flags))
    }

    fn cudaLaunchHostFunc / cudaLaunchHostFunc_ptsz [stream](
        stream: Handle,
        function: HostFn,
        data: *mut c_void,
    ) {
        driver!(cuLaunchHostFunc(stream, function, data))
    }

    fn cudaStreamBeginCapture / cudaStreamBeginCapture_ptsz [stream](
        stream: Handle,
        mode: c_uint,
    ) {
        driver!(cuStreamBeginCapture_v2(stream, mode))
    }

    fn cudaStreamEndCapture / cudaStreamEndCapture_ptsz [stream](
        stream: Handle,
        graph: Out<Handle>,
    ) {
        driver!(cuStreamEndCapture(stream, graph))
    }

    fn cudaStreamIsCapturing / cudaStreamIsCapturing_ptsz [stream](
        stream: Handle,
        out: Out<c_uint>,
    ) {
        driver!(cuStreamIsCapturing(stream, out))
    }

    fn cudaStreamGetCaptureInfo_v2 / cudaStreamGetCaptureInfo_v2_ptsz [stream](
        stream: Handle,
        status: Out<c_uint>,
        id: Out<u64>,
        graph: Out<Handle>,
        nodes: Out<usize>,
        count: Out<usize>,
    ) {
        driver!(cuStreamGetCaptureInfo_v2(stream, status, id, graph, nodes, count))
    }

    fn cudaStreamGetCaptureInfo_v3 / cudaStreamGetCaptureInfo_v3_ptsz [stream](
        stream: Handle,
        status: Out<c_uint>,
        id: Out<u64>,
        graph: Out<Handle>,
        nodes: Out<usize>,
        edges: Out<usize>,
        count: Out<usize>,
    ) {
        driver!(cuStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, edges, count))
    }

    fn cudaStreamGetCaptureInfo / cudaStreamGetCaptureInfo_ptsz [stream](
        stream: Handle,
        status: Out<c_uint>,
        id: Out<u64>,
        graph: Out<Handle>,
        nodes: Out<usize>,
        edges: Out<usize>,
        count: Out<usize>,
    ) {
        driver!(cuStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, edges, count))
    }
}
