//! Streams: handles, default streams, ordering rules, and their exported functions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::{Arc, Weak};

use super::abi::{Device, Handle, HostFn, StreamCallback};
use super::capture::Slot;
use super::code::{Code, Res};
use super::context::{Context, current};
use super::entry::{Out, api, lock};
use super::event::Stamp;
use super::queue::{Point, Queue};
use super::registry::{fresh, registry};
use super::task::Task;

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: c_uint = 1;
/// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`.
const LEGACY: Handle = 1;
const PER_THREAD: Handle = 2;
/// The priorities that streams may have; they are kept and not used.
pub const LEAST_PRIORITY: c_int = 0;
pub const GREATEST_PRIORITY: c_int = -5;

/// How a stream relates to the legacy default stream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The legacy default stream itself.
    Legacy,
    /// Runs after earlier work of the legacy stream, and before later work of it.
    Blocking,
    /// Independent of it.
    NonBlocking,
}

/// One stream.
pub struct Stream {
    pub role: Role,
    pub priority: c_int,
    pub queue: Arc<Queue>,
    pub context: Weak<Context>,
    /// The capture that the stream is part of, if any.
    pub capturing: Slot,
}

impl Stream {
    pub fn new(
        role: Role,
        priority: c_int,
        queue: Arc<Queue>,
        context: Weak<Context>,
    ) -> Arc<Self> {
        let capturing = Slot::default();
        Arc::new(Stream { role, priority, queue, context, capturing })
    }

    pub fn context(&self) -> Res<Arc<Context>> {
        self.context.upgrade().ok_or(Code::CONTEXT_IS_DESTROYED)
    }

    /// Appends a task after the implicit dependencies of the stream, or adds it to the graph
    /// that the stream captures.
    pub fn submit(&self, task: Task) -> Res {
        if self.captures() {
            return super::capture::record(self, task);
        }
        self.push(task).map(|_| ())
    }

    /// Appends a task to the stream, which does not capture.
    pub fn push(&self, task: Task) -> Res<Point> {
        let context = self.context()?;
        if self.role == Role::Legacy {
            super::capture::forbid_legacy(&context)?;
        }
        self.queue.wait_for_room();
        // Two threads that submit to the legacy and to a blocking stream at once agree on an
        // order here.
        let _order = lock(&context.order);
        let before = match self.role {
            Role::Legacy => context.unfinished_blocking(),
            Role::Blocking => context.unfinished_legacy(),
            Role::NonBlocking => Vec::new(),
        };
        if !before.is_empty() {
            self.queue.push(Task::Wait(before))?;
        }
        self.queue.push(task)
    }

    pub fn captures(&self) -> bool {
        lock(&self.capturing).is_some()
    }

    /// Fails where a call cannot be made on a stream that captures, which spoils the capture.
    pub fn forbid_capture(&self) -> Res {
        super::capture::invalidate(self)
    }

    /// The point after everything in this stream, and in the streams it implies.
    fn everything(&self) -> Res<Vec<Point>> {
        let mut points = vec![self.queue.now()];
        if self.role == Role::Legacy {
            points.extend(self.context()?.unfinished_blocking());
        }
        Ok(points)
    }

    /// Blocks until the stream has nothing left to do.
    pub fn synchronize(&self) -> Res {
        for point in self.everything()? {
            point.wait();
        }
        self.queue.core.flush_printf();
        self.queue.core.check()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.queue.close();
    }
}

thread_local! {
    /// The per-thread default streams of this thread, by context handle.
    static OWN: RefCell<HashMap<Handle, Arc<Stream>>> = RefCell::default();
}

fn per_thread(context: &Arc<Context>) -> Arc<Stream> {
    OWN.with_borrow_mut(|own| {
        own.retain(|_, stream| stream.context.strong_count() > 0);
        let usable = own
            .get(&context.handle)
            .filter(|stream| std::ptr::eq(stream.context.as_ptr(), Arc::as_ptr(context)));
        if let Some(stream) = usable {
            return stream.clone();
        }
        let stream = context.new_stream(Role::Blocking, LEAST_PRIORITY);
        own.insert(context.handle, stream.clone());
        stream
    })
}

