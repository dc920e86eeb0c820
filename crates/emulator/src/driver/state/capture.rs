//! Stream capture: operations on a stream become nodes of a graph instead of being executed.
//!
//! For each stream, a capture stores the nodes that the stream's next node depends on. An event
//! recorded in a capture refers to those nodes. Another stream that waits for the event joins the
//! capture.

use std::ffi::c_uint;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::ThreadId;

use super::context::Context;
use super::graph::Graph;
use super::registry::{fresh, registry};
use super::stream::{Role, Stream};
use super::task::Task;
use crate::driver::c::abi::Handle;
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::lock;

/// Value of `CU_STREAM_CAPTURE_MODE_RELAXED`: potentially unsafe calls are allowed during the
/// capture, and any thread may end it.
pub const RELAXED: c_uint = 2;
/// Values of `CUstreamCaptureStatus`: no capture, a valid capture, and an invalid capture that has
/// not ended.
const NONE: c_uint = 0;
pub const ACTIVE: c_uint = 1;
const INVALIDATED: c_uint = 2;

/// A stream's state in a capture. The stream and the capture share it.
pub type Slot = Arc<Mutex<Option<Capturing>>>;

pub struct Capture {
    graph: Arc<Graph>,
    handle: Handle,
    mode: c_uint,
    thread: ThreadId,
    invalid: AtomicBool,
    ended: AtomicBool,
    members: Mutex<Vec<Member>>,
}

struct Member {
    slot: Slot,
    blocking: bool,
    context: Weak<Context>,
}

/// The state of a capturing stream.
pub struct Capturing {
    capture: Arc<Capture>,
    /// The nodes that the stream's next node depends on.
    tail: Vec<Handle>,
    origin: bool,
}

/// Nodes of a graph that is being captured, to which an event refers.
#[derive(Clone)]
pub struct Mark {
    capture: Arc<Capture>,
    after: Vec<Handle>,
}

