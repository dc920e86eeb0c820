//! Devices: their number, their settings, and the device of a thread.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::call::{bare, begin, driver, hold, own_device, reset, runtime, told, use_device};
use crate::driver::api::context::{
    cuCtxDisablePeerAccess, cuCtxEnablePeerAccess, cuCtxGetCacheConfig, cuCtxGetLimit,
    cuCtxGetSharedMemConfig, cuCtxResetPersistingL2Cache, cuCtxSetCacheConfig, cuCtxSetLimit,
    cuCtxSetSharedMemConfig, cuCtxSynchronize, cuDevicePrimaryCtxGetState,
    cuDevicePrimaryCtxSetFlags_v2,
};
use crate::driver::api::device::{
    DRIVER_VERSION, cuDeviceCanAccessPeer, cuDeviceGetAttribute, cuDeviceGetByPCIBusId,
    cuDeviceGetCount, cuDeviceGetP2PAttribute, cuDeviceGetPCIBusId,
};
use crate::driver::api::stream::cuCtxGetStreamPriorityRange;
use crate::driver::c::code::Res;
use crate::driver::c::entry::{Out, Text};
use crate::driver::state::registry::device;

/// Value of `cudaInitDeviceFlagsAreValid`: `cudaInitDevice` applies the flags of the device.
const FLAGS_ARE_VALID: c_uint = 1;

fn set_flags(ordinal: c_int, flags: c_uint) -> Res {
    driver!(cuDevicePrimaryCtxSetFlags_v2(ordinal, flags))
}

bare! {
    fn cudaGetDeviceCount(count: Out<c_int>) {
        begin()?;
        driver!(cuDeviceGetCount(count))
    }

    fn cudaGetDevice(out: Out<c_int>) {
        out.set(own_device()?.ordinal as c_int)
    }

    fn cudaSetDevice(ordinal: c_int) {
        use_device(ordinal)
    }

    fn cudaInitDevice(ordinal: c_int, device_flags: c_uint, flags: c_uint) {
        begin()?;
        let found = device(ordinal)?;
        if flags & FLAGS_ARE_VALID != 0 {
            set_flags(ordinal, device_flags)?;
        }
        hold(found).map(|_| ())
    }

    fn cudaDeviceReset() {
        reset()
    }

    fn cudaChooseDevice(out: Out<c_int>, _properties: *const c_void) {
        begin()?;
        // All devices are alike.
        out.set(0)
    }

    fn cudaSetDeviceFlags(flags: c_uint) {
        set_flags(own_device()?.ordinal as c_int, flags)
    }

    fn cudaGetDeviceFlags(flags: Out<c_uint>) {
        let ordinal = own_device()?.ordinal as c_int;
        flags.required()?;
        told::<c_int>(|active| {
            driver!(cuDevicePrimaryCtxGetState(ordinal, flags, active))
        })
        .map(|_| ())
    }

    fn cudaDeviceGetAttribute(out: Out<c_int>, attribute: c_uint, ordinal: c_int) {
        begin()?;
        driver!(cuDeviceGetAttribute(out, attribute, ordinal))
    }

    fn cudaDeviceGetPCIBusId(out: Out<c_char>, len: c_int, ordinal: c_int) {
        begin()?;
        driver!(cuDeviceGetPCIBusId(out, len, ordinal))
    }

    fn cudaDeviceGetByPCIBusId(out: Out<c_int>, id: Text) {
        begin()?;
        driver!(cuDeviceGetByPCIBusId(out, id))
    }

    fn cudaDeviceCanAccessPeer(out: Out<c_int>, ordinal: c_int, peer: c_int) {
        begin()?;
        driver!(cuDeviceCanAccessPeer(out, ordinal, peer))
    }

    fn cudaDeviceGetP2PAttribute(out: Out<c_int>, attribute: c_uint, from: c_int, to: c_int) {
        begin()?;
        driver!(cuDeviceGetP2PAttribute(out, attribute, from, to))
    }

    fn cudaDriverGetVersion(version: Out<c_int>) {
        version.set(DRIVER_VERSION)
    }

    fn cudaRuntimeGetVersion(version: Out<c_int>) {
        version.set(DRIVER_VERSION)
    }

    fn cudaProfilerStart() {
        begin()
    }

    fn cudaProfilerStop() {
        begin()
    }
}

runtime! {
    fn cudaDeviceSynchronize() {
        driver!(cuCtxSynchronize())
    }

    fn cudaDeviceSetLimit(limit: c_uint, value: usize) {
        driver!(cuCtxSetLimit(limit, value))
    }

    fn cudaDeviceGetLimit(out: Out<usize>, limit: c_uint) {
        driver!(cuCtxGetLimit(out, limit))
    }

    fn cudaDeviceSetCacheConfig(config: c_uint) {
        driver!(cuCtxSetCacheConfig(config))
    }

    fn cudaDeviceGetCacheConfig(out: Out<c_uint>) {
        driver!(cuCtxGetCacheConfig(out))
    }

    fn cudaDeviceSetSharedMemConfig(config: c_uint) {
        driver!(cuCtxSetSharedMemConfig(config))
    }

    fn cudaDeviceGetSharedMemConfig(out: Out<c_uint>) {
        driver!(cuCtxGetSharedMemConfig(out))
    }

    fn cudaCtxResetPersistingL2Cache() {
        driver!(cuCtxResetPersistingL2Cache())
    }

    fn cudaDeviceGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) {
        driver!(cuCtxGetStreamPriorityRange(least, greatest))
    }

    fn cudaDeviceEnablePeerAccess(peer: c_int, flags: c_uint) {
        driver!(cuCtxEnablePeerAccess(hold(device(peer)?)?, flags))
    }

    fn cudaDeviceDisablePeerAccess(peer: c_int) {
        driver!(cuCtxDisablePeerAccess(device(peer)?.primary_handle))
    }
}
