//! Faults and what they leave, kernels that run on, printing, and the report.

use std::ptr::null_mut;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaFunction, PushKernelArg, result, sys};
use sys::CUresult::*;

use crate::kernels::config;
use crate::ptx::{BLOCKS, MANY, PRINT, VECTOR_ADD};
use crate::setup::{again, code, emulator, function, own_context, sanitizing};

fn fault(context: &Arc<CudaContext>, kernel: &CudaFunction, at: Option<u64>) -> sys::CUresult {
    let stream = context.default_stream();
    let mut launch = stream.launch_builder(kernel);
    if let Some(at) = &at {
        launch.arg(at);
    }
    unsafe { launch.launch(config(1, 1, 0)) }.unwrap();
    code(stream.synchronize())
}

#[test]
fn a_fault_stays_with_its_context() {
    let healthy = own_context(0);
    for (name, expected) in [
        ("bad_store", CUDA_ERROR_ILLEGAL_ADDRESS),
        ("misaligned", CUDA_ERROR_MISALIGNED_ADDRESS),
        ("stop", CUDA_ERROR_LAUNCH_FAILED),
    ] {
        let context = own_context(0);
        let kernel = function(&context, MANY, name);
        context.bind_to_thread().unwrap();
        let held = unsafe { result::malloc_sync(64) }.unwrap();
        let event = context.new_event(None).unwrap();
        assert_eq!(fault(&context, &kernel, (name == "misaligned").then_some(held)), expected);
        // From now on everything fails alike.
        let stream = context.default_stream();
        assert_eq!(code(context.synchronize()), expected, "{name}");
        assert_eq!(code(stream.clone_htod(&[1u8])), expected);
        assert_eq!(code(unsafe { result::malloc_sync(4) }), expected);
        assert_eq!(code(unsafe { result::free_sync(held) }), expected);
        assert_eq!(code(event.record(&stream)), expected);
        assert_eq!(code(event.try_is_complete()), expected);
        assert_eq!(unsafe { sys::cuStreamQuery(stream.cu_stream()) }, expected);
        let elapsed = unsafe { result::event::elapsed(event.cu_event(), event.cu_event()) };
        assert_eq!(code(elapsed), expected);
        assert_eq!(
            code(unsafe { stream.launch_builder(&kernel).launch(config(1, 1, 0)) }),
            expected
        );
        assert_eq!(code(context.new_stream()), expected);
        // What does not need the context works, and so do other contexts.
        assert_eq!(context.cu_ctx(), result::ctx::get_current().unwrap().unwrap());
        let other = healthy.default_stream();
        let data = other.clone_htod(&[1u8, 2]).unwrap();
        assert_eq!(other.clone_dtoh(&data).unwrap(), [1, 2]);
    }
}

#[test]
fn a_failed_primary_context_is_replaced_by_a_new_one() {
    const ROLE: &str = "WARPGAUGE_TEST_PRIMARY";
    if std::env::var_os(ROLE).is_none() {
        // Alone in a process: no other test holds the primary context.
        again("faults::a_failed_primary_context_is_replaced_by_a_new_one", &[(ROLE, "1")]);
        return;
    }
    emulator();
    let context = CudaContext::new(0).unwrap();
    let kernel = function(&context, MANY, "stop");
    assert_eq!(fault(&context, &kernel, None), CUDA_ERROR_LAUNCH_FAILED);
    assert_eq!(code(CudaContext::new(0).unwrap().synchronize()), CUDA_ERROR_LAUNCH_FAILED);
    drop(kernel);
    drop(context);
    let context = CudaContext::new(0).unwrap();
    let stream = context.default_stream();
    let data = stream.clone_htod(&[4u8, 2]).unwrap();
    assert_eq!(stream.clone_dtoh(&data).unwrap(), [4, 2]);
}

