//! Events: marks in streams with the time at which the stream reached them.

use std::ffi::c_uint;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use super::capture::Mark;
use super::context::context;
use super::queue::Point;
use super::registry::registry;
use super::stream::{Stream, record, stream};
use super::task::Task;
use crate::driver::c::abi::Handle;
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{Out, lock};

/// `CU_EVENT_BLOCKING_SYNC`, `CU_EVENT_DISABLE_TIMING`, `CU_EVENT_INTERPROCESS`.
pub const BLOCKING_SYNC: c_uint = 1;
pub const DISABLE_TIMING: c_uint = 2;
pub const INTERPROCESS: c_uint = 4;

/// When a stream got to a record of an event, on the host's monotonic clock.
#[derive(Default)]
pub struct Stamp(OnceLock<Instant>);

impl Stamp {
    /// Keeps the time of the first call, which is the one call of the record's task.
    pub fn set(&self) {
        self.0.get_or_init(Instant::now);
    }
}

/// What an event was last recorded in.
#[derive(Clone, Default)]
enum Last {
    #[default]
    Never,
    Stream {
        point: Point,
        stamp: Arc<Stamp>,
    },
    /// A capture: the event stands for places in a graph.
    Capture(Mark),
}

/// One event.
pub struct Event {
    pub context: Handle,
    flags: c_uint,
    last: Mutex<Last>,
}

impl Event {
    /// An event that was never recorded.
    pub fn new(context: Handle, flags: c_uint) -> Self {
        Event { context, flags, last: Mutex::default() }
    }

    fn last(&self) -> Last {
        lock(&self.last).clone()
    }

    /// The stream position to wait for: none for an event that was never recorded.
    pub fn point(&self) -> Res<Option<(Point, Arc<Stamp>)>> {
        match self.last() {
            Last::Never => Ok(None),
            Last::Stream { point, stamp } => Ok(Some((point, stamp))),
            Last::Capture(_) => Err(Code::CAPTURED_EVENT),
        }
    }
}

pub fn event(handle: Handle) -> Res<Arc<Event>> {
    let event = registry()?.events.get(handle)?;
    context(event.context)?.core.check()?;
    Ok(event)
}

pub fn record_event(handle: Handle, stream_handle: Handle, flags: c_uint) -> Res {
    if flags > 1 {
        return Err(Code::INVALID_VALUE);
    }
    let event = event(handle)?;
    let stream = stream(stream_handle)?;
    if stream.context()?.handle != event.context {
        return Err(Code::INVALID_HANDLE);
    }
    if let Some(mark) = crate::driver::state::capture::mark(&stream)? {
        *lock(&event.last) = Last::Capture(mark);
        return Ok(());
    }
    let stamp = Arc::new(Stamp::default());
    let point = record(&stream, stamp.clone())?;
    *lock(&event.last) = Last::Stream { point, stamp };
    Ok(())
}

/// Makes later work of a stream wait for what an event marks.
pub fn wait_in_stream(stream: &Stream, event: &Event) -> Res {
    match event.last() {
        Last::Never => Ok(()),
        Last::Capture(mark) => crate::driver::state::capture::join(stream, &mark),
        Last::Stream { .. } if stream.captures() => {
            stream.forbid_capture().err();
            Err(Code::STREAM_CAPTURE_ISOLATION)
        }
        Last::Stream { point, .. } if point.reached() => Ok(()),
        Last::Stream { point, .. } => stream.push(Task::Wait(vec![point])).map(|_| ()),
    }
}

pub fn elapsed(out: Out<f32>, start: Handle, end: Handle) -> Res {
    let (start, end) = (event(start)?, event(end)?);
    if (start.flags | end.flags) & DISABLE_TIMING != 0 || start.context != end.context {
        return Err(Code::INVALID_HANDLE);
    }
    let (Some((_, start)), Some((_, end))) = (start.point()?, end.point()?) else {
        return Err(Code::INVALID_HANDLE);
    };
    let (Some(start), Some(end)) = (start.0.get(), end.0.get()) else {
        return Err(Code::NOT_READY);
    };
    let milliseconds = match end.checked_duration_since(*start) {
        Some(ahead) => ahead.as_secs_f64() * 1e3,
        None => -(start.duration_since(*end).as_secs_f64() * 1e3),
    };
    out.set(milliseconds as f32)
}
