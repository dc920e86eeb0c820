//! Contexts: their state, the current context of each thread, and their destruction.
//!
//! A kernel that faults leaves its error in the context. From then on every call that needs the
//! context returns this error, until the context is destroyed. Other contexts are not affected.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::device::DeviceInfo;
use super::limits::Limits;
use super::queue::{Point, Queue};
use super::registry::registry;
use super::stream::{LEAST_PRIORITY, Role, Stream};
use crate::driver::c::abi::Handle;
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::lock;

unsafe extern "C" {
    /// Standard output of the C library, which the `libc` crate does not declare.
    static stdout: *mut libc::FILE;
}

/// The part of a context that the threads of its streams need.
pub struct Core {
    pub device: &'static DeviceInfo,
    /// The first error of work in this context; 0 means no error.
    error: AtomicU32,
    /// Stops running kernels; set when another kernel has failed.
    pub cancel: AtomicBool,
    pub limits: Mutex<Limits>,
    /// Output of kernels that is not yet written to standard output.
    printed: Mutex<Vec<u8>>,
}

impl Core {
    fn new(device: &'static DeviceInfo) -> Self {
        Core {
            device,
            error: AtomicU32::new(0),
            cancel: AtomicBool::new(false),
            limits: Mutex::default(),
            printed: Mutex::default(),
        }
    }

    /// Marks the context as failed, unless it already is, and stops its other work.
    pub fn fail(&self, code: Code) {
        let _ = self.error.compare_exchange(0, code.0, Ordering::AcqRel, Ordering::Acquire);
        self.cancel.store(true, Ordering::Release);
    }

    pub fn failed(&self) -> Option<Code> {
        match self.error.load(Ordering::Acquire) {
            0 => None,
            code => Some(Code(code)),
        }
    }

    /// Returns the sticky error of the context, if it has failed.
    pub fn check(&self) -> Res {
        self.failed().map_or(Ok(()), Err)
    }

    /// Stores text that a kernel printed. The buffer is bounded: text that does not fit is dropped.
    pub fn print(&self, text: &[u8]) {
        let capacity = lock(&self.limits).printf_bytes;
        let mut printed = lock(&self.printed);
        if printed.len() + text.len() <= capacity {
            printed.extend_from_slice(text);
        }
    }

    /// Writes the output of kernels to C's standard output, so that it is in order with the output
    /// of the program itself.
    pub fn flush_printf(&self) {
        let text = std::mem::take(&mut *lock(&self.printed));
        if !text.is_empty() {
            // If standard output is closed, the text is lost, as with the real driver.
            // SAFETY: the stream belongs to the C library, which locks it; the text has the given
            // length.
            unsafe {
                libc::fwrite(text.as_ptr().cast(), 1, text.len(), stdout);
                libc::fflush(stdout);
            }
        }
    }
}

pub struct Context {
    pub handle: Handle,
    pub device: &'static DeviceInfo,
    pub core: Arc<Core>,
    pub primary: bool,
    pub flags: AtomicU32,
    pub cache_config: AtomicU32,
    pub legacy: Arc<Stream>,
    /// Queues of all streams, for synchronisation. The next field contains the queues that the
    /// legacy stream waits for.
    streams: Mutex<Vec<Weak<Queue>>>,
    blocking: Mutex<Vec<Weak<Queue>>>,
    /// Held while a task receives its implicit dependencies and its position in the queue.
    pub order: Mutex<()>,
    /// Number of capturing streams. The next field counts those among them that the legacy stream
    /// waits for.
    pub captures: AtomicUsize,
    pub blocking_captures: AtomicUsize,
    /// Contexts whose memory this context may access.
    pub peers: Mutex<Vec<Handle>>,
}

impl Context {
    fn new(handle: Handle, device: &'static DeviceInfo, flags: c_uint, primary: bool) -> Arc<Self> {
        let core = Arc::new(Core::new(device));
        Arc::new_cyclic(|own| {
            let queue = Queue::new(core.clone());
            let streams = Mutex::new(vec![Arc::downgrade(&queue)]);
            Context {
                handle,
                device,
                primary,
                flags: AtomicU32::new(flags),
                cache_config: AtomicU32::new(0),
                legacy: Stream::new(Role::Legacy, LEAST_PRIORITY, queue, own.clone()),
                streams,
                blocking: Mutex::default(),
                order: Mutex::default(),
                captures: AtomicUsize::new(0),
                blocking_captures: AtomicUsize::new(0),
                peers: Mutex::default(),
                core,
            }
        })
    }

    /// Creates a stream of the context.
    pub fn new_stream(self: &Arc<Self>, role: Role, priority: c_int) -> Arc<Stream> {
        let queue = Queue::new(self.core.clone());
        remember(&self.streams, &queue);
        if role == Role::Blocking {
            remember(&self.blocking, &queue);
        }
        Stream::new(role, priority, queue, Arc::downgrade(self))
    }

    /// Returns the points that the legacy stream must wait for.
    pub fn unfinished_blocking(&self) -> Vec<Point> {
        unfinished(&lock(&self.blocking))
    }

    /// Returns the points in the legacy stream that a blocking stream must wait for.
    pub fn unfinished_legacy(&self) -> Vec<Point> {
        let point = self.legacy.queue.now();
        if point.reached() { Vec::new() } else { vec![point] }
    }

    /// Blocks until all streams of the context are idle.
    pub fn finish(&self) {
        let points = unfinished(&lock(&self.streams));
        points.iter().for_each(Point::wait);
    }

