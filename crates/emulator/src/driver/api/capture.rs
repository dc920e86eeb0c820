//! Exported functions that begin, end and describe stream captures.

use std::ffi::c_uint;

use crate::driver::c::abi::Handle;
use crate::driver::c::code::Code;
use crate::driver::c::entry::{Out, api};
use crate::driver::state::capture::{ACTIVE, RELAXED, begin, end, forbid_legacy, status};
use crate::driver::state::stream::{Role, stream};

api! {
    fn cuStreamBeginCapture_v2(handle: Handle, mode: c_uint) {
        begin(&*stream(handle)?, mode)
    }

    fn cuStreamEndCapture(handle: Handle, out: Out<Handle>) {
        out.required()?;
        match end(&*stream(handle)?) {
            Ok(graph) => out.set(graph),
            Err(code) => {
                out.set(0)?;
                Err(code)
            }
        }
    }

    fn cuStreamIsCapturing(handle: Handle, out: Out<c_uint>) {
        let stream = stream(handle)?;
        if stream.role == Role::Legacy {
            forbid_legacy(&*stream.context()?)?;
        }
        out.set(status(&stream).0)
    }

    fn cuStreamGetCaptureInfo_v2(
        handle: Handle,
        out: Out<c_uint>,
        id: Out<u64>,
        graph: Out<Handle>,
        nodes: Out<usize>,
        count: Out<usize>,
    ) {
        // The graph of a capture is not available before the capture ends.
        if !(graph.is_null() && nodes.is_null() && count.is_null()) {
            return Err(Code::NOT_SUPPORTED);
        }
        let (status, number) = status(&*stream(handle)?);
        if status == ACTIVE {
            id.set_if_asked(number);
        }
        out.set(status)
    }

    fn cuStreamGetCaptureInfo_v3(
        handle: Handle,
        out: Out<c_uint>,
        id: Out<u64>,
        graph: Out<Handle>,
        nodes: Out<usize>,
        edges: Out<usize>,
        count: Out<usize>,
    ) {
        if !(graph.is_null() && nodes.is_null() && edges.is_null() && count.is_null()) {
            return Err(Code::NOT_SUPPORTED);
        }
        let (status, number) = status(&*stream(handle)?);
        if status == ACTIVE {
            id.set_if_asked(number);
        }
        out.set(status)
    }

    fn cuThreadExchangeStreamCaptureMode(mode: Out<c_uint>) {
        // Calls are not restricted during a capture, so every mode behaves like the relaxed one.
        let wanted = mode.get()?;
        if wanted > RELAXED { Err(Code::INVALID_VALUE) } else { mode.set(RELAXED) }
    }
}