/// The stream that a handle means, in a context that has not failed.
pub fn stream(handle: Handle) -> Res<Arc<Stream>> {
    let stream = match handle {
        0 | LEGACY => current()?.legacy.clone(),
        PER_THREAD => per_thread(&current()?),
        _ => registry()?.streams.get(handle)?,
    };
    stream.queue.core.check()?;
    Ok(stream)
}

fn create(out: Out<Handle>, flags: c_uint, priority: c_int) -> Res {
    out.required()?;
    let context = current()?;
    let role = match flags {
        0 => Role::Blocking,
        NON_BLOCKING => Role::NonBlocking,
        _ => return Err(Code::INVALID_VALUE),
    };
    let handle = fresh();
    let priority = priority.clamp(GREATEST_PRIORITY, LEAST_PRIORITY);
    registry()?.streams.insert_as(handle, context.new_stream(role, priority));
    out.set(handle)
}

api! {
    fn cuStreamCreate(out: Out<Handle>, flags: c_uint) {
        create(out, flags, LEAST_PRIORITY)
    }

    fn cuStreamCreateWithPriority(out: Out<Handle>, flags: c_uint, priority: c_int) {
        create(out, flags, priority)
    }

    fn cuStreamDestroy_v2(handle: Handle) {
        let table = &registry()?.streams;
        let stream = table.get(handle)?;
        stream.forbid_capture()?;
        // Work that is still queued goes on: the thread ends after it.
        table.remove(handle)?;
        stream.queue.core.check()
    }

    fn cuStreamSynchronize(handle: Handle) {
        let stream = stream(handle)?;
        stream.forbid_capture()?;
        stream.synchronize()
    }

    fn cuStreamQuery(handle: Handle) {
        let stream = stream(handle)?;
        stream.forbid_capture()?;
        if stream.everything()?.iter().all(Point::reached) {
            stream.queue.core.check()
        } else {
            Err(Code::NOT_READY)
        }
    }

    fn cuStreamWaitEvent(handle: Handle, event: Handle, flags: c_uint) {
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        let stream = stream(handle)?;
        super::event::wait_in_stream(&stream, &*registry()?.events.get(event)?)
    }

    fn cuStreamGetPriority(handle: Handle, priority: Out<c_int>) {
        priority.set(stream(handle)?.priority)
    }

    fn cuStreamGetFlags(handle: Handle, flags: Out<c_uint>) {
        let stream = stream(handle)?;
        flags.set(if stream.role == Role::NonBlocking { NON_BLOCKING } else { 0 })
    }

    fn cuStreamGetId(handle: Handle, id: Out<u64>) {
        let stream = stream(handle)?;
        // The queue's address: no two streams that exist at one time share it.
        id.set(Arc::as_ptr(&stream.queue) as u64)
    }

    fn cuStreamGetCtx(handle: Handle, context: Out<Handle>) {
        context.set(stream(handle)?.context()?.handle)
    }

    fn cuStreamGetDevice(handle: Handle, device: Out<Device>) {
        device.set(stream(handle)?.context()?.device.ordinal as Device)
    }

    fn cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) {
        current()?;
        least.set_if_asked(LEAST_PRIORITY);
        greatest.set_if_asked(GREATEST_PRIORITY);
        Ok(())
    }

    fn cuLaunchHostFunc(handle: Handle, function: HostFn, data: *mut c_void) {
        let function = function.ok_or(Code::INVALID_VALUE)?;
        stream(handle)?.submit(Task::Host { function, data: data as usize })
    }

    fn cuStreamAddCallback(
        handle: Handle,
        callback: StreamCallback,
        data: *mut c_void,
        flags: c_uint,
    ) {
        let callback = callback.ok_or(Code::INVALID_VALUE)?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let stream = stream(handle)?;
        stream.forbid_capture()?;
        stream.push(Task::Callback { callback, stream: handle, data: data as usize })?;
        Ok(())
    }

    fn cuStreamAttachMemAsync(handle: Handle, _address: u64, _length: usize, _flags: c_uint) {
        // Managed memory is one memory here: every stream and the host may use it at any time.
        stream(handle).map(|_| ())
    }

    fn cuStreamCopyAttributes(dst: Handle, src: Handle) {
        stream(dst)?;
        stream(src).map(|_| ())
    }
}

/// Records the time at which a stream gets here.
pub fn record(stream: &Stream, stamp: Arc<Stamp>) -> Res<Point> {
    stream.push(Task::Record(stamp))
}
