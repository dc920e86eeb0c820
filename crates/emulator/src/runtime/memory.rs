//! Memory: allocation, release, and attributes of pointers.

use std::ffi::{c_int, c_uint};

use super::call::{driver, entered, runtime, streamed, told};
use crate::driver::api::alloc::{
    cuMemAlloc_v2, cuMemAllocAsync, cuMemAllocFromPoolAsync, cuMemAllocManaged, cuMemAllocPitch_v2,
    cuMemFree_v2, cuMemFreeAsync, cuMemFreeHost, cuMemGetInfo_v2, cuMemHostAlloc,
    cuMemHostGetDevicePointer_v2, cuMemHostGetFlags, cuMemHostRegister_v2, cuMemHostUnregister,
    managed,
};
use crate::driver::c::abi::{Address, Handle};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::Out;
use crate::driver::state::ledger::Kind;
use crate::driver::state::registry::registry;
use crate::memory::AllocKind;

/// Size of an element in bytes, for pitched allocations. The alignment of rows is always larger.
const ELEMENT: c_uint = 4;

/// The C structure `cudaPitchedPtr`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Pitched {
    /// First address of the allocation.
    pub at: Address,
    /// Distance between rows, bytes.
    pub pitch: usize,
    /// Number of bytes per row.
    pub width: usize,
    /// Number of rows per layer.
    pub height: usize,
}

/// The C structure `cudaExtent`: bytes, rows and layers.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Extent {
    /// Number of bytes per row.
    pub width: usize,
    /// Number of rows per layer.
    pub height: usize,
    /// Number of layers.
    pub depth: usize,
}

/// The C structure `cudaPointerAttributes` of CUDA 12. The structure of CUDA 13 is longer, but its
/// other members are not used here.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PointerAttributes {
    kind: c_uint,
    device: c_int,
    device_pointer: Address,
    host_pointer: Address,
}

/// Values of `cudaMemoryTypeUnregistered`, `cudaMemoryTypeHost`, `cudaMemoryTypeDevice` and
/// `cudaMemoryTypeManaged`.
const UNREGISTERED: c_uint = 0;
const HOST: c_uint = 1;
const DEVICE: c_uint = 2;
const MANAGED: c_uint = 3;
/// Value of `cudaInvalidDeviceId`: the memory belongs to no device.
const NO_DEVICE: c_int = -2;

fn pitched(width: usize, height: usize) -> Res<(Address, usize)> {
    let mut at = 0;
    let pitch = told(|pitch| {
        at = told(|at| driver!(cuMemAllocPitch_v2(at, pitch, width, height, ELEMENT)))?;
        Ok(())
    })?;
    Ok((at, pitch))
}

fn describe(address: Address) -> Res<PointerAttributes> {
    let registry = registry()?;
    let Some(found) = registry.memory.allocation(address) else {
        let (device_pointer, host_pointer) = (0, 0);
        let (kind, device) = (UNREGISTERED, NO_DEVICE);
        return Ok(PointerAttributes { kind, device, device_pointer, host_pointer });
    };
    let block = registry.ledger.find(address);
    let managed = block.is_some_and(|block| block.kind == Kind::Managed);
    let (kind, device) = match found.kind {
        AllocKind::Host => (HOST, block.map_or(0, |block| block.device)),
        AllocKind::Device(ordinal) | AllocKind::Module(ordinal) => {
            (if managed { MANAGED } else { DEVICE }, ordinal)
        }
    };
    // Host and managed memory have the same address on the host and on the device.
    let host_pointer = if kind == DEVICE { 0 } else { address };
    let device = device as c_int;
    Ok(PointerAttributes { kind, device, device_pointer: address, host_pointer })
}

