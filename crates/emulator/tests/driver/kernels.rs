//! Launches: results, and the checks before them.

use std::ffi::c_void;
use std::ptr::null_mut;

use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg, sys};
use sys::CUresult::*;

use crate::modules::raw_function;
use crate::ptx::{BLOCKS, MANY, VECTOR_ADD};
use crate::setup::{again, code, counting, function, own_context};

pub fn config(grid: u32, block: u32, shared: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (grid, 1, 1), block_dim: (block, 1, 1), shared_mem_bytes: shared }
}

#[test]
fn vectors_are_added() {
    let context = own_context(0);
    let add = function(&context, VECTOR_ADD, "vector_add");
    for stream in [context.default_stream(), context.new_stream().unwrap()] {
        let n = 100_001u32;
        let a: Vec<f32> = (0..n).map(|index| index as f32 * 0.5).collect();
        let b: Vec<f32> = (0..n).map(|index| 1.0 / (index as f32 + 1.0)).collect();
        let (left, right) = (stream.clone_htod(&a).unwrap(), stream.clone_htod(&b).unwrap());
        let mut out = stream.alloc_zeros::<f32>(n as usize).unwrap();
        let mut launch = stream.launch_builder(&add);
        launch.arg(&left).arg(&right).arg(&mut out).arg(&n);
        launch.record_kernel_launch(sys::CUevent_flags::CU_EVENT_DEFAULT);
        let events = unsafe { launch.launch(LaunchConfig::for_num_elems(n)) }.unwrap().unwrap();
        let sum = stream.clone_dtoh(&out).unwrap();
        assert!(sum.iter().zip(a.iter().zip(&b)).all(|(sum, (a, b))| *sum == a + b));
        assert!(events.0.elapsed_ms(&events.1).unwrap() > 0.0);
    }
}

#[test]
fn dynamic_shared_memory_is_limited_as_set() {
    let context = own_context(0);
    let stream = context.default_stream();
    let sum = function(&context, MANY, "block_sum");
    let input = stream.clone_htod(&(1..=128u32).collect::<Vec<_>>()).unwrap();
    let mut out = stream.alloc_zeros::<u32>(1).unwrap();
    let mut run = |shared| {
        let mut launch = stream.launch_builder(&sum);
        launch.arg(&input).arg(&mut out);
        unsafe { launch.launch(config(1, 128, shared)) }.map(|_| ())
    };
    run(512).unwrap();
    assert_eq!(code(run((48 << 10) + 1)), CUDA_ERROR_INVALID_VALUE);
    let limit = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    sum.set_attribute(limit, 100 << 10).unwrap();
    run(100 << 10).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [128 * 129 / 2]);
}

