//! Modules, libraries, functions and their attributes, and what is said of a bad image.

use std::ffi::{CStr, CString, c_void};
use std::io::Write;
use std::ptr::null_mut;

use cudarc::driver::{CudaContext, result, sys};
use cudarc::nvrtc::Ptx;
use sys::CUfunction_attribute::*;
use sys::CUresult::*;

use crate::ptx::{MANY, VECTOR_ADD};
use crate::setup::{code, emulator, function, load, own_context};

/// Loads an image with an error log, and returns the answer and the log.
fn load_with_log(image: &[u8], room: usize) -> (sys::CUresult, String, usize) {
    use sys::CUjit_option::*;
    let mut log = vec![0u8; room];
    let mut options = [CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), room as *mut c_void];
    let mut module = null_mut();
    let answer = unsafe {
        sys::cuModuleLoadDataEx(
            &mut module,
            image.as_ptr().cast(),
            2,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    let text = CStr::from_bytes_until_nul(&log).map(|text| text.to_string_lossy().into_owned());
    (answer, text.unwrap_or_default(), values[1] as usize)
}

#[test]
fn what_is_wrong_with_an_image_is_in_the_log() {
    let context = own_context(0);
    context.bind_to_thread().unwrap();
    let (answer, text, used) = load_with_log(b"\x7fELF\x02\x01\x01\x33", 200);
    assert_eq!(answer, CUDA_ERROR_NO_BINARY_FOR_GPU);
    assert!(text.contains("the emulator executes PTX; give it PTX, not a cubin"), "{text}");
    assert_eq!(used, text.len() + 1);
    let (answer, text, _) = load_with_log(&0xba55_ed50u32.to_le_bytes(), 200);
    assert_eq!(answer, CUDA_ERROR_NO_BINARY_FOR_GPU);
    assert!(text.contains("fat binary"), "{text}");
    let broken = VECTOR_ADD.replace("add.f32 %f3, %f1, %f2;", "frobnicate.f32 %f3;");
    let broken = CString::new(broken).unwrap();
    let (answer, text, _) = load_with_log(broken.as_bytes_with_nul(), 500);
    assert_eq!(answer, CUDA_ERROR_INVALID_PTX);
    assert!(text.contains("line 27") && text.contains("frobnicate"), "{text}");
    let (answer, text, used) = load_with_log(broken.as_bytes_with_nul(), 8);
    assert_eq!((answer, text.len(), used), (CUDA_ERROR_INVALID_PTX, 7, 8));
    let (answer, text, _) = load_with_log(b"\0", 100);
    assert_eq!(answer, CUDA_ERROR_INVALID_IMAGE);
    assert!(text.contains("empty"), "{text}");
    let newer = CString::new(VECTOR_ADD.replace("sm_80", "sm_100")).unwrap();
    let (answer, text, _) = load_with_log(newer.as_bytes_with_nul(), 500);
    assert_eq!(answer, CUDA_ERROR_INVALID_PTX);
    assert!(text.contains("100"), "{text}");
    let fine = CString::new(VECTOR_ADD).unwrap();
    let (answer, text, used) = load_with_log(fine.as_bytes_with_nul(), 500);
    assert_eq!((answer, text.as_str(), used), (CUDA_SUCCESS, "", 0));
}

#[test]
fn modules_come_from_text_and_from_files() {
    let context = own_context(0);
    let module = load(&context, VECTOR_ADD);
    let first = module.load_function("vector_add").unwrap();
    let missing = module.load_function("vector_sub");
    assert_eq!(code(missing), CUDA_ERROR_NOT_FOUND);
    assert_eq!(first.get_attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK).unwrap(), 1024);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(VECTOR_ADD.as_bytes()).unwrap();
    let module = context.load_module(Ptx::from_file(file.path())).unwrap();
    assert!(module.load_function("vector_add").is_ok());
    let nowhere = context.load_module(Ptx::from_file("/nonexistent.ptx"));
    assert_eq!(code(nowhere), CUDA_ERROR_FILE_NOT_FOUND);
}

