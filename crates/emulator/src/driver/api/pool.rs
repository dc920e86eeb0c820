//! Exported functions for memory pools.

use std::ffi::c_uint;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::driver::c::abi::{AccessDesc, Handle, Location, PoolProps};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{In, Out, api, lock};
use crate::driver::state::pool::Pool;
use crate::driver::state::registry::{device, registry};

/// Value of `CU_MEM_ALLOCATION_TYPE_PINNED`: the memory does not migrate while a program uses it.
const PINNED: c_uint = 1;
/// Value of `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`: the memory can be read and written.
const READ_WRITE: c_uint = 3;

fn get(handle: Handle, attribute: c_uint, out: Out<u64>) -> Res {
    let pool = registry()?.pools.get(handle)?;
    let small = Out::<u32>::from(out);
    match attribute {
        1..=3 => small.set(lock(&pool.reuse)[attribute as usize - 1]),
        4 => out.set(pool.threshold.load(Ordering::Acquire)),
        5 | 7 => out.set(pool.used(handle)?.0),
        6 | 8 => out.set(pool.used(handle)?.1),
        _ => Err(Code::INVALID_VALUE),
    }
}

fn set(handle: Handle, attribute: c_uint, value: Out<u64>) -> Res {
    let pool = registry()?.pools.get(handle)?;
    match attribute {
        1..=3 => {
            let value = Out::<u32>::from(value).get()?;
            lock(&pool.reuse)[attribute as usize - 1] = value;
        }
        4 => pool.threshold.store(value.get()?, Ordering::Release),
        // The high-water marks can only be reset.
        6 | 8 if value.get()? == 0 => pool.high.store(0, Ordering::Release),
        _ => return Err(Code::INVALID_VALUE),
    }
    Ok(())
}

api! {
    fn cuMemPoolCreate(out: Out<Handle>, props: In<PoolProps>) {
        out.required()?;
        let props = props.get()?;
        if props.allocation != PINNED || props.location.kind != Location::DEVICE {
            return Err(Code::INVALID_VALUE);
        }
        if props.handle_types != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let pool = Pool::of(device(props.location.id)?.ordinal);
        out.set(registry()?.pools.insert(Arc::new(pool)))
    }

    fn cuMemPoolDestroy(handle: Handle) {
        let registry = registry()?;
        if registry.devices.iter().any(|device| device.default_pool == handle) {
            return Err(Code::INVALID_VALUE);
        }
        let pool = registry.pools.remove(handle)?;
        let device = device(pool.device as i32)?;
        // A device always has a current pool.
        let _ = device.pool.compare_exchange(
            handle,
            device.default_pool,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        Ok(())
    }

    fn cuMemPoolGetAttribute(handle: Handle, attribute: c_uint, value: Out<u64>) {
        get(handle, attribute, value)
    }

    fn cuMemPoolSetAttribute(handle: Handle, attribute: c_uint, value: Out<u64>) {
        set(handle, attribute, value)
    }

    fn cuMemPoolTrimTo(handle: Handle, _keep: usize) {
        registry()?.pools.get(handle).map(|_| ())
    }

    fn cuMemPoolSetAccess(handle: Handle, list: In<AccessDesc>, count: usize) {
        registry()?.pools.get(handle)?;
        for entry in list.list(count)? {
            if entry.location.kind != Location::DEVICE {
                return Err(Code::INVALID_VALUE);
            }
            device(entry.location.id)?;
        }
        Ok(())
    }

    fn cuMemPoolGetAccess(flags: Out<c_uint>, handle: Handle, location: In<Location>) {
        registry()?.pools.get(handle)?;
        device(location.get()?.id)?;
        // Every device can access all memory.
        flags.set(READ_WRITE)
    }
}
