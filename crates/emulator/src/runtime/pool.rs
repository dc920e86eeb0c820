//! Functions for memory pools.

use std::ffi::{c_int, c_uint};

use super::call::{bare, begin, driver};
use crate::driver::api::device::{
    cuDeviceGetDefaultMemPool, cuDeviceGetMemPool, cuDeviceGraphMemTrim, cuDeviceSetMemPool,
};
use crate::driver::api::pool::{
    cuMemPoolCreate, cuMemPoolDestroy, cuMemPoolGetAccess, cuMemPoolGetAttribute,
    cuMemPoolSetAccess, cuMemPoolSetAttribute, cuMemPoolTrimTo,
};
use crate::driver::c::abi::{AccessDesc, Handle, Location, PoolProps};
use crate::driver::c::entry::{In, Out};

bare! {
    fn cudaDeviceGetDefaultMemPool(out: Out<Handle>, ordinal: c_int) {
        begin()?;
        driver!(cuDeviceGetDefaultMemPool(out, ordinal))
    }

    fn cudaDeviceGetMemPool(out: Out<Handle>, ordinal: c_int) {
        begin()?;
        driver!(cuDeviceGetMemPool(out, ordinal))
    }

    fn cudaDeviceSetMemPool(ordinal: c_int, pool: Handle) {
        begin()?;
        driver!(cuDeviceSetMemPool(ordinal, pool))
    }

    fn cudaDeviceGraphMemTrim(ordinal: c_int) {
        begin()?;
        driver!(cuDeviceGraphMemTrim(ordinal))
    }

    fn cudaMemPoolCreate(out: Out<Handle>, properties: In<PoolProps>) {
        begin()?;
        driver!(cuMemPoolCreate(out, properties))
    }

    fn cudaMemPoolDestroy(pool: Handle) {
        begin()?;
        driver!(cuMemPoolDestroy(pool))
    }

    fn cudaMemPoolGetAttribute(pool: Handle, attribute: c_uint, value: Out<u64>) {
        begin()?;
        driver!(cuMemPoolGetAttribute(pool, attribute, value))
    }

    fn cudaMemPoolSetAttribute(pool: Handle, attribute: c_uint, value: Out<u64>) {
        begin()?;
        driver!(cuMemPoolSetAttribute(pool, attribute, value))
    }

    fn cudaMemPoolTrimTo(pool: Handle, keep: usize) {
        begin()?;
        driver!(cuMemPoolTrimTo(pool, keep))
    }

    fn cudaMemPoolSetAccess(pool: Handle, list: In<AccessDesc>, count: usize) {
        begin()?;
        driver!(cuMemPoolSetAccess(pool, list, count))
    }

    fn cudaMemPoolGetAccess(flags: Out<c_uint>, pool: Handle, location: In<Location>) {
        begin()?;
        driver!(cuMemPoolGetAccess(flags, pool, location))
    }
}
