//! Allocation, copies, fills, pinned and managed memory, pools, pointers.

use std::ffi::c_void;

use cudarc::driver::{DriverError, result, sys};
use sys::CUresult::*;

use crate::setup::{DEVICES, MEMORY_MB, code, own_context};

fn check(code: sys::CUresult) -> Result<(), DriverError> {
    code.result()
}

#[test]
fn slices_go_there_and_back() {
    let context = own_context(0);
    let stream = context.default_stream();
    let host: Vec<u32> = (0..100_003).collect();
    let device = stream.clone_htod(&host).unwrap();
    let mut copy = stream.alloc_zeros::<u32>(host.len()).unwrap();
    assert_eq!(stream.clone_dtoh(&copy).unwrap(), vec![0; host.len()]);
    stream.memcpy_dtod(&device, &mut copy).unwrap();
    assert_eq!(stream.clone_dtoh(&copy).unwrap(), host);
    let part = stream.clone_dtoh(&copy.slice(10..20)).unwrap();
    assert_eq!(part, host[10..20]);
    stream.memset_zeros(&mut copy.slice_mut(5..7)).unwrap();
    assert_eq!(stream.clone_dtoh(&copy.slice(4..8)).unwrap(), [4, 0, 0, 7]);
    assert!(stream.null::<f32>().unwrap().is_empty());
    assert!(stream.clone_htod(&[0u8; 0]).unwrap().is_empty());
}

