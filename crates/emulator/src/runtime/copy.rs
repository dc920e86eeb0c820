//! Functions that copy memory.

use std::ffi::{c_int, c_uint};

use super::call::{DEFAULT_STREAM, defaulted, runtime, streamed};
use super::error::{INVALID_DIRECTION, INVALID_PITCH};
use super::memory::{Extent, Pitched};
use crate::driver::api::memcpy::transfer_3d;
use crate::driver::c::abi::{Address, Handle, Memcpy3D};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::In;
use crate::driver::state::copy::{Claim, Transfer};
use crate::driver::state::registry::{device, registry};
use crate::driver::state::stream::stream as stream_of;

/// Value of `cudaMemcpyHostToDevice`: only the destination is device memory.
pub const HOST_TO_DEVICE: c_uint = 1;
/// Value of `cudaMemcpyDeviceToHost`: only the source is device memory.
pub const DEVICE_TO_HOST: c_uint = 2;
/// Value of `cudaMemcpyDeviceToDevice`: source and destination are device memory.
pub const DEVICE_TO_DEVICE: c_uint = 3;
/// Value of `cudaMemcpyDefault`: the pointers determine the direction.
pub const ANY: c_uint = 4;

/// Returns the kinds of memory of the destination and the source that a `cudaMemcpyKind` specifies.
pub fn claims(kind: c_uint) -> Res<(Claim, Claim)> {
    match kind {
        0 | ANY => Ok((Claim::Any, Claim::Any)),
        HOST_TO_DEVICE => Ok((Claim::Device, Claim::Any)),
        DEVICE_TO_HOST => Ok((Claim::Any, Claim::Device)),
        DEVICE_TO_DEVICE => Ok((Claim::Device, Claim::Device)),
        _ => Err(INVALID_DIRECTION),
    }
}

/// Submits a contiguous copy in a stream. If `wait` is set, the call waits for it, except for a
/// copy within device memory.
pub fn flat(
    dst: Address,
    src: Address,
    bytes: usize,
    kind: c_uint,
    handle: Handle,
    wait: bool,
) -> Res {
    let (to, from) = claims(kind)?;
    let stream = stream_of(handle)?;
    let wait = wait && kind != DEVICE_TO_DEVICE;
    Transfer::flat((dst, to), (src, from), bytes as u64)?.submit(&stream, wait)
}

/// Value of `CU_MEMORYTYPE_ARRAY`: the memory is a CUDA array.
const ARRAY: c_uint = 3;

/// Returns the driver's memory type for a claim: `CU_MEMORYTYPE_DEVICE` or `CU_MEMORYTYPE_UNIFIED`.
fn place(claim: Claim) -> c_uint {
    match claim {
        Claim::Device => 2,
        Claim::Any => 4,
    }
}

/// Rows of memory that are copied.
struct Rows {
    dst: Pitched,
    src: Pitched,
    size: Extent,
    kind: c_uint,
}

impl Rows {
    /// Returns the rows of a copy that has one layer.
    fn plane(dst: (Address, usize), src: (Address, usize), size: [usize; 2], kind: c_uint) -> Self {
        let side = |(at, pitch)| Pitched { at, pitch, width: size[0], height: size[1] };
        let size = Extent { width: size[0], height: size[1], depth: 1 };
        Rows { dst: side(dst), src: side(src), size, kind }
    }

    fn transfer(&self) -> Res<Transfer> {
        let (to, from) = claims(self.kind)?;
        let Extent { width, height, depth } = self.size;
        if self.dst.pitch < width || self.src.pitch < width {
            return Err(INVALID_PITCH);
        }
        transfer_3d(&Memcpy3D {
            src_type: place(from),
            src_device: self.src.at,
            src_pitch: self.src.pitch,
            src_height: self.src.height,
            dst_type: place(to),
            dst_device: self.dst.at,
            dst_pitch: self.dst.pitch,
            dst_height: self.dst.height,
            width,
            height,
            depth,
            ..Memcpy3D::default()
        })
    }

    fn submit(&self, handle: Handle, wait: bool) -> Res {
        let wait = wait && self.kind != DEVICE_TO_DEVICE;
        self.transfer()?.submit(&*stream_of(handle)?, wait)
    }
}

/// The C structure `cudaMemcpy3DParms`. Positions are in elements, rows and layers. An element of
/// memory is a byte. The size is in elements of an array if an array is involved, and otherwise in
/// bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Copy3D {
    src_array: Handle,
    src_at: [usize; 3],
    src: Pitched,
    dst_array: Handle,
    dst_at: [usize; 3],
    dst: Pitched,
    size: Extent,
    kind: c_uint,
}

impl Copy3D {
    /// Checks the copy and returns its transfer.
    pub fn transfer(&self) -> Res<Transfer> {
        transfer_3d(&self.described()?)
    }