#[test]
fn impossible_launches_are_refused_and_harm_nothing() {
    let context = own_context(0);
    let stream = context.default_stream();
    let bounded = function(&context, MANY, "bounded");
    let try_it = |grid, block| {
        let config = LaunchConfig { grid_dim: grid, block_dim: block, shared_mem_bytes: 0 };
        unsafe { stream.launch_builder(&bounded).launch(config) }
    };
    for (grid, block) in [
        ((0, 1, 1), (1, 1, 1)),
        ((1, 1, 1), (1, 0, 1)),
        ((1, 65536, 1), (1, 1, 1)),
        ((1, 1, 1), (1025, 1, 1)),
        ((1, 1, 1), (1, 1, 65)),
        ((1, 1, 1), (32, 33, 1)),
    ] {
        assert_eq!(code(try_it(grid, block)), CUDA_ERROR_INVALID_VALUE, "{grid:?} {block:?}");
    }
    assert_eq!(code(try_it((1, 1, 1), (65, 1, 1))), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    try_it((3, 2, 1), (64, 1, 1)).unwrap();
    stream.synchronize().unwrap();
    let raw = unsafe { raw_function(&context, VECTOR_ADD, c"vector_add") };
    let bare = unsafe {
        sys::cuLaunchKernel(raw, 1, 1, 1, 1, 1, 1, 0, null_mut(), null_mut(), null_mut())
    };
    assert_eq!(bare, CUDA_ERROR_INVALID_VALUE, "parameters are missing");
    let other = own_context(0);
    let foreign = other.new_stream().unwrap();
    let mixed = unsafe {
        let mut none: [*mut c_void; 4] = [(&raw const raw).cast_mut().cast(); 4];
        sys::cuLaunchKernel(
            raw,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            foreign.cu_stream(),
            none.as_mut_ptr(),
            null_mut(),
        )
    };
    assert_eq!(mixed, CUDA_ERROR_INVALID_HANDLE);
}

/// 1024 threads with more than 64 registers each do not fit the 65536 of a multiprocessor.
#[test]
fn registers_bound_the_block() {
    let context = own_context(0);
    let stream = context.default_stream();
    let lines = |line: &dyn Fn(u32) -> String| (0..100).map(line).collect::<String>();
    let ptx = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .visible .entry wide(.param .u64 out) {{\n.reg .b32 %r<101>;\n.reg .b64 %rd<2>;\n\
         ld.param.u64 %rd1, [out];\nmov.u32 %r100, 0;\n{}{}\
         st.global.u32 [%rd1], %r100;\nret;\n}}\n",
        lines(&|n| format!("ld.volatile.global.u32 %r{n}, [%rd1+{}];\n", 4 * n)),
        lines(&|n| format!("add.u32 %r100, %r100, %r{n};\n")),
    );
    let wide = function(&context, &ptx, "wide");
    let registers = wide.num_regs().unwrap();
    assert!((100..=128).contains(&registers), "{registers}");
    let most = wide.max_threads_per_block().unwrap() as u32;
    // Each of the four schedulers has its own quarter of the registers.
    assert_eq!(most, 65536 / 4 / (registers as u32 * 32) * 4 * 32);
    let mut out = stream.alloc_zeros::<u32>(100).unwrap();
    let mut run = |threads| {
        let mut launch = stream.launch_builder(&wide);
        launch.arg(&mut out);
        unsafe { launch.launch(config(1, threads, 0)) }.map(|_| ())
    };
    assert_eq!(code(run(1024)), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    // Whether that many registers would do after all, only an assembler could decide.
    assert_eq!(code(run(most + 1)), CUDA_ERROR_NOT_SUPPORTED);
    run(most).unwrap();
    stream.synchronize().unwrap();
}

/// An assembler that knows the size of the block keeps to the registers that there are for it.
#[test]
fn a_block_of_the_declared_size_always_fits() {
    let context = own_context(0);
    let stream = context.default_stream();
    let lines = |line: &dyn Fn(u32) -> String| (0..100).map(line).collect::<String>();
    let ptx = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .visible .entry wide(.param .u64 out) .maxntid 1024, 1, 1 {{\n.reg .b32 %r<101>;\n\
         .reg .b64 %rd<2>;\nld.param.u64 %rd1, [out];\nmov.u32 %r100, 0;\n{}{}\
         st.global.u32 [%rd1], %r100;\nret;\n}}\n",
        lines(&|n| format!("ld.volatile.global.u32 %r{n}, [%rd1+{}];\n", 4 * n)),
        lines(&|n| format!("add.u32 %r100, %r100, %r{n};\n")),
    );
    let wide = function(&context, &ptx, "wide");
    assert_eq!(wide.num_regs().unwrap(), 64);
    let mut out = stream.alloc_zeros::<u32>(100).unwrap();
    let mut launch = stream.launch_builder(&wide);
    launch.arg(&mut out);
    unsafe { launch.launch(config(1, 1024, 0)) }.unwrap();
    stream.synchronize().unwrap();
}

#[test]
fn what_only_the_emulator_lacks_has_a_code_of_its_own() {
    let context = own_context(0);
    let load = |body: &str| {
        let head = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry f()";
        let ptx = format!("{head} {body}\n");
        context.load_module(cudarc::nvrtc::Ptx::from_src(ptx)).map(|_| ())
    };
    let lacking = load("{ .reg .b32 %r<2>; vavrg4.u32.u32.u32 %r0, %r1, %r1, %r1; ret; }");
    assert_eq!(code(lacking), CUDA_ERROR_NOT_SUPPORTED);
    assert_eq!(code(load(".reqnctapercluster 2 { ret; }")), CUDA_ERROR_NOT_SUPPORTED);
    load(".explicitcluster .reqnctapercluster 1, 1, 1 { ret; }").unwrap();
    assert_eq!(code(load("{ vavrg5.u32 %r0; ret; }")), CUDA_ERROR_INVALID_PTX);
    assert_eq!(code(load("{ bra nowhere; ret; }")), CUDA_ERROR_INVALID_PTX);
}

#[test]
fn declared_shared_memory_is_checked_when_a_module_is_loaded() {
    let context = own_context(0);
    let with = |bytes: u32| {
        let ptx = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n\
             .visible .entry f() {{ .shared .align 4 .b8 s[{bytes}]; ret; }}\n"
        );
        context.load_module(cudarc::nvrtc::Ptx::from_src(ptx)).map(|_| ())
    };
    with(48 << 10).unwrap();
    assert_eq!(code(with((48 << 10) + 4)), CUDA_ERROR_INVALID_PTX);
}

