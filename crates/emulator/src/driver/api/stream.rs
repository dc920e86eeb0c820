//! Exported stream functions.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use crate::driver::c::abi::{Device, Handle, HostFn, StreamCallback};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{Out, api};
use crate::driver::state::context::current;
use crate::driver::state::queue::Point;
use crate::driver::state::registry::{fresh, registry};
use crate::driver::state::stream::{GREATEST_PRIORITY, LEAST_PRIORITY, Role, stream};
use crate::driver::state::task::Task;

/// Value of `CU_STREAM_NON_BLOCKING`: the stream does not synchronise with the default stream.
const NON_BLOCKING: c_uint = 1;

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
        // Queued work continues, and then the stream's thread ends.
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
        crate::driver::state::event::wait_in_stream(&stream, &*registry()?.events.get(event)?)
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
        // The queue's address is unique among the streams that exist at the same time.
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
        // Managed memory is ordinary memory here: every stream and the host may use it at any time.
        stream(handle).map(|_| ())
    }

    fn cuStreamCopyAttributes(dst: Handle, src: Handle) {
        stream(dst)?;
        stream(src).map(|_| ())
    }
}
