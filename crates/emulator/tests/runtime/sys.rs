//! The functions that are tested, as the headers of CUDA declare them.

use std::ffi::{c_char, c_int, c_uint, c_void};

// The functions are in the library that this test is linked with.
use warpgauge_emulator as _;

pub const INVALID_VALUE: u32 = 1;
pub const INVALID_CONFIGURATION: u32 = 9;
pub const INVALID_PITCH: u32 = 12;
pub const INVALID_SYMBOL: u32 = 13;
pub const INVALID_DIRECTION: u32 = 21;
pub const MISSING_CONFIGURATION: u32 = 52;
pub const INVALID_FUNCTION: u32 = 98;
pub const INVALID_DEVICE: u32 = 101;
pub const NO_KERNEL_IMAGE: u32 = 209;
pub const NOT_READY: u32 = 600;
pub const ILLEGAL_ADDRESS: u32 = 700;

pub const TO_DEVICE: u32 = 1;
pub const TO_HOST: u32 = 2;
pub const DEFAULT: u32 = 4;

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Dim3(pub u32, pub u32, pub u32);

#[repr(C)]
pub struct PointerAttributes {
    pub kind: u32,
    pub device: c_int,
    pub device_pointer: u64,
    pub host_pointer: u64,
}

pub type HostFn = unsafe extern "C" fn(*mut c_void);

