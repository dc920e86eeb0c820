//! Order, asynchrony and time.

use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use cudarc::driver::{CudaStream, result, sys};
use sys::CUresult::*;

use crate::setup::{code, own_context};

/// Keeps a stream busy until `open` is called: a host function that waits for a message.
struct Gate(Sender<()>);

impl Gate {
    fn close(stream: &CudaStream) -> Self {
        let (sender, receiver) = channel::<()>();
        unsafe extern "C" fn wait(data: *mut c_void) {
            // SAFETY: made by `into_raw` below, for this one call.
            let receiver = unsafe { Box::from_raw(data.cast::<Receiver<()>>()) };
            receiver.recv().unwrap();
        }
        let data = Box::into_raw(Box::new(receiver)).cast();
        let queued = unsafe { sys::cuLaunchHostFunc(stream.cu_stream(), Some(wait), data) };
        queued.result().unwrap();
        Gate(sender)
    }

    fn open(self) {
        self.0.send(()).unwrap();
    }
}

fn query(stream: &CudaStream) -> sys::CUresult {
    unsafe { sys::cuStreamQuery(stream.cu_stream()) }
}

/// Appends a number to a list when the stream gets there.
fn note(stream: &CudaStream, list: &'static Mutex<Vec<u32>>, number: u32) {
    type Note = (&'static Mutex<Vec<u32>>, u32);
    unsafe extern "C" fn push(data: *mut c_void) {
        // SAFETY: made by `into_raw` below, for this one call.
        let note = unsafe { Box::from_raw(data.cast::<Note>()) };
        note.0.lock().unwrap().push(note.1);
    }
    let data = Box::into_raw(Box::new((list, number))).cast();
    unsafe { sys::cuLaunchHostFunc(stream.cu_stream(), Some(push), data) }.result().unwrap();
}

#[test]
fn work_is_asynchronous_and_in_order() {
    let context = own_context(0);
    let stream = context.new_stream().unwrap();
    let other = context.new_stream().unwrap();
    let mut pinned = unsafe { context.alloc_pinned::<u32>(16) }.unwrap();
    pinned.as_mut_slice().unwrap().fill(0);
    let mut device = stream.alloc_zeros::<u32>(16).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(query(&stream), CUDA_SUCCESS);
    let gate = Gate::close(&stream);
    assert_eq!(query(&stream), CUDA_ERROR_NOT_READY);
    // Returns although the stream is held up: the source is read now.
    stream.memcpy_htod(&[7u32; 16], &mut device).unwrap();
    let before = stream.record_event(None).unwrap();
    assert!(!before.is_complete());
    // Another stream goes on meanwhile.
    other.memcpy_htod(&[1u32; 16], &mut other.alloc_zeros::<u32>(16).unwrap()).unwrap();
    other.synchronize().unwrap();
    assert!(!before.is_complete());
    gate.open();
    stream.memcpy_dtoh(&device, &mut pinned).unwrap();
    stream.synchronize().unwrap();
    assert!(before.is_complete());
    assert_eq!(pinned.as_slice().unwrap(), [7; 16]);
}

#[test]
fn a_stream_waits_for_an_event_of_another() {
    static ORDER: Mutex<Vec<u32>> = Mutex::new(Vec::new());
    let context = own_context(0);
    let (first, second) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let gate = Gate::close(&first);
    note(&first, &ORDER, 1);
    second.wait(&first.record_event(None).unwrap()).unwrap();
    note(&second, &ORDER, 2);
    first.wait(&second.record_event(None).unwrap()).unwrap();
    note(&first, &ORDER, 3);
    assert_eq!(query(&second), CUDA_ERROR_NOT_READY);
    gate.open();
    first.synchronize().unwrap();
    assert_eq!(*ORDER.lock().unwrap(), [1, 2, 3]);
}

#[test]
fn the_legacy_stream_orders_blocking_streams_alone() {
    static ORDER: Mutex<Vec<u32>> = Mutex::new(Vec::new());
    let context = own_context(0);
    context.bind_to_thread().unwrap();
    let raw = result::stream::create(result::stream::StreamKind::Default).unwrap();
    let blocking = unsafe { context.wrap_borrowed_stream(raw) };
    let free = context.new_stream().unwrap();
    let legacy = context.default_stream();
    let gate = Gate::close(&blocking);
    note(&blocking, &ORDER, 1);
    note(&legacy, &ORDER, 2);
    note(&blocking, &ORDER, 3);
    note(&free, &ORDER, 0);
    free.synchronize().unwrap();
    assert_eq!(*ORDER.lock().unwrap(), [0]);
    assert_eq!(query(&legacy), CUDA_ERROR_NOT_READY);
    gate.open();
    context.synchronize().unwrap();
    assert_eq!(*ORDER.lock().unwrap(), [0, 1, 2, 3]);
    unsafe { result::stream::destroy(raw) }.unwrap();
    assert_eq!(code(query(&blocking).result()), CUDA_ERROR_INVALID_HANDLE);
}

#[test]
fn per_thread_streams_are_different_streams() {
    let context = own_context(0);
    let here = context.per_thread_stream();
    let gate = Gate::close(&here);
    let shared = context.clone();
    let thread = std::thread::spawn(move || {
        shared.bind_to_thread().unwrap();
        let own = shared.per_thread_stream();
        let data = own.clone_htod(&[1u8, 2, 3]).unwrap();
        own.clone_dtoh(&data).unwrap()
    });
    assert_eq!(thread.join().unwrap(), [1, 2, 3]);
    assert_eq!(query(&here), CUDA_ERROR_NOT_READY);
    gate.open();
    here.synchronize().unwrap();
}

#[test]
fn events_measure_time_and_refuse_what_has_none() {
    let context = own_context(0);
    let stream = context.new_stream().unwrap();
    let timed = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
    let start = stream.record_event(timed).unwrap();
    let gate = Gate::close(&stream);
    let end = stream.record_event(timed).unwrap();
    let early = unsafe { result::event::elapsed(start.cu_event(), end.cu_event()) };
    assert_eq!(code(early), CUDA_ERROR_NOT_READY);
    start.synchronize().unwrap();
    let begun = std::time::Instant::now();
    // The stream is held for as long as this loop takes.
    while begun.elapsed().as_micros() < 2000 {
        std::hint::spin_loop();
    }
    gate.open();
    let milliseconds = start.elapsed_ms(&end).unwrap();
    assert!((2.0..10_000.0).contains(&milliseconds), "{milliseconds}");
    assert!(end.elapsed_ms(&start).unwrap() <= -2.0);
    let untimed = stream.record_event(None).unwrap();
    assert_eq!(code(start.elapsed_ms(&untimed)), CUDA_ERROR_INVALID_HANDLE);
    let never = context.new_event(timed).unwrap();
    assert!(never.is_complete());
    assert_eq!(code(start.elapsed_ms(&never)), CUDA_ERROR_INVALID_HANDLE);
}

#[test]
fn a_full_queue_holds_the_host_back_and_loses_nothing() {
    static DONE: AtomicU32 = AtomicU32::new(0);
    unsafe extern "C" fn count(_: *mut c_void) {
        DONE.fetch_add(1, Ordering::Relaxed);
    }
    let context = own_context(0);
    let stream = context.new_stream().unwrap();
    let gate = Gate::close(&stream);
    let (sender, receiver) = channel();
    let feeder = std::thread::spawn({
        let (context, stream) = (context.clone(), stream.clone());
        move || {
            context.bind_to_thread().unwrap();
            for number in 0..3000u32 {
                let none = std::ptr::null_mut();
                let queued =
                    unsafe { sys::cuLaunchHostFunc(stream.cu_stream(), Some(count), none) };
                queued.result().unwrap();
                if number == 1000 {
                    sender.send(()).unwrap();
                }
            }
        }
    });
    receiver.recv().unwrap();
    assert!(!feeder.is_finished());
    assert_eq!(DONE.load(Ordering::Relaxed), 0);
    gate.open();
    feeder.join().unwrap();
    stream.synchronize().unwrap();
    assert_eq!(DONE.load(Ordering::Relaxed), 3000);
}

#[test]
fn priorities_and_flags_are_kept() {
    let context = own_context(0);
    let stream = context.new_stream_with_priority(-3).unwrap();
    let (mut priority, mut flags) = (0, 0);
    unsafe { sys::cuStreamGetPriority(stream.cu_stream(), &mut priority) }.result().unwrap();
    unsafe { sys::cuStreamGetFlags(stream.cu_stream(), &mut flags) }.result().unwrap();
    assert_eq!((priority, flags), (-3, 1));
    let mut owner = std::ptr::null_mut();
    unsafe { sys::cuStreamGetCtx(stream.cu_stream(), &mut owner) }.result().unwrap();
    assert_eq!(owner, context.cu_ctx());
}

#[test]
fn threads_that_share_a_context_do_not_block_each_other_for_ever() {
    let context = own_context(0);
    let threads: Vec<_> = (0..6u32)
        .map(|own| {
            let context = context.clone();
            std::thread::spawn(move || {
                context.bind_to_thread().unwrap();
                let raw = result::stream::create(result::stream::StreamKind::Default).unwrap();
                let blocking = unsafe { context.wrap_borrowed_stream(raw) };
                let others = [context.default_stream(), blocking, context.per_thread_stream()];
                let free = context.new_stream().unwrap();
                for round in 0..200 {
                    let stream = &others[(own as usize + round) % 3];
                    let value = own * 1000 + round as u32;
                    let data = stream.clone_htod(&[value; 33]).unwrap();
                    free.join(stream).unwrap();
                    let mut copy = free.alloc_zeros::<u32>(33).unwrap();
                    free.memcpy_dtod(&data, &mut copy).unwrap();
                    assert_eq!(free.clone_dtoh(&copy).unwrap(), [value; 33]);
                    stream.join(&free).unwrap();
                }
                unsafe { result::stream::destroy(raw) }.unwrap();
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    context.synchronize().unwrap();
}