    /// Waits like [`Self::finish`], and then writes the output of the kernels.
    pub fn drain(&self) {
        self.finish();
        self.core.flush_printf();
    }

    /// Implements `cuCtxSynchronize`: waits for all work, and returns the context's sticky error, if
    /// any. Fails while a stream of the context captures.
    pub fn synchronize(&self) -> Res {
        if self.captures.load(Ordering::Acquire) > 0 {
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        self.drain();
        self.core.check()
    }
}

/// Adds a queue to a list, and removes queues that no longer exist.
fn remember(list: &Mutex<Vec<Weak<Queue>>>, queue: &Arc<Queue>) {
    let mut list = lock(list);
    list.retain(|queue| queue.strong_count() > 0);
    list.push(Arc::downgrade(queue));
}

fn unfinished(list: &[Weak<Queue>]) -> Vec<Point> {
    let queues = list.iter().filter_map(Weak::upgrade).filter(|queue| !queue.idle());
    queues.map(|queue| queue.now()).collect()
}

thread_local! {
    /// The current context of this thread; 0 means none. The variable has no destructor, because
    /// objects of a program may release their memory after all thread-local destructors have run.
    static TOP: Cell<Handle> = const { Cell::new(0) };
    /// The contexts below the current one on the stack of this thread. The last of them becomes
    /// current next.
    static BELOW: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
}

/// Maximum number of nested contexts. A deeper stack indicates a leak in the caller.
const MAX_STACK: usize = 4096;

/// Returns the context of a handle, or an error if it was destroyed.
pub fn context(handle: Handle) -> Res<Arc<Context>> {
    registry()?.contexts.find(handle).ok_or(Code::INVALID_CONTEXT)
}

/// Returns the handle on top of this thread's stack; 0 means that the stack is empty.
pub fn current_handle() -> Handle {
    TOP.get()
}

/// Returns the current context, even if it has failed.
pub fn current_any() -> Res<Arc<Context>> {
    let registry = registry()?;
    match current_handle() {
        0 => Err(Code::INVALID_CONTEXT),
        handle => registry.contexts.find(handle).ok_or(Code::CONTEXT_IS_DESTROYED),
    }
}

/// Returns the current context if it has not failed.
pub fn current() -> Res<Arc<Context>> {
    let context = current_any()?;
    context.core.check()?;
    Ok(context)
}

pub fn push(handle: Handle) -> Res {
    context(handle)?;
    if current_handle() != 0 {
        let kept = BELOW.try_with(|below| {
            let mut below = below.borrow_mut();
            let room = below.len() + 1 < MAX_STACK;
            if room {
                below.push(current_handle());
            }
            room
        });
        if kept != Ok(true) {
            return Err(Code::OUT_OF_MEMORY);
        }
    }
    TOP.set(handle);
    Ok(())
}

pub fn pop() -> Res<Handle> {
    registry()?;
    match current_handle() {
        0 => Err(Code::INVALID_CONTEXT),
        top => {
            let next = BELOW.try_with(|below| below.borrow_mut().pop());
            TOP.set(next.ok().flatten().unwrap_or(0));
            Ok(top)
        }
    }
}

/// Replaces the top of the stack. A handle of 0 removes it.
pub fn set_current(handle: Handle) -> Res {
    if handle == 0 {
        // The stack may be empty.
        let _ = pop();
        return Ok(());
    }
    context(handle)?;
    TOP.set(handle);
    Ok(())
}

/// Creates a context on a device, in addition to the primary one.
pub fn create(device: &'static DeviceInfo, flags: c_uint) -> Res<Handle> {
    let handle = crate::driver::state::registry::fresh();
    registry()?.contexts.insert_as(handle, Context::new(handle, device, flags, false));
    Ok(handle)
}

/// Counts a use of the primary context of a device. The first use creates the context.
pub fn retain_primary(device: &'static DeviceInfo) -> Res<Handle> {
    let mut primary = lock(&device.primary);
    let handle = device.primary_handle;
    let table = &registry()?.contexts;
    if table.find(handle).is_none() {
        table.insert_as(handle, Context::new(handle, device, primary.flags, true));
    }
    primary.retained += 1;
    Ok(handle)
}

/// Ends one use of the primary context, or all uses.
pub fn release_primary(device: &'static DeviceInfo, all: bool) -> Res {
    let mut primary = lock(&device.primary);
    if primary.retained == 0 && !all {
        return Err(Code::INVALID_CONTEXT);
    }
    primary.retained = if all { 0 } else { primary.retained - 1 };
    if primary.retained == 0 && context(device.primary_handle).is_ok() {
        destroy(device.primary_handle)?;
    }
    Ok(())
}

/// Destroys a context: waits for its work, then releases all objects that were created in it.
pub fn destroy(handle: Handle) -> Res {
    let registry = registry()?;
    let context = registry.contexts.remove(handle).map_err(|_| Code::INVALID_CONTEXT)?;
    context.drain();
    registry.streams.purge(|stream| std::ptr::eq(stream.context.as_ptr(), Arc::as_ptr(&context)));
    registry.events.purge(|event| event.context == handle);
    registry.execs.purge(|exec| exec.context == handle);
    registry.functions.purge(|function| function.context == handle);
    registry.modules.purge(|module| module.context == handle);
    registry.arrays.purge(|array| array.context == handle);
    registry.ledger.release_context(handle);
    if current_handle() == handle {
        pop()?;
    }
    Ok(())
}
