//! Capture and replay.

use std::ffi::c_void;
use std::ptr::null_mut;

use cudarc::driver::{LaunchConfig, PushKernelArg, result, sys};
use sys::CUgraphInstantiate_flags as Flags;
use sys::CUresult::*;
use sys::CUstreamCaptureMode::*;
use sys::CUstreamCaptureStatus::*;

use crate::ptx::MANY;
use crate::setup::{code, function, own_context};

const ONE: LaunchConfig =
    LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };

#[test]
fn a_captured_graph_repeats_its_work() {
    let context = own_context(0);
    // SAFETY: everything here is in one stream.
    unsafe { context.disable_event_tracking() };
    let stream = context.new_stream().unwrap();
    let bump = function(&context, MANY, "bump");
    let mut cells = stream.clone_htod(&[1u32; 8]).unwrap();
    let mut copy = stream.alloc_zeros::<u32>(8).unwrap();
    stream.synchronize().unwrap();
    stream.begin_capture(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).unwrap();
    assert_eq!(stream.capture_status().unwrap(), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    {
        // The parameters are read now, not at replay.
        let by = 10u32;
        unsafe { stream.launch_builder(&bump).arg(&mut cells).arg(&by).launch(ONE) }.unwrap();
    }
    stream.memcpy_dtod(&cells, &mut copy).unwrap();
    stream.memset_zeros(&mut cells.slice_mut(4..8)).unwrap();
    let graph = stream.end_capture(Flags(0)).unwrap().unwrap();
    assert_eq!(stream.capture_status().unwrap(), CU_STREAM_CAPTURE_STATUS_NONE);
    assert_eq!(stream.clone_dtoh(&cells).unwrap(), [1; 8], "nothing has run");

    let mut count = 0;
    unsafe { sys::cuGraphGetNodes(graph.cu_graph(), null_mut(), &mut count) }.result().unwrap();
    assert_eq!(count, 3);
    let mut nodes = [null_mut(); 3];
    let asked = unsafe { sys::cuGraphGetNodes(graph.cu_graph(), nodes.as_mut_ptr(), &mut count) };
    asked.result().unwrap();
    let kinds = nodes.map(|node| {
        let mut kind = sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY;
        unsafe { sys::cuGraphNodeGetType(node, &mut kind) }.result().unwrap();
        kind as u32
    });
    assert_eq!(kinds, [0, 1, 2], "kernel, copy, memset");

    graph.upload().unwrap();
    graph.launch().unwrap();
    assert_eq!(stream.clone_dtoh(&copy).unwrap(), [11, 1, 1, 1, 1, 1, 1, 1]);
    graph.launch().unwrap();
    graph.launch().unwrap();
    assert_eq!(stream.clone_dtoh(&copy).unwrap(), [31, 1, 1, 1, 0, 0, 0, 0]);
}

#[test]
fn streams_fork_and_join_in_a_capture() {
    let context = own_context(0);
    // SAFETY: the streams are ordered by hand.
    unsafe { context.disable_event_tracking() };
    let (first, second) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let bump = function(&context, MANY, "bump");
    let cells = first.clone_htod(&[0u32; 2]).unwrap();
    let (left, right) = (cells.slice(0..1), cells.slice(1..2));
    first.synchronize().unwrap();
    first.begin_capture(CU_STREAM_CAPTURE_MODE_GLOBAL).unwrap();
    unsafe { first.launch_builder(&bump).arg(&left).arg(&1u32).launch(ONE) }.unwrap();
    second.join(&first).unwrap();
    assert_eq!(second.capture_status().unwrap(), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    unsafe { second.launch_builder(&bump).arg(&right).arg(&2u32).launch(ONE) }.unwrap();
    unsafe { first.launch_builder(&bump).arg(&left).arg(&4u32).launch(ONE) }.unwrap();
    let early = first.end_capture(Flags(0));
    assert_eq!(code(early), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    assert_eq!(second.capture_status().unwrap(), CU_STREAM_CAPTURE_STATUS_NONE);

    first.begin_capture(CU_STREAM_CAPTURE_MODE_GLOBAL).unwrap();
    unsafe { first.launch_builder(&bump).arg(&left).arg(&1u32).launch(ONE) }.unwrap();
    second.join(&first).unwrap();
    unsafe { second.launch_builder(&bump).arg(&right).arg(&2u32).launch(ONE) }.unwrap();
    let unmatched = second.end_capture(Flags(0));
    assert_eq!(code(unmatched), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    assert_eq!(code(first.end_capture(Flags(0))), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

    first.begin_capture(CU_STREAM_CAPTURE_MODE_GLOBAL).unwrap();
    second.join(&first).unwrap();
    unsafe { second.launch_builder(&bump).arg(&right).arg(&2u32).launch(ONE) }.unwrap();
    unsafe { first.launch_builder(&bump).arg(&left).arg(&1u32).launch(ONE) }.unwrap();
    first.join(&second).unwrap();
    unsafe { first.launch_builder(&bump).arg(&right).arg(&10u32).launch(ONE) }.unwrap();
    let graph = first.end_capture(Flags(0)).unwrap().unwrap();
    let mut edges = 0;
    let asked = unsafe {
        sys::cuGraphGetEdges_v2(graph.cu_graph(), null_mut(), null_mut(), null_mut(), &mut edges)
    };
    asked.result().unwrap();
    assert_eq!(edges, 2);
    graph.launch().unwrap();
    graph.launch().unwrap();
    assert_eq!(first.clone_dtoh(&cells).unwrap(), [2, 24]);
}

#[test]
fn what_cannot_be_captured_spoils_the_capture() {
    let context = own_context(0);
    // SAFETY: everything here is in one stream.
    unsafe { context.disable_event_tracking() };
    let stream = context.new_stream().unwrap();
    let outside = context.new_stream().unwrap().record_event(None).unwrap();
    let begin = || stream.begin_capture(CU_STREAM_CAPTURE_MODE_RELAXED).unwrap();
    begin();
    assert_eq!(code(stream.synchronize()), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_eq!(stream.capture_status().unwrap(), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    assert_eq!(code(stream.end_capture(Flags(0))), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin();
    assert_eq!(code(stream.wait(&outside)), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    assert_eq!(code(stream.end_capture(Flags(0))), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin();
    let inside = stream.record_event(None).unwrap();
    assert_eq!(code(inside.synchronize()), CUDA_ERROR_CAPTURED_EVENT);
    assert_eq!(
        code(stream.begin_capture(CU_STREAM_CAPTURE_MODE_RELAXED)),
        CUDA_ERROR_ILLEGAL_STATE
    );
    let both = Flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
        | Flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
    assert_eq!(code(stream.end_capture(both)), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(code(stream.end_capture(Flags(0))), CUDA_ERROR_ILLEGAL_STATE);
}

#[test]
fn a_capture_is_tied_to_its_thread_and_keeps_the_legacy_stream_out() {
    let context = own_context(0);
    context.bind_to_thread().unwrap();
    let legacy = context.default_stream();
    let refused = legacy.begin_capture(CU_STREAM_CAPTURE_MODE_GLOBAL);
    assert_eq!(code(refused), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);

    let raw = result::stream::create(result::stream::StreamKind::Default).unwrap();
    let mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    unsafe { result::stream::begin_capture(raw, mode) }.unwrap();
    let implied = legacy.clone_htod(&[1u8]);
    assert_eq!(code(implied), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    // cudarc remembers that it could not release the slice either.
    assert_eq!(code(context.check_err()), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    let elsewhere = std::thread::spawn({
        let (context, raw) = (context.clone(), raw as usize);
        move || {
            context.bind_to_thread().unwrap();
            code(unsafe { result::stream::end_capture(raw as sys::CUstream) })
        }
    });
    assert_eq!(elsewhere.join().unwrap(), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    let empty = unsafe { result::stream::end_capture(raw) }.unwrap();
    unsafe { result::graph::destroy(empty) }.unwrap();
    assert_eq!(code(unsafe { result::graph::destroy(empty) }), CUDA_ERROR_INVALID_HANDLE);
    unsafe { result::stream::destroy(raw) }.unwrap();
}

#[test]
fn memory_allocated_in_a_capture_belongs_to_the_graph() {
    let context = own_context(0);
    // SAFETY: everything here is in one stream.
    unsafe { context.disable_event_tracking() };
    let stream = context.new_stream().unwrap();
    let bump = function(&context, MANY, "bump");
    let mut out = stream.alloc_zeros::<u32>(1).unwrap();
    stream.synchronize().unwrap();
    stream.begin_capture(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).unwrap();
    {
        let mut scratch = stream.alloc_zeros::<u32>(1).unwrap();
        unsafe { stream.launch_builder(&bump).arg(&mut scratch).arg(&9u32).launch(ONE) }.unwrap();
        stream.memcpy_dtod(&scratch, &mut out).unwrap();
    }
    let graph = stream.end_capture(Flags(0)).unwrap().unwrap();
    for _ in 0..2 {
        graph.launch().unwrap();
        assert_eq!(stream.clone_dtoh(&out).unwrap(), [9]);
    }
}

#[test]
fn graphs_are_built_by_hand() {
    let context = own_context(0);
    context.bind_to_thread().unwrap();
    let cell = unsafe { result::malloc_sync(16) }.unwrap();
    let mut graph = null_mut();
    unsafe { sys::cuGraphCreate(&mut graph, 0) }.result().unwrap();
    let memset = |value, width| sys::CUDA_MEMSET_NODE_PARAMS {
        dst: cell,
        pitch: 0,
        value,
        elementSize: 4,
        width,
        height: 1,
    };
    let (mut first, mut second) = (null_mut(), null_mut());
    let ctx = context.cu_ctx();
    unsafe {
        let added =
            sys::cuGraphAddMemsetNode(&mut second, graph, null_mut(), 0, &memset(2, 1), ctx);
        added.result().unwrap();
        let added = sys::cuGraphAddMemsetNode(&mut first, graph, null_mut(), 0, &memset(1, 4), ctx);
        added.result().unwrap();
        // The node that was added first comes second.
        let tied = sys::cuGraphAddDependencies_v2(graph, &first, &second, null_mut(), 1);
        tied.result().unwrap();
    }
    let exec = unsafe { result::graph::instantiate(graph, Flags(0)) }.unwrap();
    let stream: sys::CUstream = null_mut();
    let read = || {
        let mut host = [0u32; 4];
        unsafe { result::memcpy_dtoh_sync(&mut host, cell) }.unwrap();
        host
    };
    unsafe { result::graph::launch(exec, stream) }.unwrap();
    assert_eq!(read(), [2, 1, 1, 1]);
    let changed = unsafe { sys::cuGraphExecMemsetNodeSetParams(exec, second, &memset(7, 2), ctx) };
    changed.result().unwrap();
    unsafe { result::graph::launch(exec, stream) }.unwrap();
    assert_eq!(read(), [7, 7, 1, 1]);
    unsafe {
        let tied = sys::cuGraphAddDependencies_v2(graph, &second, &first, null_mut(), 1);
        tied.result().unwrap();
    }
    let cycle = unsafe { result::graph::instantiate(graph, Flags(0)) };
    assert_eq!(code(cycle), CUDA_ERROR_INVALID_VALUE);
    unsafe { result::graph::destroy(graph) }.unwrap();
    unsafe { result::graph::launch(exec, stream) }.unwrap();
    context.synchronize().unwrap();
    unsafe { result::graph::exec_destroy(exec) }.unwrap();
}

#[test]
fn host_functions_run_at_replay() {
    unsafe extern "C" fn add_one(data: *mut c_void) {
        // SAFETY: points to the counter below, which outlives the replays.
        unsafe { *data.cast::<u32>() += 1 };
    }
    let context = own_context(0);
    let stream = context.new_stream().unwrap();
    let mut counter = 0u32;
    stream.begin_capture(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).unwrap();
    let data = (&raw mut counter).cast();
    unsafe { sys::cuLaunchHostFunc(stream.cu_stream(), Some(add_one), data) }.result().unwrap();
    let graph = stream.end_capture(Flags(0)).unwrap().unwrap();
    graph.launch().unwrap();
    graph.launch().unwrap();
    stream.synchronize().unwrap();
    assert_eq!(unsafe { data.cast::<u32>().read_volatile() }, 2);
}