    /// Converts the copy to the driver's structure.
    fn described(&self) -> Res<Memcpy3D> {
        let (to, from) = claims(self.kind)?;
        let (dst_unit, src_unit) = (unit(self.dst_array)?, unit(self.src_array)?);
        let [dst_x, src_x] = [(self.dst_at[0], dst_unit), (self.src_at[0], src_unit)]
            .map(|(x, unit)| x.checked_mul(unit));
        let width = self.size.width.checked_mul(dst_unit.max(src_unit));
        let whole = |bytes: Option<usize>| bytes.ok_or(Code::INVALID_VALUE);
        let (width, dst_x, src_x) = (whole(width)?, whole(dst_x)?, whole(src_x)?);
        let narrow = |array: Handle, side: &Pitched| array == 0 && side.pitch < width;
        if narrow(self.dst_array, &self.dst) || narrow(self.src_array, &self.src) {
            return Err(INVALID_PITCH);
        }
        let kind = |array: Handle, claim| if array == 0 { place(claim) } else { ARRAY };
        Ok(Memcpy3D {
            src_x,
            src_y: self.src_at[1],
            src_z: self.src_at[2],
            src_type: kind(self.src_array, from),
            src_device: self.src.at,
            src_array: self.src_array,
            src_pitch: self.src.pitch,
            src_height: self.src.height,
            dst_x,
            dst_y: self.dst_at[1],
            dst_z: self.dst_at[2],
            dst_type: kind(self.dst_array, to),
            dst_device: self.dst.at,
            dst_array: self.dst_array,
            dst_pitch: self.dst.pitch,
            dst_height: self.dst.height,
            width,
            height: self.size.height,
            depth: self.size.depth,
            ..Memcpy3D::default()
        })
    }

    fn submit(&self, handle: Handle, wait: bool) -> Res {
        let wait = wait && self.kind != DEVICE_TO_DEVICE;
        self.transfer()?.submit(&*stream_of(handle)?, wait)
    }
}

/// Returns the size of an element in bytes: that of the array, or 1 for memory.
fn unit(array: Handle) -> Res<usize> {
    Ok(if array == 0 { 1 } else { registry()?.arrays.get(array)?.texels.bytes() as usize })
}

/// Returns a contiguous copy as the driver's structure for a graph node.
pub fn described(dst: Address, src: Address, bytes: usize, kind: c_uint) -> Res<Memcpy3D> {
    let (to, from) = claims(kind)?;
    Ok(Memcpy3D {
        src_type: place(from),
        src_device: src,
        dst_type: place(to),
        dst_device: dst,
        width: bytes,
        height: 1,
        depth: 1,
        ..Memcpy3D::default()
    })
}

fn peer(dst: (Address, c_int), src: (Address, c_int), bytes: usize, on: Handle, wait: bool) -> Res {
    device(dst.1)?;
    device(src.1)?;
    let claimed = |address| (address, Claim::Device);
    let transfer = Transfer::flat(claimed(dst.0), claimed(src.0), bytes as u64)?;
    transfer.submit(&*stream_of(on)?, wait)
}

defaulted! {
    fn cudaMemcpy / cudaMemcpy_ptds [stream](
        dst: Address,
        src: Address,
        bytes: usize,
        kind: c_uint,
    ) {
        flat(dst, src, bytes, kind, stream, true)
    }

    fn cudaMemcpy2D / cudaMemcpy2D_ptds [stream](
        dst: Address,
        dst_pitch: usize,
        src: Address,
        src_pitch: usize,
        width: usize,
        height: usize,
        kind: c_uint,
    ) {
        let rows = Rows::plane((dst, dst_pitch), (src, src_pitch), [width, height], kind);
        rows.submit(stream, true)
    }

    fn cudaMemcpy3D / cudaMemcpy3D_ptds [stream](copy: In<Copy3D>) {
        copy.get()?.submit(stream, true)
    }
}

streamed! {
    fn cudaMemcpyAsync / cudaMemcpyAsync_ptsz [stream](
        dst: Address,
        src: Address,
        bytes: usize,
        kind: c_uint,
        stream: Handle,
    ) {
        flat(dst, src, bytes, kind, stream, false)
    }

    fn cudaMemcpy2DAsync / cudaMemcpy2DAsync_ptsz [stream](
        dst: Address,
        dst_pitch: usize,
        src: Address,
        src_pitch: usize,
        width: usize,
        height: usize,
        kind: c_uint,
        stream: Handle,
    ) {
        let rows = Rows::plane((dst, dst_pitch), (src, src_pitch), [width, height], kind);
        rows.submit(stream, false)
    }

    fn cudaMemcpy3DAsync / cudaMemcpy3DAsync_ptsz [stream](copy: In<Copy3D>, stream: Handle) {
        copy.get()?.submit(stream, false)
    }
}

runtime! {
    fn cudaMemcpyPeer(
        dst: Address,
        dst_device: c_int,
        src: Address,
        src_device: c_int,
        bytes: usize,
    ) {
        peer((dst, dst_device), (src, src_device), bytes, DEFAULT_STREAM, true)
    }

    fn cudaMemcpyPeerAsync(
        dst: Address,
        dst_device: c_int,
        src: Address,
        src_device: c_int,
        bytes: usize,
        stream: Handle,
    ) {
        peer((dst, dst_device), (src, src_device), bytes, stream, false)
    }
}