#[test]
fn work_after_a_fault_is_not_done() {
    let context = own_context(0);
    let kernel = function(&context, MANY, "bad_store");
    let bump = function(&context, MANY, "bump");
    let stream = context.new_stream().unwrap();
    let mut pinned = unsafe { context.alloc_pinned::<u32>(1) }.unwrap();
    pinned.as_mut_slice().unwrap()[0] = 1;
    let at = pinned.as_mut_ptr().unwrap();
    unsafe { stream.launch_builder(&kernel).launch(config(1, 1, 0)) }.unwrap();
    // May be refused already, if the fault has come to light.
    let (address, by) = (at as u64, 1u32);
    let later =
        unsafe { stream.launch_builder(&bump).arg(&address).arg(&by).launch(config(1, 1, 0)) };
    if let Err(error) = later {
        assert_eq!(error.0, CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    assert_eq!(code(stream.synchronize()), CUDA_ERROR_ILLEGAL_ADDRESS);
    // SAFETY: pinned memory lives until its context ends; nothing runs any more.
    assert_eq!(unsafe { at.read_volatile() }, 1);
}

#[test]
fn a_kernel_runs_while_the_host_goes_on() {
    let context = own_context(0);
    let stream = context.new_stream().unwrap();
    let kernel = function(&context, MANY, "forever");
    let mut pinned = unsafe { context.alloc_pinned::<u32>(1) }.unwrap();
    pinned.as_mut_slice().unwrap()[0] = 0;
    let at = pinned.as_mut_ptr().unwrap();
    let address = at as u64;
    unsafe { stream.launch_builder(&kernel).arg(&address).launch(config(1, 32, 0)) }.unwrap();
    let event = stream.record_event(None).unwrap();
    assert!(!event.is_complete());
    // Another stream works meanwhile.
    let other = context.new_stream().unwrap();
    let data = other.clone_htod(&[5u32; 100]).unwrap();
    assert_eq!(other.clone_dtoh(&data).unwrap(), [5; 100]);
    assert!(!event.is_complete());
    // SAFETY: pinned memory that the kernel polls.
    unsafe { at.write_volatile(1) };
    event.synchronize().unwrap();
}

#[test]
fn a_runaway_kernel_ends_at_the_time_limit() {
    const LIMIT: &str = "WARPGAUGE_EMULATOR_TIMEOUT_MS";
    if std::env::var_os(LIMIT).is_none() {
        again("faults::a_runaway_kernel_ends_at_the_time_limit", &[(LIMIT, "50")]);
        return;
    }
    let context = own_context(0);
    let kernel = function(&context, MANY, "forever");
    context.bind_to_thread().unwrap();
    let cell = unsafe { result::malloc_sync(4) }.unwrap();
    unsafe { result::memset_d8_sync(cell, 0, 4) }.unwrap();
    assert_eq!(fault(&context, &kernel, Some(cell)), CUDA_ERROR_LAUNCH_TIMEOUT);
}

#[test]
fn a_process_ends_with_a_kernel_running() {
    const ROLE: &str = "WARPGAUGE_TEST_EXIT";
    if std::env::var_os(ROLE).is_none() {
        again("faults::a_process_ends_with_a_kernel_running", &[(ROLE, "1")]);
        return;
    }
    let context = own_context(0);
    let kernel = function(&context, MANY, "forever");
    context.bind_to_thread().unwrap();
    let cell = unsafe { result::malloc_sync(4) }.unwrap();
    unsafe { result::memset_d8_sync(cell, 0, 4) }.unwrap();
    let stream = context.new_stream().unwrap();
    unsafe { stream.launch_builder(&kernel).arg(&cell).launch(config(64, 256, 0)) }.unwrap();
    std::process::exit(0);
}

#[test]
fn kernels_print_to_standard_output_when_somebody_waits() {
    const ROLE: &str = "WARPGAUGE_TEST_PRINT";
    if std::env::var_os(ROLE).is_none() {
        let text =
            again("faults::kernels_print_to_standard_output_when_somebody_waits", &[(ROLE, "1")]);
        let at = |needle: &str| text.find(needle).unwrap_or_else(|| panic!("{needle}: {text}"));
        assert!(at("before waiting") < at("value is 41"));
        assert!(at("value is 41") < at("value is 42"));
        // The buffer holds two lines; the third was dropped.
        assert!(!text.contains("value is 43"), "{text}");
        assert!(at("value is 42") < at("value is 44"));
        return;
    }
    let context = own_context(0);
    context.set_limit(sys::CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE, 30).unwrap();
    let say = function(&context, PRINT, "say");
    let stream = context.new_stream().unwrap();
    let run = |value: u32| {
        unsafe { stream.launch_builder(&say).arg(&value).launch(config(1, 1, 0)) }.unwrap();
    };
    run(41);
    run(42);
    run(43);
    println!("before waiting");
    stream.synchronize().unwrap();
    run(44);
    context.synchronize().unwrap();
}

/// The report since the last call.
fn take_report() -> String {
    // SAFETY: the function's type as documented.
    let take: libloading::Symbol<unsafe extern "C" fn(*mut u8, usize) -> usize> =
        unsafe { emulator().get(b"wgEmulatorTakeReport").unwrap() };
    let needed = unsafe { take(null_mut(), 0) };
    let mut text = vec![0; needed + 1024];
    let length = unsafe { take(text.as_mut_ptr(), text.len()) };
    text.truncate(length);
    String::from_utf8(text).unwrap()
}

#[test]
fn kernels_are_counted_and_checked() {
    const ROLE: &str = "WARPGAUGE_TEST_REPORT";
    if std::env::var_os(ROLE).is_none() {
        // Alone in a process: the report is the process's.
        again("faults::kernels_are_counted_and_checked", &[(ROLE, "1")]);
        return;
    }
    let context = own_context(0);
    let add = function(&context, VECTOR_ADD, "vector_add");
    let stream = context.default_stream();
    let run = |n: u32| {
        let mut out = stream.alloc_zeros::<f32>(1024).unwrap();
        let input = stream.clone_htod(&[1.0f32; 1024]).unwrap();
        let mut launch = stream.launch_builder(&add);
        launch.arg(&input).arg(&input).arg(&mut out).arg(&n);
        unsafe { launch.launch(config(8, 128, 0)) }.unwrap();
        stream.synchronize().unwrap();
    };
    run(1024);
    run(1024);
    let first = take_report();
    assert!(first.contains(r#""name":"vector_add","launches":2,"#), "{first}");
    let number = |text: &str, name: &str| {
        let at = text.find(&format!("\"{name}\":")).unwrap_or_else(|| panic!("{name}: {text}"));
        let digits = text[at + name.len() + 3..].split(|letter: char| !letter.is_ascii_digit());
        digits.into_iter().next().unwrap().parse::<u64>().unwrap()
    };
    let instructions = number(&first, "thread_instructions");
    assert_eq!(instructions % 2048, 0, "each of the threads does the same");
    // All warps are full; the guard of the one branch holds for no thread.
    let issued = number(&first, "warp_instructions") * 32;
    assert_eq!(issued, instructions + 2048);
    run(1024);
    assert_eq!(number(&take_report(), "thread_instructions") * 2, instructions);
    sanitizing(true);
    // The sanitiser lists a wrong access, skips it and goes on.
    let bad = function(&context, MANY, "bad_store");
    let launch = || unsafe { stream.launch_builder(&bad).launch(config(2, 1, 0)) }.unwrap();
    launch();
    stream.synchronize().unwrap();
    let report = take_report();
    assert!(report.contains(r#""check":"out_of_bounds","kernel":"bad_store""#), "{report}");
    assert!(report.contains(r#""count":2}"#), "{report}");
    // SAFETY: the function's type as documented.
    let protect: libloading::Symbol<unsafe extern "C" fn(u64, u32) -> u32> =
        unsafe { emulator().get(b"wgEmulatorSetReadOnly").unwrap() };
    let input = unsafe { result::malloc_sync(4) }.unwrap();
    unsafe { result::memset_d8_sync(input, 0, 4) }.unwrap();
    assert_eq!(unsafe { protect(input, 1) }, 0);
    assert_eq!(unsafe { protect(0x40, 1) }, CUDA_ERROR_INVALID_VALUE as u32);
    let bump = function(&context, MANY, "bump");
    unsafe { stream.launch_builder(&bump).arg(&input).arg(&1u32).launch(config(1, 1, 0)) }.unwrap();
    stream.synchronize().unwrap();
    let report = take_report();
    assert!(report.contains(r#""check":"read_only_write","kernel":"bump""#), "{report}");
    // Without it, the first wrong access ends the kernel.
    sanitizing(false);
    launch();
    assert_eq!(code(stream.synchronize()), CUDA_ERROR_ILLEGAL_ADDRESS);
    let report = take_report();
    assert!(report.contains(r#"{"subject":"bad_store","text":"out of bounds 4-byte write"#));
    assert!(report.contains(r#""check":"out_of_bounds","kernel":"bad_store""#), "{report}");
    assert!(take_report().contains(r#""messages":[]"#));
}

#[test]
fn races_between_blocks_are_reported() {
    const ROLE: &str = "WARPGAUGE_TEST_RACES";
    if std::env::var_os(ROLE).is_none() {
        // Alone in a process: the report is the process's.
        again("faults::races_between_blocks_are_reported", &[(ROLE, "1")]);
        return;
    }
    let context = own_context(0);
    let stream = context.default_stream();
    let mut cell = stream.alloc_zeros::<u32>(1).unwrap();
    sanitizing(true);
    for (name, blocks, finding) in [("add", 1, false), ("add", 8, true), ("last", 1, false)] {
        let kernel = function(&context, BLOCKS, name);
        let config = config(blocks, 1, 0);
        unsafe { stream.launch_builder(&kernel).arg(&mut cell).launch(config) }.unwrap();
        stream.synchronize().unwrap();
        let report = take_report();
        let told = report.contains(r#""check":"global_race","kernel":"add","block":["#);
        assert_eq!(told, finding, "{report}");
        assert_eq!(report.contains(r#""findings":[]"#), !finding, "{report}");
    }
}
