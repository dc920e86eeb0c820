//! Events: positions in streams, with the time at which the stream reached them.

use std::ffi::c_uint;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use super::capture::Mark;
use super::context::context;
use super::queue::Point;
use super::registry::registry;
use super::segment::Name;
use super::signal::{Mark as SharedMark, Shared, Signal};
use super::stream::{Stream, record, stream};
use super::task::Task;
use crate::driver::c::abi::Handle;
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{Out, lock};

/// Values of `CU_EVENT_BLOCKING_SYNC`, `CU_EVENT_DISABLE_TIMING` and `CU_EVENT_INTERPROCESS`.
pub const BLOCKING_SYNC: c_uint = 1;
pub const DISABLE_TIMING: c_uint = 2;
pub const INTERPROCESS: c_uint = 4;

/// Time at which a stream reached an event record, on the host's monotonic clock.
#[derive(Default)]
pub struct Stamp {
    time: OnceLock<Instant>,
    /// Notifies the other processes if they share the event.
    signal: Mutex<Option<Signal>>,
}

impl Stamp {
    /// Stores the time of the first call. Only the task of the record calls this function.
    pub fn set(&self) {
        let mut signal = lock(&self.signal);
        self.time.get_or_init(Instant::now);
        drop(signal.take());
    }

    /// Notifies other processes when the stream reaches the record, or now if it already has.
    fn tell(&self, signal: Signal) {
        let mut place = lock(&self.signal);
        if self.time.get().is_none() {
            *place = Some(signal);
        }
    }
}

/// The last record of an event in a stream.
#[derive(Clone, Default)]
enum Last {
    #[default]
    Never,
    Stream {
        point: Point,
        stamp: Arc<Stamp>,
        /// Ticket of the record, counted over all processes; 0 if the event is not shared.
        ticket: u64,
    },
    /// The event was recorded in a stream of another process.
    Elsewhere(SharedMark),
    /// The event was recorded in a capture, and refers to nodes of a graph.
    Capture(Mark),
}

pub struct Event {
    pub context: Handle,
    flags: c_uint,
    /// The last record of the event by this process.
    last: Mutex<Last>,
    /// State shared with other processes, if the event is shared.
    shared: OnceLock<Arc<Shared>>,
    /// Held while the event is recorded or exported.
    changing: Mutex<()>,
}

impl Event {
    /// Creates an event that was never recorded.
    pub fn new(context: Handle, flags: c_uint) -> Self {
        let (last, shared, changing) = Default::default();
        Event { context, flags, last, shared, changing }
    }

    /// Creates an event for an event that another process has exported. It has no time, and cannot
    /// be exported again.
    pub fn imported(context: Handle, shared: Arc<Shared>) -> Self {
        let event = Event::new(context, DISABLE_TIMING);
        Event { shared: OnceLock::from(shared), ..event }
    }

    /// Returns the last record of the event, by any process.
    fn last(&self) -> Last {
        let own = lock(&self.last).clone();
        let known = match own {
            Last::Capture(_) => return own,
            Last::Stream { ticket, .. } => ticket,
            Last::Never | Last::Elsewhere(_) => 0,
        };
        let latest = self.shared.get().and_then(Shared::latest);
        latest.filter(|mark| mark.ticket > known).map_or(own, Last::Elsewhere)
    }

    /// Shares the event with other processes. Returns the name by which they open it.
    pub fn export(&self) -> Res<Name> {
        if self.flags & INTERPROCESS == 0 {
            return Err(Code::INVALID_HANDLE);
        }
        let registry = registry()?;
        let _alone = lock(&self.changing);
        if let Some(shared) = self.shared.get() {
            return shared.name().ok_or(Code::INVALID_HANDLE);
        }
        let made = Shared::create(&registry.segments).map_err(|error| {
            registry.reports.message("cuIpcGetEventHandle", &error.to_string());
            Code::OPERATING_SYSTEM
        })?;
        if let Last::Stream { stamp, ticket, .. } = &mut *lock(&self.last) {
            let signal = made.issue(&|| None)?;
            *ticket = signal.ticket;
            stamp.tell(signal);
        }
        let name = made.name().ok_or(Code::INVALID_HANDLE);
        self.shared.get_or_init(|| made);
        name
    }

