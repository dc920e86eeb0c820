//! Streams, events, default streams of threads, host functions and graphs.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};

use crate::program::{CAPTURED, HELD_UP, ONE, Program, begin, launch, memory, word};
use crate::ptx::PROGRAM;
use crate::sys::*;

fn stream() -> usize {
    let mut out = 0;
    assert_eq!(unsafe { cudaStreamCreate(&mut out) }, 0);
    out
}

fn event() -> usize {
    let mut out = 0;
    assert_eq!(unsafe { cudaEventCreate(&mut out) }, 0);
    out
}

/// Waits, in a stream, until the test lets it go.
unsafe extern "C" fn wait(gate: *mut c_void) {
    // SAFETY: the test's own receiver, which it keeps until the stream is done.
    let gate = unsafe { &*gate.cast::<Receiver<()>>() };
    let _ = gate.recv();
}

unsafe extern "C" fn count(number: *mut c_void) {
    // SAFETY: the test's own number, which it keeps until the stream is done.
    unsafe { &*number.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn streams_wait_for_events() {
    let program = Program::new(PROGRAM);
    let (double, add_one) = (program.kernel("double"), program.kernel("add_one"));
    let (first, second, done) = (stream(), stream(), event());
    let at = memory(4);
    assert_eq!(unsafe { cudaMemset(at, 0, 4) }, 0);
    assert_eq!(unsafe { cudaDeviceSynchronize() }, 0);
    let (open, gate) = channel::<()>();
    let place = (&raw const gate).cast::<c_void>().cast_mut();
    assert_eq!(unsafe { cudaLaunchHostFunc(first, wait, place) }, 0);
    assert_eq!(launch(add_one, 3, at, 0, first), 0);
    assert_eq!(unsafe { cudaEventRecord(done, first) }, 0);
    assert_eq!(unsafe { cudaStreamWaitEvent(second, done, 0) }, 0);
    assert_eq!(launch(double, 1, at, 0, second), 0);
    assert_eq!(unsafe { cudaStreamQuery(second) }, NOT_READY);
    assert_eq!(unsafe { cudaGetLastError() }, NOT_READY);
    open.send(()).unwrap();
    assert_eq!(unsafe { cudaStreamSynchronize(second) }, 0);
    assert_eq!(unsafe { cudaStreamQuery(second) }, 0);
    assert_eq!(word(at), 6);
    assert_eq!(unsafe { cudaStreamDestroy(first) }, 0);
    assert_eq!(unsafe { cudaStreamDestroy(second) }, 0);
    assert_eq!(unsafe { cudaStreamSynchronize(first) }, 400);
}

#[test]
fn events_measure_time_and_host_functions_run() {
    begin();
    let (stream, start, end) = (stream(), event(), event());
    let number = AtomicU32::new(0);
    let place = (&raw const number).cast::<c_void>().cast_mut();
    assert_eq!(unsafe { cudaEventRecord(start, stream) }, 0);
    assert_eq!(unsafe { cudaLaunchHostFunc(stream, count, place) }, 0);
    assert_eq!(unsafe { cudaEventRecord(end, stream) }, 0);
    assert_eq!(unsafe { cudaEventSynchronize(end) }, 0);
    assert_eq!(number.load(Ordering::SeqCst), 1);
    let mut milliseconds = -1.0;
    assert_eq!(unsafe { cudaEventElapsedTime(&mut milliseconds, start, end) }, 0);
    assert!(milliseconds > 0.0, "{milliseconds}");
    assert_eq!(unsafe { cudaEventElapsedTime(&mut milliseconds, end, event()) }, 400);
}

#[test]
fn a_program_can_have_a_default_stream_for_each_thread() {
    let add_one = Program::new(PROGRAM).kernel("add_one");
    assert_eq!(unsafe { cudaSetDevice(HELD_UP) }, 0);
    let blocking = stream();
    let at = memory(4);
    assert_eq!(unsafe { cudaMemset(at, 0, 4) }, 0);
    assert_eq!(unsafe { cudaDeviceSynchronize() }, 0);
    let (open, gate) = channel::<()>();
    let place = (&raw const gate).cast::<c_void>().cast_mut();
    assert_eq!(unsafe { cudaLaunchHostFunc(blocking, wait, place) }, 0);
    // The legacy default stream would wait for the other one: this would not return.
    let arguments = [(&raw const at).cast::<c_void>()];
    let block = Dim3(2, 1, 1);
    let own = unsafe { cudaLaunchKernel_ptsz(add_one, ONE, block, arguments.as_ptr(), 0, 0) };
    assert_eq!(own, 0);
    assert_eq!(unsafe { cudaStreamSynchronize_ptsz(0) }, 0);
    open.send(()).unwrap();
    assert_eq!(word(at), 2);
}

#[test]
fn what_a_stream_captures_is_a_graph() {
    let program = Program::new(PROGRAM);
    let (double, add_one) = (program.kernel("double"), program.kernel("add_one"));
    assert_eq!(unsafe { cudaSetDevice(CAPTURED) }, 0);
    let (stream, at) = (stream(), memory(4));
    let (mut graph, mut exec) = (0, 0);
    let number = AtomicU32::new(0);
    assert_eq!(unsafe { cudaMemset(at, 0, 4) }, 0);
    assert_eq!(unsafe { cudaDeviceSynchronize() }, 0);
    let mut host = 0;
    assert_eq!(unsafe { cudaMallocHost(&mut host, 4) }, 0);
    assert_eq!(unsafe { cudaStreamBeginCapture(stream, 0) }, 0);
    assert_eq!(launch(add_one, 1, at, 0, stream), 0);
    assert_eq!(launch(double, 1, at, 0, stream), 0);
    assert_eq!(unsafe { cudaMemcpyAsync(host, at, 4, TO_HOST, stream) }, 0);
    let place = (&raw const number).cast::<c_void>().cast_mut();
    assert_eq!(unsafe { cudaLaunchHostFunc(stream, count, place) }, 0);
    assert_eq!(unsafe { cudaStreamEndCapture(stream, &mut graph) }, 0);
    assert_eq!(unsafe { cudaGraphInstantiate(&mut exec, graph, 0) }, 0);
    assert_eq!((word_of_host(host), number.load(Ordering::SeqCst)), (0, 0));
    for _ in 0..3 {
        assert_eq!(unsafe { cudaGraphLaunch(exec, stream) }, 0);
    }
    assert_eq!(unsafe { cudaStreamSynchronize(stream) }, 0);
    // ((0 + 1) * 2 + 1) * 2 …
    assert_eq!((word_of_host(host), number.load(Ordering::SeqCst)), (14, 3));
    assert_eq!(unsafe { cudaGraphExecDestroy(exec) }, 0);
    assert_eq!(unsafe { cudaGraphDestroy(graph) }, 0);
    assert_eq!(unsafe { cudaGraphLaunch(exec, stream) }, 400);
}

fn word_of_host(at: u64) -> u32 {
    unsafe { (at as *const u32).read_volatile() }
}