impl Capture {
    fn check(&self) -> Res {
        if self.invalid.load(Ordering::Acquire) {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        Ok(())
    }

    fn admit(self: &Arc<Self>, stream: &Stream, tail: Vec<Handle>, origin: bool) -> Res {
        let context = stream.context()?;
        let blocking = stream.role == Role::Blocking;
        *lock(&stream.capturing) = Some(Capturing { capture: self.clone(), tail, origin });
        context.captures.fetch_add(1, Ordering::AcqRel);
        if blocking {
            context.blocking_captures.fetch_add(1, Ordering::AcqRel);
        }
        let slot = stream.capturing.clone();
        lock(&self.members).push(Member { slot, blocking, context: Arc::downgrade(&context) });
        Ok(())
    }

    /// Ends the capture for all its streams.
    fn end(&self) {
        self.ended.store(true, Ordering::Release);
        for member in std::mem::take(&mut *lock(&self.members)) {
            *lock(&member.slot) = None;
            if let Some(context) = member.context.upgrade() {
                context.captures.fetch_sub(1, Ordering::AcqRel);
                if member.blocking {
                    context.blocking_captures.fetch_sub(1, Ordering::AcqRel);
                }
            }
        }
    }
}

/// Adds a task of a capturing stream to its graph.
pub fn record(stream: &Stream, task: Task) -> Res {
    let mut slot = lock(&stream.capturing);
    let capturing = slot.as_mut().ok_or(Code::ILLEGAL_STATE)?;
    let capture = &capturing.capture;
    capture.check()?;
    let node = capture.graph.add(capture.handle, task, &capturing.tail)?;
    capturing.tail = vec![node];
    Ok(())
}

/// Makes the graph the owner of memory that was allocated during its capture.
pub fn record_allocation(stream: &Stream, base: u64) -> Res {
    let slot = lock(&stream.capturing);
    let capture = slot.as_ref().ok_or(Code::ILLEGAL_STATE)?.capture.clone();
    drop(slot);
    capture.graph.own_allocation(base);
    record(stream, Task::Empty)
}

/// Invalidates the capture of a stream because of a call that cannot be captured. Has no effect without a
/// capture.
pub fn invalidate(stream: &Stream) -> Res {
    match &*lock(&stream.capturing) {
        Some(capturing) => {
            capturing.capture.invalid.store(true, Ordering::Release);
            Err(Code::STREAM_CAPTURE_UNSUPPORTED)
        }
        None => Ok(()),
    }
}

/// Returns an error if a blocking stream is capturing: the legacy stream waits for blocking
/// streams, and cannot wait for a capturing one.
pub fn forbid_legacy(context: &Context) -> Res {
    if context.blocking_captures.load(Ordering::Acquire) > 0 {
        return Err(Code::STREAM_CAPTURE_IMPLICIT);
    }
    Ok(())
}

/// Returns the nodes that an event recorded now would refer to. Returns `None` if the stream is not
/// capturing.
pub fn mark(stream: &Stream) -> Res<Option<Mark>> {
    match &*lock(&stream.capturing) {
        Some(capturing) => {
            capturing.capture.check()?;
            let (capture, after) = (capturing.capture.clone(), capturing.tail.clone());
            Ok(Some(Mark { capture, after }))
        }
        None => Ok(None),
    }
}

/// Makes a stream wait for nodes of a capture, and join the capture.
pub fn join(stream: &Stream, mark: &Mark) -> Res {
    mark.capture.check()?;
    if mark.capture.ended.load(Ordering::Acquire) {
        return Err(Code::INVALID_VALUE);
    }
    if let Some(capturing) = &mut *lock(&stream.capturing) {
        if !Arc::ptr_eq(&capturing.capture, &mark.capture) {
            capturing.capture.invalid.store(true, Ordering::Release);
            mark.capture.invalid.store(true, Ordering::Release);
            return Err(Code::STREAM_CAPTURE_MERGE);
        }
        for &node in &mark.after {
            if !capturing.tail.contains(&node) {
                capturing.tail.push(node);
            }
        }
        return Ok(());
    }
    if stream.role == Role::Legacy {
        mark.capture.invalid.store(true, Ordering::Release);
        return Err(Code::STREAM_CAPTURE_IMPLICIT);
    }
    mark.capture.admit(stream, mark.after.clone(), false)
}

pub fn begin(stream: &Stream, mode: c_uint) -> Res {
    if mode > RELAXED {
        return Err(Code::INVALID_VALUE);
    }
    if stream.role == Role::Legacy {
        return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
    }
    if stream.captures() {
        return Err(Code::ILLEGAL_STATE);
    }
    let capture = Arc::new(Capture {
        graph: Arc::default(),
        handle: fresh(),
        mode,
        thread: std::thread::current().id(),
        invalid: AtomicBool::new(false),
        ended: AtomicBool::new(false),
        members: Mutex::default(),
    });
    capture.admit(stream, Vec::new(), true)
}

pub fn end(stream: &Stream) -> Res<Handle> {
    let slot = lock(&stream.capturing);
    let capturing = slot.as_ref().ok_or(Code::ILLEGAL_STATE)?;
    let (capture, tail) = (capturing.capture.clone(), capturing.tail.clone());
    let origin = capturing.origin;
    drop(slot);
    if !origin {
        capture.invalid.store(true, Ordering::Release);
        return Err(Code::STREAM_CAPTURE_UNMATCHED);
    }
    if capture.mode != RELAXED && capture.thread != std::thread::current().id() {
        return Err(Code::STREAM_CAPTURE_WRONG_THREAD);
    }
    capture.end();
    capture.check()?;
    if !capture.graph.all_before(&tail) {
        return Err(Code::STREAM_CAPTURE_UNJOINED);
    }
    registry()?.graphs.insert_as(capture.handle, capture.graph.clone());
    Ok(capture.handle)
}

pub fn status(stream: &Stream) -> (c_uint, u64) {
    match &*lock(&stream.capturing) {
        None => (NONE, 0),
        Some(capturing) => {
            let valid = capturing.capture.check().is_ok();
            (if valid { ACTIVE } else { INVALIDATED }, capturing.capture.handle as u64)
        }
    }
}