#[test]
fn parameters_may_come_packed() {
    let context = own_context(0);
    let stream = context.default_stream();
    let raw = unsafe { raw_function(&context, MANY, c"bump") };
    let cell = stream.clone_htod(&[10u32]).unwrap();
    let mut packed = [0u8; 12];
    use cudarc::driver::DevicePtr;
    packed[..8].copy_from_slice(&cell.device_ptr(&stream).0.to_le_bytes());
    packed[8..].copy_from_slice(&5u32.to_le_bytes());
    let launch = |size: usize| {
        let mut extra = [1, packed.as_ptr() as usize, 2, (&raw const size) as usize, 0];
        let (none, extra) = (null_mut(), extra.as_mut_ptr().cast());
        unsafe { sys::cuLaunchKernel(raw, 1, 1, 1, 1, 1, 1, 0, null_mut(), none, extra) }
    };
    launch(12).result().unwrap();
    assert_eq!(stream.clone_dtoh(&cell).unwrap(), [15]);
    assert_eq!(launch(11), CUDA_ERROR_INVALID_VALUE);
}

/// Launches `bounded` with one launch attribute.
fn launch_ex(context: &CudaContext, grid: u32, attribute: sys::CUlaunchAttribute) -> sys::CUresult {
    let raw = unsafe { raw_function(context, MANY, c"bounded") };
    let mut attributes = [attribute];
    let config = sys::CUlaunchConfig {
        gridDimX: grid,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 64,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: null_mut(),
        attrs: attributes.as_mut_ptr(),
        numAttrs: 1,
    };
    unsafe { sys::cuLaunchKernelEx(&config, raw, null_mut(), null_mut()) }
}

#[test]
fn extended_launches_know_their_attributes() {
    use sys::CUlaunchAttributeID::*;
    let context = own_context(0);
    let with = |id, words: [u8; 12]| {
        let mut pad = [0; 64];
        pad[..12].copy_from_slice(&words.map(|byte| byte as i8));
        let value = sys::CUlaunchAttributeValue { pad };
        sys::CUlaunchAttribute { id, pad: [0; 4], value }
    };
    let cooperative = with(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    // 16 multiprocessors with 32 blocks of 64 threads.
    launch_ex(&context, 512, cooperative).result().unwrap();
    assert_eq!(launch_ex(&context, 513, cooperative), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    let single = [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0];
    let cluster = with(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, single);
    launch_ex(&context, 600, cluster).result().unwrap();
    let pair = [2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0];
    let cluster = with(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, pair);
    assert_eq!(launch_ex(&context, 600, cluster), CUDA_ERROR_NOT_SUPPORTED);
    let bounded = function(&context, MANY, "bounded");
    let stream = context.default_stream();
    unsafe { stream.launch_builder(&bounded).launch_cooperative(config(512, 64, 0)) }.unwrap();
    let large = unsafe { stream.launch_builder(&bounded).launch_cooperative(config(513, 64, 0)) };
    assert_eq!(code(large), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    context.synchronize().unwrap();
}

/// The block that writes last is another one in many launches, and no caller can predict it. It is fixed
/// where a seed is given, and where launches are counted.
#[test]
fn blocks_begin_in_another_order_each_time() {
    const ORDER: &str = "WARPGAUGE_EMULATOR_ORDER";
    const NAME: &str = "kernels::blocks_begin_in_another_order_each_time";
    let Ok(order) = std::env::var(ORDER) else {
        // Alone in processes with one worker: blocks end as they begin.
        let printed = |order| again(NAME, &[(ORDER, order), ("RAYON_NUM_THREADS", "1")]);
        let line = |order| printed(order).lines().find(|l| l.starts_with('[')).map(str::to_owned);
        assert_eq!(line("7"), line("7"));
        assert_ne!(line("7"), line("8"));
        assert_ne!(line("any"), line("any"), "a number that nobody knows");
        assert_eq!(line("0"), Some(format!("{:?}", [63u32; 20])));
        return;
    };
    let context = own_context(0);
    let stream = context.default_stream();
    let last = function(&context, BLOCKS, "last");
    let mut cell = stream.alloc_zeros::<u32>(1).unwrap();
    let mut run = || {
        unsafe { stream.launch_builder(&last).arg(&mut cell).launch(config(64, 1, 0)) }.unwrap();
        stream.clone_dtoh(&cell).unwrap()[0]
    };
    // Launches are counted unless one says otherwise.
    assert_eq!(run(), 63);
    counting(false);
    let all: Vec<u32> = (0..20).map(|_| run()).collect();
    println!("\n{all:?}");
    let different = all.iter().collect::<std::collections::HashSet<_>>().len();
    assert!(order == "0" || different > 5, "{all:?}");
    counting(true);
    assert_eq!(run(), 63);
}