#[test]
fn globals_have_addresses_and_initial_values() {
    let context = own_context(0);
    context.bind_to_thread().unwrap();
    let module = unsafe { result::module::load_data(CString::new(MANY).unwrap().as_ptr().cast()) };
    let module = module.unwrap();
    let global = |name: &CStr| {
        let (mut address, mut bytes) = (0, 0);
        let asked =
            unsafe { sys::cuModuleGetGlobal_v2(&mut address, &mut bytes, module, name.as_ptr()) };
        asked.result().map(|()| (address, bytes))
    };
    let (address, bytes) = global(c"factors").unwrap();
    assert_eq!(bytes, 12);
    let mut factors = [0u32; 3];
    unsafe { result::memcpy_dtoh_sync(&mut factors, address) }.unwrap();
    assert_eq!(factors, [2, 3, 5]);
    let (address, bytes) = global(c"counter").unwrap();
    assert_eq!(bytes, 4);
    unsafe { result::memcpy_htod_sync(address, &[70u32]) }.unwrap();
    assert_eq!(code(global(c"missing")), CUDA_ERROR_NOT_FOUND);
    let mut count = 0;
    unsafe { sys::cuModuleGetFunctionCount(&mut count, module) }.result().unwrap();
    assert_eq!(count, 7);
    let mut functions = [null_mut(); 7];
    let listed = unsafe { sys::cuModuleEnumerateFunctions(functions.as_mut_ptr(), count, module) };
    listed.result().unwrap();
    let names = functions.map(|function| {
        let mut name = std::ptr::null();
        unsafe { sys::cuFuncGetName(&mut name, function) }.result().unwrap();
        unsafe { CStr::from_ptr(name) }.to_str().unwrap().to_owned()
    });
    assert_eq!(names[0], "bump");
    assert!(names.contains(&"block_sum".to_owned()));
    unsafe { result::module::unload(module) }.unwrap();
    assert_eq!(code(global(c"counter")), CUDA_ERROR_INVALID_HANDLE);
    let stale = unsafe { sys::cuFuncLoad(functions[0]) };
    assert_eq!(stale, CUDA_ERROR_INVALID_HANDLE);
}

#[test]
fn functions_describe_their_parameters() {
    let context = own_context(0);
    let module = context.load_module(Ptx::from_src(VECTOR_ADD)).unwrap();
    context.bind_to_thread().unwrap();
    let raw = unsafe { raw_function(&context, VECTOR_ADD, c"vector_add") };
    let info = |index| {
        let (mut offset, mut bytes) = (0, 0);
        let asked = unsafe { sys::cuFuncGetParamInfo(raw, index, &mut offset, &mut bytes) };
        asked.result().map(|()| (offset, bytes))
    };
    let all: Vec<_> = (0..4).map(|index| info(index).unwrap()).collect();
    assert_eq!(all, [(0, 8), (8, 8), (16, 8), (24, 4)]);
    assert_eq!(code(info(4)), CUDA_ERROR_INVALID_VALUE);
    drop(module);
}

/// A function handle as C has it.
pub unsafe fn raw_function(context: &CudaContext, ptx: &str, name: &CStr) -> sys::CUfunction {
    context.bind_to_thread().unwrap();
    let text = CString::new(ptx).unwrap();
    let module = unsafe { result::module::load_data(text.as_ptr().cast()) }.unwrap();
    unsafe { result::module::get_function(module, name.to_owned()) }.unwrap()
}

#[test]
fn shared_memory_needs_opting_in() {
    let context = own_context(0);
    let sum = function(&context, MANY, "block_sum");
    let limit = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    assert_eq!(sum.get_attribute(limit).unwrap(), 48 << 10);
    sum.set_attribute(limit, 227 << 10).unwrap();
    assert_eq!(sum.get_attribute(limit).unwrap(), 227 << 10);
    assert_eq!(code(sum.set_attribute(limit, (227 << 10) + 1)), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(code(sum.set_attribute(limit, -1)), CUDA_ERROR_INVALID_VALUE);
    sum.set_function_cache_config(sys::CUfunc_cache::CU_FUNC_CACHE_PREFER_SHARED).unwrap();
    let bounded = function(&context, MANY, "bounded");
    let threads = bounded.get_attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK).unwrap();
    assert_eq!(threads, 64);
    assert_eq!(sum.get_attribute(CU_FUNC_ATTRIBUTE_BINARY_VERSION).unwrap(), 90);
    // The architecture that the PTX is for, and not the version that it is written in.
    let older = VECTOR_ADD.replace(".version 8.0", ".version 7.1");
    let older = function(&context, &older, "vector_add");
    assert_eq!(older.get_attribute(CU_FUNC_ATTRIBUTE_PTX_VERSION).unwrap(), 80);
}

#[test]
fn occupancy_follows_from_threads_and_shared_memory() {
    let context = own_context(0);
    let add = function(&context, VECTOR_ADD, "vector_add");
    let blocks = |threads, shared| {
        add.occupancy_max_active_blocks_per_multiprocessor(threads, shared, None).unwrap()
    };
    // 2048 threads, 32 blocks, 228 KiB of which 1 KiB is kept for each block.
    assert_eq!(blocks(256, 0), 8);
    assert_eq!(blocks(1024, 0), 2);
    assert_eq!(blocks(32, 0), 32);
    assert_eq!(blocks(64, 100 << 10), 2);
    assert_eq!(blocks(64, 227 << 10), 1);
    assert_eq!(blocks(64, 228 << 10), 0);
    extern "C" fn none(_: std::ffi::c_int) -> usize {
        0
    }
    let (grid, block) = add.occupancy_max_potential_block_size(none, 0, 0, None).unwrap();
    assert_eq!((grid, block), (32, 1024));
    let left = add.occupancy_available_dynamic_smem_per_block(4, 128).unwrap();
    assert_eq!(left, (228 << 10) / 4 - 1024);
    let clusters = add.occupancy_max_active_clusters(
        cudarc::driver::LaunchConfig::for_num_elems(1024),
        &context.default_stream(),
    );
    assert_eq!(code(clusters), CUDA_ERROR_NOT_SUPPORTED);
}