runtime! {
    fn cudaMalloc(out: Out<Address>, bytes: usize) {
        // The driver does not support empty allocations. For them, the runtime returns a null
        // pointer.
        if bytes == 0 { out.set(0) } else { driver!(cuMemAlloc_v2(out, bytes)) }
    }

    fn cudaFree(address: Address) {
        driver!(cuMemFree_v2(address))
    }

    fn cudaMallocHost(out: Out<usize>, bytes: usize) {
        if bytes == 0 { out.set(0) } else { driver!(cuMemHostAlloc(out, bytes, 0)) }
    }

    fn cudaHostAlloc(out: Out<usize>, bytes: usize, flags: c_uint) {
        if bytes == 0 { out.set(0) } else { driver!(cuMemHostAlloc(out, bytes, flags)) }
    }

    fn cudaFreeHost(address: usize) {
        if address == 0 { Ok(()) } else { driver!(cuMemFreeHost(address)) }
    }

    fn cudaMallocManaged(out: Out<Address>, bytes: usize, flags: c_uint) {
        driver!(cuMemAllocManaged(out, bytes, flags))
    }

    fn cudaMallocPitch(out: Out<Address>, pitch: Out<usize>, width: usize, height: usize) {
        out.required()?;
        pitch.required()?;
        if width == 0 || height == 0 {
            out.set(0)?;
            return pitch.set(0);
        }
        let made = pitched(width, height)?;
        out.set(made.0)?;
        pitch.set(made.1)
    }

    fn cudaMalloc3D(out: Out<Pitched>, extent: Extent) {
        out.required()?;
        let Extent { width, height, depth } = extent;
        let rows = height.checked_mul(depth).ok_or(Code::INVALID_VALUE)?;
        let (at, pitch) = if width == 0 || rows == 0 { (0, 0) } else { pitched(width, rows)? };
        out.set(Pitched { at, pitch, width, height })
    }

    fn cudaHostRegister(address: usize, bytes: usize, flags: c_uint) {
        driver!(cuMemHostRegister_v2(address, bytes, flags))
    }

    fn cudaHostUnregister(address: usize) {
        driver!(cuMemHostUnregister(address))
    }

    fn cudaHostGetDevicePointer(out: Out<Address>, address: usize, flags: c_uint) {
        driver!(cuMemHostGetDevicePointer_v2(out, address, flags))
    }

    fn cudaHostGetFlags(flags: Out<c_uint>, address: usize) {
        driver!(cuMemHostGetFlags(flags, address))
    }

    fn cudaMemGetInfo(free: Out<usize>, total: Out<usize>) {
        driver!(cuMemGetInfo_v2(free, total))
    }

    fn cudaPointerGetAttributes(out: Out<PointerAttributes>, address: Address) {
        entered()?.core.check()?;
        out.set(describe(address)?)
    }
}

// Hints, which have no effect here. Their later arguments are not read, because they differ between
// CUDA 12 and CUDA 13, which use the same symbols.
runtime! {
    fn cudaMemPrefetchAsync(address: Address, bytes: usize) {
        hint(address, bytes)
    }

    fn cudaMemPrefetchAsync_ptsz(address: Address, bytes: usize) {
        hint(address, bytes)
    }

    fn cudaMemPrefetchAsync_v2(address: Address, bytes: usize) {
        hint(address, bytes)
    }

    fn cudaMemPrefetchAsync_v2_ptsz(address: Address, bytes: usize) {
        hint(address, bytes)
    }

    fn cudaMemAdvise(address: Address, bytes: usize) {
        hint(address, bytes)
    }

    fn cudaMemAdvise_v2(address: Address, bytes: usize) {
        hint(address, bytes)
    }
}

fn hint(address: Address, bytes: usize) -> Res {
    entered()?.core.check()?;
    managed(address, bytes)
}

streamed! {
    fn cudaMallocAsync / cudaMallocAsync_ptsz [stream](
        out: Out<Address>,
        bytes: usize,
        stream: Handle,
    ) {
        driver!(cuMemAllocAsync(out, bytes, stream))
    }

    fn cudaMallocFromPoolAsync / cudaMallocFromPoolAsync_ptsz [stream](
        out: Out<Address>,
        bytes: usize,
        pool: Handle,
        stream: Handle,
    ) {
        driver!(cuMemAllocFromPoolAsync(out, bytes, pool, stream))
    }

    fn cudaFreeAsync / cudaFreeAsync_ptsz [stream](address: Address, stream: Handle) {
        driver!(cuMemFreeAsync(address, stream))
    }
}