    /// Returns whether all work before the event's last record has finished.
    pub fn query(&self) -> Res<bool> {
        match self.last() {
            Last::Never => Ok(true),
            Last::Stream { point, .. } if point.reached() => {
                point.queue.core.check().map(|()| true)
            }
            Last::Stream { .. } => Ok(false),
            Last::Elsewhere(mark) => mark.reached(),
            Last::Capture(_) => Err(Code::CAPTURED_EVENT),
        }
    }

    /// Blocks until all work before the event's last record has finished.
    pub fn synchronize(&self) -> Res {
        match self.last() {
            Last::Never => Ok(()),
            Last::Stream { point, .. } => {
                point.wait();
                point.queue.core.flush_printf();
                point.queue.core.check()
            }
            Last::Elsewhere(mark) => {
                let context = context(self.context)?;
                mark.wait(&|| context.core.failed())
            }
            Last::Capture(_) => Err(Code::CAPTURED_EVENT),
        }
    }

    /// Returns the time of the event's last record, or `None` if this process did not record it
    /// last.
    fn stamp(&self) -> Res<Option<Arc<Stamp>>> {
        match self.last() {
            Last::Stream { stamp, .. } => Ok(Some(stamp)),
            Last::Capture(_) => Err(Code::CAPTURED_EVENT),
            Last::Never | Last::Elsewhere(_) => Ok(None),
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
    let _alone = lock(&event.changing);
    let stamp = Arc::new(Stamp::default());
    let mut ticket = 0;
    if let Some(shared) = event.shared.get() {
        let signal = shared.issue(&|| stream.queue.core.failed())?;
        ticket = signal.ticket;
        stamp.tell(signal);
    }
    let point = record(&stream, stamp.clone())?;
    *lock(&event.last) = Last::Stream { point, stamp, ticket };
    Ok(())
}

/// Makes later work of a stream wait for an event.
pub fn wait_in_stream(stream: &Stream, event: &Event) -> Res {
    match event.last() {
        Last::Never => Ok(()),
        Last::Capture(mark) => crate::driver::state::capture::join(stream, &mark),
        Last::Stream { .. } | Last::Elsewhere(_) if stream.captures() => {
            stream.forbid_capture().err();
            Err(Code::STREAM_CAPTURE_ISOLATION)
        }
        Last::Stream { point, .. } if point.reached() => Ok(()),
        Last::Stream { point, .. } => stream.push(Task::Wait(vec![point])).map(|_| ()),
        Last::Elsewhere(mark) if mark.reached() == Ok(true) => Ok(()),
        Last::Elsewhere(mark) => stream.push(Task::Await(mark)).map(|_| ()),
    }
}

pub fn elapsed(out: Out<f32>, start: Handle, end: Handle) -> Res {
    let (start, end) = (event(start)?, event(end)?);
    if (start.flags | end.flags) & DISABLE_TIMING != 0 || start.context != end.context {
        return Err(Code::INVALID_HANDLE);
    }
    let (Some(start), Some(end)) = (start.stamp()?, end.stamp()?) else {
        return Err(Code::INVALID_HANDLE);
    };
    let (Some(start), Some(end)) = (start.time.get(), end.time.get()) else {
        return Err(Code::NOT_READY);
    };
    let milliseconds = match end.checked_duration_since(*start) {
        Some(ahead) => ahead.as_secs_f64() * 1e3,
        None => -(start.duration_since(*end).as_secs_f64() * 1e3),
    };
    out.set(milliseconds as f32)
}