unsafe extern "C" {
    pub fn __cudaRegisterFatBinary(wrapper: *const c_void) -> usize;
    pub fn __cudaRegisterFatBinaryEnd(unit: usize);
    pub fn __cudaUnregisterFatBinary(unit: usize);
    pub fn __cudaRegisterFunction(
        unit: usize,
        host: usize,
        device: *const c_char,
        name: *const c_char,
        limit: c_int,
        tid: *const c_void,
        bid: *const c_void,
        block: *const c_void,
        grid: *const c_void,
        warp: *const c_int,
    );
    pub fn __cudaRegisterVar(
        unit: usize,
        host: usize,
        device: *const c_char,
        name: *const c_char,
        external: c_int,
        bytes: usize,
        constant: c_int,
        global: c_int,
    );
    pub fn __cudaRegisterManagedVar(
        unit: usize,
        place: *mut *mut c_void,
        device: *const c_char,
        name: *const c_char,
        external: c_int,
        bytes: usize,
        constant: c_int,
        global: c_int,
    );
    pub fn __cudaInitModule(unit: usize) -> c_char;
    pub fn __cudaPushCallConfiguration(g: Dim3, b: Dim3, shared: usize, stream: usize) -> u32;
    pub fn __cudaPopCallConfiguration(
        grid: *mut Dim3,
        block: *mut Dim3,
        shared: *mut usize,
        stream: *mut usize,
    ) -> u32;
    pub fn __cudaGetKernel(out: *mut usize, host: usize) -> u32;
    pub fn __cudaLaunchKernel(
        kernel: usize,
        grid: Dim3,
        block: Dim3,
        arguments: *const *const c_void,
        shared: usize,
        stream: usize,
    ) -> u32;
    pub fn cudaLaunchKernel(
        host: usize,
        grid: Dim3,
        block: Dim3,
        arguments: *const *const c_void,
        shared: usize,
        stream: usize,
    ) -> u32;
    pub fn cudaLaunchKernel_ptsz(
        host: usize,
        grid: Dim3,
        block: Dim3,
        arguments: *const *const c_void,
        shared: usize,
        stream: usize,
    ) -> u32;
    pub fn cudaGetLastError() -> u32;
    pub fn cudaPeekAtLastError() -> u32;
    pub fn cudaGetErrorName(code: u32) -> *const c_char;
    pub fn cudaGetErrorString(code: u32) -> *const c_char;
    pub fn cudaMalloc(out: *mut u64, bytes: usize) -> u32;
    pub fn cudaMallocManaged(out: *mut u64, bytes: usize, flags: c_uint) -> u32;
    pub fn cudaMallocHost(out: *mut u64, bytes: usize) -> u32;
    pub fn cudaFreeHost(address: u64) -> u32;
    pub fn cudaFree(address: u64) -> u32;
    pub fn cudaMemcpy(dst: u64, src: u64, bytes: usize, kind: u32) -> u32;
    pub fn cudaMemcpyAsync(dst: u64, src: u64, bytes: usize, kind: u32, stream: usize) -> u32;
    pub fn cudaMemcpy2D(
        dst: u64,
        dst_pitch: usize,
        src: u64,
        src_pitch: usize,
        width: usize,
        height: usize,
        kind: u32,
    ) -> u32;
    pub fn cudaMemcpyPeer(dst: u64, dst_dev: c_int, src: u64, src_dev: c_int, n: usize) -> u32;
    pub fn cudaMallocPitch(out: *mut u64, pitch: *mut usize, width: usize, height: usize) -> u32;
    pub fn cudaMemset(dst: u64, value: c_int, bytes: usize) -> u32;
    pub fn cudaMemcpyToSymbol(sym: usize, src: u64, n: usize, offset: usize, kind: u32) -> u32;
    pub fn cudaMemcpyFromSymbol(dst: u64, sym: usize, n: usize, offset: usize, kind: u32) -> u32;
    pub fn cudaGetSymbolAddress(out: *mut u64, symbol: usize) -> u32;
    pub fn cudaGetSymbolSize(out: *mut usize, symbol: usize) -> u32;
    pub fn cudaPointerGetAttributes(out: *mut PointerAttributes, address: u64) -> u32;
    pub fn cudaGetDeviceCount(out: *mut c_int) -> u32;
    pub fn cudaGetDevice(out: *mut c_int) -> u32;
    pub fn cudaSetDevice(ordinal: c_int) -> u32;
    pub fn cudaDeviceReset() -> u32;
    pub fn cudaDeviceSynchronize() -> u32;
    pub fn cudaDeviceGetAttribute(out: *mut c_int, attribute: c_uint, ordinal: c_int) -> u32;
    pub fn cudaGetDeviceProperties(out: *mut u8, ordinal: c_int) -> u32;
    pub fn cudaGetDeviceProperties_v2(out: *mut u8, ordinal: c_int) -> u32;
    pub fn cudaDeviceEnablePeerAccess(peer: c_int, flags: c_uint) -> u32;
    pub fn cudaStreamCreate(out: *mut usize) -> u32;
    pub fn cudaStreamDestroy(stream: usize) -> u32;
    pub fn cudaStreamSynchronize(stream: usize) -> u32;
    pub fn cudaStreamSynchronize_ptsz(stream: usize) -> u32;
    pub fn cudaStreamQuery(stream: usize) -> u32;
    pub fn cudaStreamWaitEvent(stream: usize, event: usize, flags: c_uint) -> u32;
    pub fn cudaLaunchHostFunc(stream: usize, function: HostFn, data: *mut c_void) -> u32;
    pub fn cudaEventCreate(out: *mut usize) -> u32;
    pub fn cudaEventRecord(event: usize, stream: usize) -> u32;
    pub fn cudaEventSynchronize(event: usize) -> u32;
    pub fn cudaEventElapsedTime(out: *mut f32, start: usize, end: usize) -> u32;
    pub fn cudaStreamBeginCapture(stream: usize, mode: c_uint) -> u32;
    pub fn cudaStreamEndCapture(stream: usize, graph: *mut usize) -> u32;
    pub fn cudaGraphInstantiate(out: *mut usize, graph: usize, flags: u64) -> u32;
    pub fn cudaGraphLaunch(exec: usize, stream: usize) -> u32;
    pub fn cudaGraphExecDestroy(exec: usize) -> u32;
    pub fn cudaGraphDestroy(graph: usize) -> u32;
    pub fn cudaFuncGetAttributes(out: *mut [u64; 18], host: usize) -> u32;
    pub fn cudaFuncSetAttribute(host: usize, which: c_uint, value: c_int) -> u32;
    pub fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        out: *mut c_int,
        host: usize,
        block: c_int,
        dynamic: usize,
    ) -> u32;
}