#[test]
fn libraries_load_where_they_are_used() {
    let (first, second) = (own_context(0), own_context(1));
    first.bind_to_thread().unwrap();
    let text = CString::new(MANY).unwrap();
    let mut library = null_mut();
    let loaded = unsafe {
        sys::cuLibraryLoadData(
            &mut library,
            text.as_ptr().cast(),
            null_mut(),
            null_mut(),
            0,
            null_mut(),
            null_mut(),
            0,
        )
    };
    loaded.result().unwrap();
    let (mut kernel, mut count) = (null_mut(), 0);
    unsafe { sys::cuLibraryGetKernelCount(&mut count, library) }.result().unwrap();
    assert_eq!(count, 7);
    unsafe { sys::cuLibraryGetKernel(&mut kernel, library, c"bump".as_ptr()) }.result().unwrap();
    let in_context = |context: &CudaContext| {
        context.bind_to_thread().unwrap();
        let mut function = null_mut();
        unsafe { sys::cuKernelGetFunction(&mut function, kernel) }.result().unwrap();
        function
    };
    let (one, two) = (in_context(&first), in_context(&second));
    assert_ne!(one, two);
    assert_eq!(one, in_context(&first));
    unsafe { sys::cuLibraryUnload(library) }.result().unwrap();
    assert_eq!(unsafe { sys::cuFuncLoad(one) }, CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(unsafe { sys::cuLibraryUnload(library) }, CUDA_ERROR_INVALID_HANDLE);
}

#[test]
fn the_version_is_told() {
    // SAFETY: the function's type as documented.
    let version: libloading::Symbol<unsafe extern "C" fn() -> *const std::ffi::c_char> =
        unsafe { emulator().get(b"wgEmulatorVersion").unwrap() };
    let text = unsafe { CStr::from_ptr(version()) };
    assert_eq!(text.to_str().unwrap(), env!("CARGO_PKG_VERSION"));
}

/// What a module keeps between launches, as the emulator reports it.
fn variables(ptx: &str) -> serde_json::Value {
    let context = own_context(0);
    context.bind_to_thread().unwrap();
    let text = CString::new(ptx).unwrap();
    let mut module = null_mut();
    // SAFETY: the text ends with a NUL.
    let answer = unsafe { sys::cuModuleLoadData(&mut module, text.as_ptr().cast()) };
    assert_eq!(answer, CUDA_SUCCESS);
    // SAFETY: the type of the function as documented.
    let tell: libloading::Symbol<unsafe extern "C" fn(sys::CUmodule, *mut u8, usize) -> usize> =
        unsafe { emulator().get(b"wgEmulatorModuleVariables").unwrap() };
    // SAFETY: without a buffer it only returns the length.
    let bytes = unsafe { tell(module, null_mut(), 0) };
    let mut buffer = vec![0u8; bytes];
    // SAFETY: the buffer has as many bytes as are said.
    assert_eq!(unsafe { tell(module, buffer.as_mut_ptr(), bytes) }, bytes);
    serde_json::from_slice(&buffer).unwrap()
}

#[test]
fn all_variables_of_a_module_are_told() {
    let told = variables(
        ".version 8.0\n.target sm_75\n.address_size 64\n\
         .global .align 4 .b8 other[4], stash[16384];\n\
         .const .align 4 .b8 a[4], b[64];\n\
         .visible .global .attribute(.managed) .align 4 .u32 shared_with_host;\n\
         .extern .func (.param .b64 r) malloc (.param .b64 n);\n\
         .extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b)\n\
         .global .u32 after_a_declaration;\n\
         .visible .entry k() { .shared .u32 s; ret; }\n",
    );
    let list = told["variables"].as_array().unwrap();
    let found = list.iter().map(|variable| {
        assert!(variable["address"].as_u64() > Some(0), "{variable}");
        let flags = (variable["constant"] == true, variable["managed"] == true);
        (variable["name"].as_str().unwrap(), variable["bytes"].as_u64().unwrap(), flags)
    });
    let (plain, constant, managed) = ((false, false), (true, false), (false, true));
    assert_eq!(
        found.collect::<Vec<_>>(),
        [
            ("other", 4, plain),
            ("stash", 16384, plain),
            ("a", 4, constant),
            ("b", 64, constant),
            ("shared_with_host", 4, managed),
            ("after_a_declaration", 4, plain),
        ]
    );
    assert_eq!(told["imports"], serde_json::json!(["malloc", "vprintf"]));
}
