//! Exported event functions.

use std::ffi::c_uint;
use std::sync::Arc;

use crate::driver::c::abi::Handle;
use crate::driver::c::code::Code;
use crate::driver::c::entry::{Out, api};
use crate::driver::state::context::current;
use crate::driver::state::event::{
    BLOCKING_SYNC, DISABLE_TIMING, Event, INTERPROCESS, elapsed, event, record_event,
};
use crate::driver::state::registry::registry;

api! {
    fn cuEventCreate(out: Out<Handle>, flags: c_uint) {
        out.required()?;
        let known = BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS;
        let shared_with_time = flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0;
        if flags & !known != 0 || shared_with_time {
            return Err(Code::INVALID_VALUE);
        }
        let event = Event::new(current()?.handle, flags);
        out.set(registry()?.events.insert(Arc::new(event)))
    }

    fn cuEventDestroy_v2(handle: Handle) {
        event(handle)?;
        registry()?.events.remove(handle).map(|_| ())
    }

    fn cuEventRecord(handle: Handle, stream: Handle) {
        record_event(handle, stream, 0)
    }

    fn cuEventRecordWithFlags(handle: Handle, stream: Handle, flags: c_uint) {
        record_event(handle, stream, flags)
    }

    fn cuEventQuery(handle: Handle) {
        if event(handle)?.query()? { Ok(()) } else { Err(Code::NOT_READY) }
    }

    fn cuEventSynchronize(handle: Handle) {
        event(handle)?.synchronize()
    }

    fn cuEventElapsedTime(out: Out<f32>, start: Handle, end: Handle) {
        elapsed(out, start, end)
    }

    fn cuEventElapsedTime_v2(out: Out<f32>, start: Handle, end: Handle) {
        elapsed(out, start, end)
    }
}
