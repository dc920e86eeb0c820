//! Devices, contexts, and what is asked of the library as a whole.

use std::ffi::{CStr, CString, c_void};
use std::ptr::null_mut;

use cudarc::driver::{CudaContext, result, sys};
use sys::CUdevice_attribute::*;
use sys::CUresult::*;

use crate::setup::{DEVICES, code, emulator, own_context};

#[test]
fn devices_are_listed_and_described() {
    emulator();
    assert_eq!(CudaContext::device_count().unwrap(), DEVICES as i32);
    assert_eq!(code(result::device::get(DEVICES as i32)), CUDA_ERROR_INVALID_DEVICE);
    let context = CudaContext::new(1).unwrap();
    assert_eq!(context.name().unwrap(), "warpgauge emulator (CPU)");
    assert_eq!(context.compute_capability().unwrap(), (9, 0));
    let other = CudaContext::new(2).unwrap();
    assert_ne!(context.uuid().unwrap().bytes, other.uuid().unwrap().bytes);
    let expected = [
        (CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16),
        (CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32),
        (CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 4 << 20),
        (CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10),
        (CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 << 10),
        (CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048),
        (CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, i32::MAX),
        (CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0),
        (CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0),
        (CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1),
    ];
    for (attribute, value) in expected {
        assert_eq!(context.attribute(attribute).unwrap(), value, "{attribute:?}");
    }
    let none = context.attribute(CU_DEVICE_ATTRIBUTE_MAX);
    assert_eq!(code(none), CUDA_ERROR_INVALID_VALUE);
    let mut version = 0;
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().unwrap();
    assert_eq!(version, 13000);
}

#[test]
fn contexts_nest_by_thread() {
    let (first, second) = (own_context(0), own_context(1));
    let current = || result::ctx::get_current().unwrap();
    first.bind_to_thread().unwrap();
    assert_eq!(current(), Some(first.cu_ctx()));
    unsafe { sys::cuCtxPushCurrent_v2(second.cu_ctx()) }.result().unwrap();
    let mut device = -1;
    unsafe { sys::cuCtxGetDevice(&mut device) }.result().unwrap();
    assert_eq!(device, 1);
    let mut popped = null_mut();
    unsafe { sys::cuCtxPopCurrent_v2(&mut popped) }.result().unwrap();
    assert_eq!((popped, current()), (second.cu_ctx(), Some(first.cu_ctx())));
    let elsewhere = std::thread::spawn(|| {
        let none = result::ctx::get_current().unwrap().is_none();
        (none, result::ctx::synchronize().err().map(|error| error.0))
    });
    assert_eq!(elsewhere.join().unwrap(), (true, Some(CUDA_ERROR_INVALID_CONTEXT)));
    let gone = first.cu_ctx();
    drop(first);
    assert_eq!(code(unsafe { result::ctx::set_current(gone) }), CUDA_ERROR_INVALID_CONTEXT);
}

#[test]
fn the_primary_context_is_counted() {
    emulator();
    // The only test that uses the primary context of device 3.
    let device = result::device::get(3).unwrap();
    let state = || {
        let (mut flags, mut active) = (0, 0);
        let asked = unsafe { sys::cuDevicePrimaryCtxGetState(device, &mut flags, &mut active) };
        asked.result().unwrap();
        (flags, active)
    };
    assert_eq!(state(), (0, 0));
    let first = unsafe { result::primary_ctx::retain(device) }.unwrap();
    let again = unsafe { result::primary_ctx::retain(device) }.unwrap();
    assert_eq!((first, state()), (again, (0, 1)));
    unsafe { result::primary_ctx::release(device) }.unwrap();
    assert_eq!(state().1, 1);
    unsafe { result::primary_ctx::release(device) }.unwrap();
    assert_eq!(state().1, 0);
    let more = unsafe { result::primary_ctx::release(device) };
    assert_eq!(code(more), CUDA_ERROR_INVALID_CONTEXT);
    let third = unsafe { result::primary_ctx::retain(device) }.unwrap();
    assert_eq!(third, first);
    unsafe { sys::cuDevicePrimaryCtxReset_v2(device) }.result().unwrap();
    assert_eq!(state().1, 0);
}

#[test]
fn limits_have_defaults_and_bounds() {
    let context = own_context(0);
    use sys::CUlimit::*;
    assert_eq!(context.get_limit(CU_LIMIT_PRINTF_FIFO_SIZE).unwrap(), 1 << 20);
    context.set_limit(CU_LIMIT_PRINTF_FIFO_SIZE, 4096).unwrap();
    assert_eq!(context.get_limit(CU_LIMIT_PRINTF_FIFO_SIZE).unwrap(), 4096);
    context.set_limit(CU_LIMIT_STACK_SIZE, 64 << 10).unwrap();
    let deep = context.set_limit(CU_LIMIT_STACK_SIZE, 1 << 30);
    assert_eq!(code(deep), CUDA_ERROR_INVALID_VALUE);
    let other = context.get_limit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH);
    assert_eq!(code(other), CUDA_ERROR_UNSUPPORTED_LIMIT);
    context.set_cache_config(sys::CUfunc_cache::CU_FUNC_CACHE_PREFER_L1).unwrap();
    let kept = context.get_cache_config().unwrap();
    assert_eq!(kept, sys::CUfunc_cache::CU_FUNC_CACHE_PREFER_L1);
    context.set_blocking_synchronize().unwrap();
    unsafe { sys::cuCtxResetPersistingL2Cache() }.result().unwrap();
}

