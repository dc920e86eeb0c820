//! Copies.

use std::ffi::{c_int, c_uint};

use super::call::{DEFAULT_STREAM, defaulted, runtime, streamed};
use super::error::{INVALID_DIRECTION, INVALID_PITCH};
use super::memory::{Extent, Pitched};
use crate::driver::api::memcpy::transfer_3d;
use crate::driver::c::abi::{Address, Handle, Memcpy3D};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::In;
use crate::driver::state::copy::{Claim, Transfer};
use crate::driver::state::registry::device;
use crate::driver::state::stream::stream as stream_of;

/// `cudaMemcpyHostToDevice`.
pub const HOST_TO_DEVICE: c_uint = 1;
/// `cudaMemcpyDeviceToHost`.
pub const DEVICE_TO_HOST: c_uint = 2;
/// `cudaMemcpyDeviceToDevice`.
pub const DEVICE_TO_DEVICE: c_uint = 3;
/// `cudaMemcpyDefault`: the pointers determine the direction.
pub const ANY: c_uint = 4;

/// Returns what a kind claims about the destination and about the source.
fn claims(kind: c_uint) -> Res<(Claim, Claim)> {
    match kind {
        0 | ANY => Ok((Claim::Any, Claim::Any)),
        HOST_TO_DEVICE => Ok((Claim::Device, Claim::Any)),
        DEVICE_TO_HOST => Ok((Claim::Any, Claim::Device)),
        DEVICE_TO_DEVICE => Ok((Claim::Device, Claim::Device)),
        _ => Err(INVALID_DIRECTION),
    }
}

/// Submits a contiguous copy in a stream. `wait` makes it synchronous, except for a copy within device
/// memory.
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

/// Returns the driver's memory type for a claim: `CU_MEMORYTYPE_DEVICE` or `CU_MEMORYTYPE_UNIFIED`.
fn place(claim: Claim) -> c_uint {
    match claim {
        Claim::Device => 2,
        Claim::Any => 4,
    }
}

/// Rows to copy.
struct Rows {
    dst: Pitched,
    src: Pitched,
    size: Extent,
    kind: c_uint,
}

impl Rows {
    /// Returns the rows of one layer.
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

/// `cudaMemcpy3DParms`. Positions are in bytes, rows and layers.
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

/// Returns where a copy begins that skips `x` bytes, `y` rows and `z` layers.
fn moved(side: Pitched, [x, y, z]: [usize; 3]) -> Res<Pitched> {
    let rows = z.checked_mul(side.height).and_then(|rows| rows.checked_add(y));
    let bytes = rows.and_then(|rows| rows.checked_mul(side.pitch)?.checked_add(x));
    let at = bytes.and_then(|bytes| side.at.checked_add(bytes as u64));
    Ok(Pitched { at: at.ok_or(Code::INVALID_VALUE)?, ..side })
}

impl Copy3D {
    fn rows(&self) -> Res<Rows> {
        // The emulator has no arrays.
        if self.src_array != 0 || self.dst_array != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let (dst, src) = (moved(self.dst, self.dst_at)?, moved(self.src, self.src_at)?);
        Ok(Rows { dst, src, size: self.size, kind: self.kind })
    }

    /// Checks the copy and returns its transfer.
    pub fn transfer(&self) -> Res<Transfer> {
        self.rows()?.transfer()
    }
}

/// Returns a contiguous copy in the driver's description of a graph node.
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
        copy.get()?.rows()?.submit(stream, true)
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
        copy.get()?.rows()?.submit(stream, false)
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
