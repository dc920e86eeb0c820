//! Exported functions for contexts.

use std::ffi::{c_int, c_uint};
use std::sync::atomic::Ordering;

use crate::driver::c::abi::{CtxCreateParams, Device, Handle};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{In, Out, api, lock};
use crate::driver::state::context::{
    context, create, current, current_any, current_handle, destroy, pop, push, release_primary,
    retain_primary, set_current,
};
use crate::driver::state::registry::{device, registry};

/// Valid flags of a context (`CUctx_flags`).
const KNOWN_FLAGS: c_uint = 0xff;

fn new_context(out: Out<Handle>, flags: c_uint, dev: Device) -> Res {
    out.required()?;
    if flags & !KNOWN_FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let handle = create(device(dev)?, flags)?;
    push(handle)?;
    out.set(handle)
}

/// Returns the device of the current context, whether or not the context has failed.
fn current_device(out: Out<Device>) -> Res {
    out.set(current_any()?.device.ordinal as Device)
}

api! {
    fn cuCtxCreate_v2(out: Out<Handle>, flags: c_uint, dev: Device) {
        new_context(out, flags, dev)
    }

    fn cuCtxCreate_v3(
        out: Out<Handle>,
        _affinity: *mut u8,
        affinity_count: c_int,
        flags: c_uint,
        dev: Device,
    ) {
        if affinity_count != 0 {
            return Err(Code::UNSUPPORTED_EXEC_AFFINITY);
        }
        new_context(out, flags, dev)
    }

    fn cuCtxCreate_v4(
        out: Out<Handle>,
        params: In<CtxCreateParams>,
        flags: c_uint,
        dev: Device,
    ) {
        if !params.is_null() {
            let params = params.get()?;
            if params.affinity_count != 0 {
                return Err(Code::UNSUPPORTED_EXEC_AFFINITY);
            }
            if !params.cig.is_null() {
                return Err(Code::NOT_SUPPORTED);
            }
        }
        new_context(out, flags, dev)
    }

    fn cuCtxDestroy_v2(handle: Handle) {
        if context(handle)?.primary {
            return Err(Code::INVALID_CONTEXT);
        }
        destroy(handle)
    }

    fn cuCtxGetCurrent(out: Out<Handle>) {
        registry()?;
        out.set(current_handle())
    }

    fn cuCtxSetCurrent(handle: Handle) {
        registry()?;
        set_current(handle)
    }

    fn cuCtxPushCurrent_v2(handle: Handle) {
        push(handle)
    }

    fn cuCtxPopCurrent_v2(out: Out<Handle>) {
        let handle = pop()?;
        out.set_if_asked(handle);
        Ok(())
    }

    fn cuCtxGetDevice(out: Out<Device>) {
        current_device(out)
    }

    fn cuCtxGetDevice_v2(out: Out<Device>, handle: Handle) {
        if handle == 0 {
            return current_device(out);
        }
        out.set(context(handle)?.device.ordinal as Device)
    }

    fn cuCtxGetFlags(out: Out<c_uint>) {
        out.set(current()?.flags.load(Ordering::Acquire))
    }

    fn cuCtxSetFlags(flags: c_uint) {
        if flags & !KNOWN_FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        current()?.flags.store(flags, Ordering::Release);
        Ok(())
    }

    fn cuCtxGetId(handle: Handle, id: Out<u64>) {
        let context = if handle == 0 { current_any()? } else { context(handle)? };
        id.set(context.handle as u64)
    }

    fn cuCtxGetApiVersion(handle: Handle, version: Out<c_uint>) {
        if handle != 0 {
            context(handle)?;
        }
        version.set(13000)
    }

    fn cuCtxSynchronize() {
        current()?.synchronize()
    }

    fn cuCtxSynchronize_v2(handle: Handle) {
        let context = if handle == 0 { current_any()? } else { context(handle)? };
        context.core.check()?;
        context.synchronize()
    }

    fn cuCtxGetLimit(out: Out<usize>, limit: c_uint) {
        let context = current()?;
        let value = *lock(&context.core.limits).slot(limit)?;
        out.set(value)
    }

    fn cuCtxSetLimit(limit: c_uint, value: usize) {
        let context = current()?;
        lock(&context.core.limits).set(limit, value)
    }

    fn cuCtxGetCacheConfig(out: Out<c_uint>) {
        out.set(current()?.cache_config.load(Ordering::Acquire))
    }

    fn cuCtxSetCacheConfig(config: c_uint) {
        if config > 3 {
            return Err(Code::INVALID_VALUE);
        }
        current()?.cache_config.store(config, Ordering::Release);
        Ok(())
    }

    fn cuCtxGetSharedMemConfig(out: Out<c_uint>) {
        current()?;
        // Shared-memory banks are four bytes wide on every emulated architecture.
        out.set(1)
    }

    fn cuCtxSetSharedMemConfig(config: c_uint) {
        if config > 2 {
            return Err(Code::INVALID_VALUE);
        }
        current().map(|_| ())
    }

    fn cuCtxResetPersistingL2Cache() {
        current().map(|_| ())
    }

    fn cuCtxEnablePeerAccess(peer: Handle, flags: c_uint) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let (own, peer) = (current()?, context(peer)?);
        if own.device.ordinal == peer.device.ordinal {
            return Err(Code::INVALID_DEVICE);
        }
        let mut peers = lock(&own.peers);
        if peers.contains(&peer.handle) {
            return Err(Code::PEER_ACCESS_ALREADY_ENABLED);
        }
        peers.push(peer.handle);
        Ok(())
    }

    fn cuCtxDisablePeerAccess(peer: Handle) {
        let own = current()?;
        let mut peers = lock(&own.peers);
        let before = peers.len();
        peers.retain(|&known| known != peer);
        if peers.len() == before { Err(Code::PEER_ACCESS_NOT_ENABLED) } else { Ok(()) }
    }

    fn cuDevicePrimaryCtxRetain(out: Out<Handle>, dev: Device) {
        out.required()?;
        out.set(retain_primary(device(dev)?)?)
    }

    fn cuDevicePrimaryCtxRelease_v2(dev: Device) {
        release_primary(device(dev)?, false)
    }

    fn cuDevicePrimaryCtxReset_v2(dev: Device) {
        release_primary(device(dev)?, true)
    }

    fn cuDevicePrimaryCtxSetFlags_v2(dev: Device, flags: c_uint) {
        if flags & !KNOWN_FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let device = device(dev)?;
        lock(&device.primary).flags = flags;
        if let Ok(context) = context(device.primary_handle) {
            context.flags.store(flags, Ordering::Release);
        }
        Ok(())
    }

    fn cuDevicePrimaryCtxGetState(dev: Device, flags: Out<c_uint>, active: Out<c_int>) {
        let device = device(dev)?;
        flags.set_if_asked(lock(&device.primary).flags);
        active.set_if_asked(c_int::from(context(device.primary_handle).is_ok()));
        Ok(())
    }
}
