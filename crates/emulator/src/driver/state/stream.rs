//! Streams: handles, default streams, and ordering rules.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::{Arc, Weak};

use super::capture::Slot;
use super::context::{Context, current};
use super::event::Stamp;
use super::queue::{Point, Queue};
use super::registry::registry;
use super::task::Task;
use crate::driver::c::abi::Handle;
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::lock;

/// Values of `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`.
const LEGACY: Handle = 1;
const PER_THREAD: Handle = 2;
/// Range of the priorities of streams. Priorities are stored and have no effect.
pub const LEAST_PRIORITY: c_int = 0;
pub const GREATEST_PRIORITY: c_int = -5;

/// Relation of a stream to the legacy default stream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The stream is the legacy default stream.
    Legacy,
    /// The stream runs after earlier work of the legacy stream and before its later work.
    Blocking,
    /// The stream is independent of the legacy stream.
    NonBlocking,
}

pub struct Stream {
    pub role: Role,
    pub priority: c_int,
    pub queue: Arc<Queue>,
    pub context: Weak<Context>,
    /// The capture that the stream belongs to, if it is capturing.
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

    /// Appends a task after the implicit dependencies of the stream. During a capture, adds it to
    /// the graph.
    pub fn submit(&self, task: Task) -> Res {
        if self.captures() {
            return crate::driver::state::capture::record(self, task);
        }
        self.push(task).map(|_| ())
    }

    /// Appends a task to the queue of a stream that is not capturing.
    pub fn push(&self, task: Task) -> Res<Point> {
        let context = self.context()?;
        if self.role == Role::Legacy {
            crate::driver::state::capture::forbid_legacy(&context)?;
        }
        self.queue.wait_for_room();
        // This lock orders threads that submit to the legacy stream and to a blocking stream
        // concurrently.
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

    /// If the stream is capturing, invalidates the capture and returns an error, because the call
    /// cannot be captured.
    pub fn forbid_capture(&self) -> Res {
        crate::driver::state::capture::invalidate(self)
    }

    /// Returns the points after all work in this stream and in the streams that it implicitly waits
    /// for.
    pub fn everything(&self) -> Res<Vec<Point>> {
        let mut points = vec![self.queue.now()];
        if self.role == Role::Legacy {
            points.extend(self.context()?.unfinished_blocking());
        }
        Ok(points)
    }

    /// Blocks until all work of the stream is complete.
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
    let found = OWN.try_with(|own| {
        let mut own = own.borrow_mut();
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
    });
    // A thread that is ending has lost its streams. The legacy stream replaces them.
    found.unwrap_or_else(|_| context.legacy.clone())
}

/// Returns the stream of a handle, or an error if its context has failed.
pub fn stream(handle: Handle) -> Res<Arc<Stream>> {
    let stream = match handle {
        0 | LEGACY => current()?.legacy.clone(),
        PER_THREAD => per_thread(&current()?),
        _ => registry()?.streams.get(handle)?,
    };
    stream.queue.core.check()?;
    Ok(stream)
}

/// Queues a task that stores the time at which the stream reaches this point.
pub fn record(stream: &Stream, stamp: Arc<Stamp>) -> Res<Point> {
    stream.push(Task::Record(stamp))
}