#[test]
fn peers_are_enabled_once() {
    let (first, second) = (own_context(0), own_context(1));
    first.bind_to_thread().unwrap();
    let mut can = 0;
    let asked =
        unsafe { sys::cuDeviceCanAccessPeer(&mut can, first.cu_device(), second.cu_device()) };
    asked.result().unwrap();
    assert_eq!(can, 1);
    let enable = || unsafe { sys::cuCtxEnablePeerAccess(second.cu_ctx(), 0) };
    enable().result().unwrap();
    assert_eq!(enable(), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    unsafe { sys::cuCtxDisablePeerAccess(second.cu_ctx()) }.result().unwrap();
    let data = first.new_stream().unwrap().clone_htod(&[1u16, 2, 3]).unwrap();
    let stream = second.new_stream().unwrap();
    let mut copy = stream.alloc_zeros::<u16>(3).unwrap();
    stream.memcpy_dtod(&data, &mut copy).unwrap();
    assert_eq!(stream.clone_dtoh(&copy).unwrap(), [1, 2, 3]);
}

#[test]
fn every_code_has_a_name_and_a_text() {
    emulator();
    let error = result::DriverError(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    let name = error.error_name().unwrap();
    assert_eq!(name.to_str().unwrap(), "CUDA_ERROR_STREAM_CAPTURE_ISOLATION");
    assert!(!error.error_string().unwrap().is_empty());
    assert!(result::DriverError(CUDA_ERROR_UNKNOWN).error_name().is_ok());
    let mut text = c"untouched".as_ptr();
    // SAFETY: an out pointer; the number is passed as the C type that the enum stands for.
    let ask: libloading::Symbol<unsafe extern "C" fn(u32, *mut *const i8) -> u32> =
        unsafe { emulator().get(b"cuGetErrorName").unwrap() };
    assert_eq!(unsafe { ask(12345, &mut text) }, 1);
    assert!(text.is_null());
}

#[test]
fn functions_are_found_by_name_and_version() {
    emulator();
    let find = |name: &str, version: i32| {
        let name = CString::new(name).unwrap();
        let (mut address, mut status) = (null_mut::<c_void>(), MaybeStatus::uninit());
        let asked = unsafe {
            sys::cuGetProcAddress_v2(name.as_ptr(), &mut address, version, 0, status.as_mut_ptr())
        };
        asked.result().unwrap();
        (address, unsafe { status.assume_init() } as u32)
    };
    type MaybeStatus = std::mem::MaybeUninit<sys::CUdriverProcAddressQueryResult>;
    let symbol = |name: &CStr| {
        // SAFETY: only the address is used.
        unsafe {
            let found = emulator().get::<*mut c_void>(name.to_bytes_with_nul());
            found.unwrap().try_as_raw_ptr().unwrap()
        }
    };
    assert_eq!(find("cuMemAlloc", 13000), (symbol(c"cuMemAlloc_v2"), 0));
    assert_eq!(find("cuCtxCreate", 13000), (symbol(c"cuCtxCreate_v4"), 0));
    assert_eq!(find("cuCtxCreate", 11000), (symbol(c"cuCtxCreate_v2"), 0));
    assert_eq!(find("cuLaunchKernelEx", 11000), (null_mut(), 2));
    assert_eq!(find("cuNoSuchThing", 13000), (null_mut(), 1));
    assert_eq!(find("malloc", 13000), (null_mut(), 1));
}

#[test]
fn wrong_handles_are_told_from_right_ones() {
    let context = own_context(0);
    context.bind_to_thread().unwrap();
    let wrong = [0x77usize, 0xdead_beef, usize::MAX, context.cu_ctx() as usize];
    for handle in wrong.map(|handle| handle as *mut c_void) {
        let codes = unsafe {
            [
                sys::cuStreamSynchronize(handle.cast()),
                sys::cuEventQuery(handle.cast()),
                sys::cuModuleUnload(handle.cast()),
                sys::cuGraphDestroy(handle.cast()),
                sys::cuGraphExecDestroy(handle.cast()),
                sys::cuMemPoolTrimTo(handle.cast(), 0),
                sys::cuFuncSetCacheConfig(
                    handle.cast(),
                    sys::CUfunc_cache::CU_FUNC_CACHE_PREFER_L1,
                ),
            ]
        };
        assert_eq!(codes, [CUDA_ERROR_INVALID_HANDLE; 7], "{handle:?}");
    }
    let null = unsafe { sys::cuMemAlloc_v2(null_mut(), 4) };
    assert_eq!(null, CUDA_ERROR_INVALID_VALUE);
}