#[test]
fn a_full_device_says_so_and_memory_comes_back() {
    // The only test that uses device 3, whose memory it counts.
    let context = own_context(DEVICES - 1);
    let stream = context.default_stream();
    let total = MEMORY_MB << 20;
    assert_eq!(context.total_mem().unwrap(), total);
    assert_eq!(context.mem_get_info().unwrap(), (total, total));
    let most = unsafe { stream.alloc::<u8>(total - (1 << 20)) }.unwrap();
    assert_eq!(context.mem_get_info().unwrap().0, 1 << 20);
    let refused = unsafe { stream.alloc::<u8>(2 << 20) };
    assert_eq!(code(refused), CUDA_ERROR_OUT_OF_MEMORY);
    drop(most);
    // The release is in the stream; the next allocation waits for it if it has to.
    let again = unsafe { stream.alloc::<u8>(total) }.unwrap();
    drop(again);
    stream.synchronize().unwrap();
    assert_eq!(context.mem_get_info().unwrap().0, total);
    let held = unsafe { result::malloc_sync(1 << 20) }.unwrap();
    assert_eq!(context.mem_get_info().unwrap().0, total - (1 << 20));
    drop(stream);
    drop(context);
    let context = own_context(DEVICES - 1);
    assert_eq!(context.mem_get_info().unwrap().0, total, "a context frees what it leaves");
    assert_eq!(code(unsafe { result::free_sync(held) }), CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn wrong_addresses_are_refused_before_anything_runs() {
    let context = own_context(0);
    context.bind_to_thread().unwrap();
    let base = unsafe { result::malloc_sync(100) }.unwrap();
    let mut host = [0u8; 128];
    let beyond = unsafe { result::memcpy_dtoh_sync(&mut host, base) };
    assert_eq!(code(beyond), CUDA_ERROR_INVALID_VALUE);
    let nowhere = unsafe { result::memcpy_htod_sync(0x10, &host) };
    assert_eq!(code(nowhere), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(code(unsafe { result::malloc_sync(0) }), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(code(unsafe { result::free_sync(base + 4) }), CUDA_ERROR_INVALID_VALUE);
    unsafe { result::free_sync(base) }.unwrap();
    assert_eq!(code(unsafe { result::free_sync(base) }), CUDA_ERROR_INVALID_VALUE);
    context.synchronize().unwrap();
}

#[test]
fn memsets_of_all_widths_and_pitches() {
    let context = own_context(0);
    context.bind_to_thread().unwrap();
    let base = unsafe { result::malloc_sync(64) }.unwrap();
    let read = || {
        let mut host = [0u8; 64];
        unsafe { result::memcpy_dtoh_sync(&mut host, base) }.unwrap();
        host
    };
    check(unsafe { sys::cuMemsetD8_v2(base, 1, 64) }).unwrap();
    check(unsafe { sys::cuMemsetD16_v2(base + 2, 0x0302, 2) }).unwrap();
    check(unsafe { sys::cuMemsetD32_v2(base + 8, 0x0706_0504, 1) }).unwrap();
    assert_eq!(read()[..13], [1, 1, 2, 3, 2, 3, 1, 1, 4, 5, 6, 7, 1]);
    check(unsafe { sys::cuMemsetD2D8_v2(base, 16, 9, 2, 3) }).unwrap();
    let host = read();
    assert_eq!([host[0], host[1], host[16], host[17], host[33], host[34]], [9, 9, 9, 9, 9, 1]);
    let odd = check(unsafe { sys::cuMemsetD32_v2(base + 1, 0, 1) });
    assert_eq!(code(odd), CUDA_ERROR_INVALID_VALUE);
    let long = check(unsafe { sys::cuMemsetD2D8_v2(base, 32, 9, 2, 3) });
    assert_eq!(code(long), CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn two_dimensional_copies() {
    let context = own_context(0);
    context.bind_to_thread().unwrap();
    let base = unsafe { result::malloc_sync(64) }.unwrap();
    let source: Vec<u8> = (0..20).collect();
    let mut copy = sys::CUDA_MEMCPY2D {
        srcXInBytes: 1,
        srcY: 0,
        srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: source.as_ptr().cast(),
        srcDevice: 0,
        srcArray: std::ptr::null_mut(),
        srcPitch: 5,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstHost: std::ptr::null_mut(),
        dstDevice: base,
        dstArray: std::ptr::null_mut(),
        dstPitch: 16,
        WidthInBytes: 3,
        Height: 4,
    };
    check(unsafe { sys::cuMemcpy2D_v2(&copy) }).unwrap();
    let mut host = [0u8; 64];
    unsafe { result::memcpy_dtoh_sync(&mut host, base) }.unwrap();
    assert_eq!(host[..4], [1, 2, 3, 0]);
    assert_eq!(host[48..52], [16, 17, 18, 0]);
    copy.Height = 5;
    assert_eq!(code(check(unsafe { sys::cuMemcpy2D_v2(&copy) })), CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn pinned_memory_is_shared_with_the_device() {
    let context = own_context(0);
    let stream = context.new_stream().unwrap();
    let mut pinned = unsafe { context.alloc_pinned::<u32>(1000) }.unwrap();
    pinned.as_mut_slice().unwrap().fill(3);
    let device = stream.clone_htod(&pinned).unwrap();
    assert_eq!(stream.clone_dtoh(&device).unwrap(), vec![3; 1000]);
    let host = pinned.as_mut_ptr().unwrap();
    let mut address = 0;
    let answer = unsafe { sys::cuMemHostGetDevicePointer_v2(&mut address, host.cast(), 0) };
    check(answer).unwrap();
    assert_eq!(address, host as u64);
    check(unsafe { sys::cuMemsetD32_v2(address, 8, 1000) }).unwrap();
    context.synchronize().unwrap();
    assert_eq!(pinned.as_slice().unwrap(), [8; 1000]);

    let mut own = vec![1u64; 512];
    let bytes = own.len() * 8;
    let begin: *mut c_void = own.as_mut_ptr().cast();
    check(unsafe { sys::cuMemHostRegister_v2(begin, bytes, 0) }).unwrap();
    let twice = check(unsafe { sys::cuMemHostRegister_v2(begin, bytes, 0) });
    assert_eq!(code(twice), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    check(unsafe { sys::cuMemHostUnregister(begin) }).unwrap();
    let gone = check(unsafe { sys::cuMemHostUnregister(begin) });
    assert_eq!(code(gone), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

#[test]
fn managed_memory_is_one_memory() {
    let context = own_context(0);
    let stream = context.default_stream();
    let mut slice = unsafe { context.alloc_unified::<f32>(256, true) }.unwrap();
    slice.as_mut_slice().unwrap().fill(2.5);
    assert_eq!(stream.clone_dtoh(&slice).unwrap(), vec![2.5; 256]);
    stream.memset_zeros(&mut slice).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(slice.as_slice().unwrap(), [0.0; 256]);
    slice.prefetch().unwrap();
}

#[test]
fn pointers_are_described() {
    let context = own_context(1);
    context.bind_to_thread().unwrap();
    let base = unsafe { result::malloc_sync(1000) }.unwrap();
    let ask = |which| {
        let mut value = 0u64;
        let to: *mut c_void = (&raw mut value).cast();
        check(unsafe { sys::cuPointerGetAttribute(to, which, base + 10) }).map(|()| value)
    };
    use sys::CUpointer_attribute::*;
    assert_eq!(ask(CU_POINTER_ATTRIBUTE_MEMORY_TYPE).unwrap(), 2);
    assert_eq!(ask(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL).unwrap(), 1);
    assert_eq!(ask(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR).unwrap(), base);
    assert_eq!(ask(CU_POINTER_ATTRIBUTE_RANGE_SIZE).unwrap(), 1000);
    assert_eq!(ask(CU_POINTER_ATTRIBUTE_CONTEXT).unwrap(), context.cu_ctx() as u64);
    assert_eq!(code(ask(CU_POINTER_ATTRIBUTE_HOST_POINTER)), CUDA_ERROR_INVALID_VALUE);
    let (mut begin, mut bytes) = (0, 0);
    check(unsafe { sys::cuMemGetAddressRange_v2(&mut begin, &mut bytes, base + 999) }).unwrap();
    assert_eq!((begin, bytes), (base, 1000));
    let after = check(unsafe { sys::cuMemGetAddressRange_v2(&mut begin, &mut bytes, base + 1000) });
    assert_eq!(code(after), CUDA_ERROR_NOT_FOUND);
}

#[test]
fn pools_count_what_they_give_out() {
    let context = own_context(2);
    let stream = context.new_stream().unwrap();
    context.bind_to_thread().unwrap();
    let device = context.cu_device();
    let mut props: sys::CUmemPoolProps = unsafe { std::mem::zeroed() };
    props.allocType = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    props.location.id = 2;
    let mut pool = std::ptr::null_mut();
    check(unsafe { sys::cuMemPoolCreate(&mut pool, &props) }).unwrap();
    let mut base = 0;
    let from = unsafe { sys::cuMemAllocFromPoolAsync(&mut base, 4096, pool, stream.cu_stream()) };
    check(from).unwrap();
    let used = |which| {
        let mut value = 0u64;
        let to: *mut c_void = (&raw mut value).cast();
        check(unsafe { sys::cuMemPoolGetAttribute(pool, which, to) }).unwrap();
        value
    };
    use sys::CUmemPool_attribute::*;
    assert_eq!(used(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 4096);
    unsafe { result::free_async(base, stream.cu_stream()) }.unwrap();
    let twice = unsafe { result::free_async(base, stream.cu_stream()) };
    assert_eq!(code(twice), CUDA_ERROR_INVALID_VALUE);
    stream.synchronize().unwrap();
    assert_eq!(used(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    assert_eq!(used(CU_MEMPOOL_ATTR_USED_MEM_HIGH), 4096);
    let default = unsafe { result::device::get_default_mem_pool(device) }.unwrap();
    assert_eq!(code(check(unsafe { sys::cuMemPoolDestroy(default) })), CUDA_ERROR_INVALID_VALUE);
    check(unsafe { sys::cuMemPoolDestroy(pool) }).unwrap();
    assert_eq!(code(check(unsafe { sys::cuMemPoolDestroy(pool) })), CUDA_ERROR_INVALID_HANDLE);
}
