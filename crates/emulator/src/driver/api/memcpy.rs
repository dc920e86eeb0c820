//! Exported copy and memset functions.

use std::ffi::{c_uchar, c_uint, c_ushort};

use crate::driver::c::abi::{Address, Handle, Memcpy2D, Memcpy3D};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{In, api};
use crate::driver::state::context::context;
use crate::driver::state::copy::{Claim, Side, Transfer};
use crate::driver::state::stream::stream;
use crate::driver::state::task::Fill;
use Claim::{Any, Device};

/// The stream that synchronous functions use.
const DEFAULT: Handle = 0;

fn flat(dst: (u64, Claim), src: (u64, Claim), bytes: usize, handle: Handle, wait: bool) -> Res {
    let stream = stream(handle)?;
    Transfer::flat(dst, src, bytes as u64)?.submit(&stream, wait)
}

fn peer(dst: (u64, Handle), src: (u64, Handle), bytes: usize, stream: Handle, wait: bool) -> Res {
    context(dst.1)?.core.check()?;
    context(src.1)?.core.check()?;
    flat((dst.0, Claim::Device), (src.0, Claim::Device), bytes, stream, wait)
}

/// `CU_MEMORYTYPE_HOST`, `_DEVICE`, `_UNIFIED`.
fn place(kind: c_uint, host: usize, device: Address) -> Res<(u64, Claim)> {
    match kind {
        1 => Ok((host as u64, Claim::Any)),
        2 => Ok((device, Claim::Device)),
        4 => Ok((device, Claim::Any)),
        3 => Err(Code::NOT_SUPPORTED),
        _ => Err(Code::INVALID_VALUE),
    }
}

fn offset(at: u64, x: usize, y: usize, z: usize, pitch: usize, layer: usize) -> Res<u64> {
    let step = |count: usize, size: usize| count.checked_mul(size);
    let sum = step(y, pitch).and_then(|rows| step(z, layer)?.checked_add(rows)?.checked_add(x));
    sum.and_then(|bytes| at.checked_add(bytes as u64)).ok_or(Code::INVALID_VALUE)
}

/// Converts the C description of a copy of rows and layers to a transfer.
pub fn transfer_3d(copy: &Memcpy3D) -> Res<Transfer> {
    let size = [copy.width as u64, copy.height as u64, copy.depth as u64];
    let src_pitch = if copy.src_pitch == 0 { copy.width } else { copy.src_pitch };
    let dst_pitch = if copy.dst_pitch == 0 { copy.width } else { copy.dst_pitch };
    if copy.src_lod != 0 || copy.dst_lod != 0 || src_pitch < copy.width || dst_pitch < copy.width {
        return Err(Code::INVALID_VALUE);
    }
    let layer = |pitch: usize, rows: usize| {
        pitch.checked_mul(if rows == 0 { copy.height } else { rows }).ok_or(Code::INVALID_VALUE)
    };
    let src_layer = layer(src_pitch, copy.src_height)?;
    let dst_layer = layer(dst_pitch, copy.dst_height)?;
    let (src, src_claim) = place(copy.src_type, copy.src_host, copy.src_device)?;
    let (dst, dst_claim) = place(copy.dst_type, copy.dst_host, copy.dst_device)?;
    let src = offset(src, copy.src_x, copy.src_y, copy.src_z, src_pitch, src_layer)?;
    let dst = offset(dst, copy.dst_x, copy.dst_y, copy.dst_z, dst_pitch, dst_layer)?;
    Ok(Transfer {
        src: Side::pitched(src, size, [src_pitch as u64, src_layer as u64], src_claim)?,
        dst: Side::pitched(dst, size, [dst_pitch as u64, dst_layer as u64], dst_claim)?,
        width: size[0],
        height: size[1],
        depth: size[2],
    })
}

fn transfer_2d(copy: &Memcpy2D) -> Res<Transfer> {
    transfer_3d(&Memcpy3D {
        src_x: copy.src_x,
        src_y: copy.src_y,
        src_type: copy.src_type,
        src_host: copy.src_host,
        src_device: copy.src_device,
        src_pitch: copy.src_pitch,
        dst_x: copy.dst_x,
        dst_y: copy.dst_y,
        dst_type: copy.dst_type,
        dst_host: copy.dst_host,
        dst_device: copy.dst_device,
        dst_pitch: copy.dst_pitch,
        width: copy.width,
        height: copy.height,
        depth: 1,
        ..Memcpy3D::default()
    })
}

/// Returns the fill of a memset call.
pub fn fill(dst: Address, value: u32, element: u8, size: [usize; 2], pitch: usize) -> Fill {
    let [width, height] = size.map(|count| count as u64);
    let pattern = value.to_le_bytes();
    Fill { dst, pattern, element, width, height, pitch: pitch as u64 }
}

/// Memsets of device memory do not wait, whatever their name.
fn set(fill: Fill, handle: Handle) -> Res {
    fill.submit(&*stream(handle)?)
}

api! {
    fn cuMemcpy(dst: Address, src: Address, bytes: usize) {
        flat((dst, Any), (src, Any), bytes, DEFAULT, true)
    }

    fn cuMemcpyAsync(dst: Address, src: Address, bytes: usize, stream: Handle) {
        flat((dst, Any), (src, Any), bytes, stream, false)
    }

    fn cuMemcpyHtoD_v2(dst: Address, src: usize, bytes: usize) {
        flat((dst, Device), (src as u64, Any), bytes, DEFAULT, true)
    }

    fn cuMemcpyHtoDAsync_v2(dst: Address, src: usize, bytes: usize, stream: Handle) {
        flat((dst, Device), (src as u64, Any), bytes, stream, false)
    }

    fn cuMemcpyDtoH_v2(dst: usize, src: Address, bytes: usize) {
        flat((dst as u64, Any), (src, Device), bytes, DEFAULT, true)
    }

    fn cuMemcpyDtoHAsync_v2(dst: usize, src: Address, bytes: usize, stream: Handle) {
        flat((dst as u64, Any), (src, Device), bytes, stream, false)
    }

    fn cuMemcpyDtoD_v2(dst: Address, src: Address, bytes: usize) {
        flat((dst, Device), (src, Device), bytes, DEFAULT, false)
    }

    fn cuMemcpyDtoDAsync_v2(dst: Address, src: Address, bytes: usize, stream: Handle) {
        flat((dst, Device), (src, Device), bytes, stream, false)
    }

    fn cuMemcpyPeer(
        dst: Address,
        dst_context: Handle,
        src: Address,
        src_context: Handle,
        bytes: usize,
    ) {
        peer((dst, dst_context), (src, src_context), bytes, DEFAULT, true)
    }

    fn cuMemcpyPeerAsync(
        dst: Address,
        dst_context: Handle,
        src: Address,
        src_context: Handle,
        bytes: usize,
        stream: Handle,
    ) {
        peer((dst, dst_context), (src, src_context), bytes, stream, false)
    }

    fn cuMemcpy2D_v2(copy: In<Memcpy2D>) {
        transfer_2d(&copy.get()?)?.submit(&*stream(DEFAULT)?, true)
    }

    fn cuMemcpy2DUnaligned_v2(copy: In<Memcpy2D>) {
        transfer_2d(&copy.get()?)?.submit(&*stream(DEFAULT)?, true)
    }

    fn cuMemcpy2DAsync_v2(copy: In<Memcpy2D>, handle: Handle) {
        transfer_2d(&copy.get()?)?.submit(&*stream(handle)?, false)
    }

    fn cuMemcpy3D_v2(copy: In<Memcpy3D>) {
        transfer_3d(&copy.get()?)?.submit(&*stream(DEFAULT)?, true)
    }

    fn cuMemcpy3DAsync_v2(copy: In<Memcpy3D>, handle: Handle) {
        transfer_3d(&copy.get()?)?.submit(&*stream(handle)?, false)
    }

    fn cuMemsetD8_v2(dst: Address, value: c_uchar, count: usize) {
        set(fill(dst, value.into(), 1, [count, 1], 0), DEFAULT)
    }

    fn cuMemsetD16_v2(dst: Address, value: c_ushort, count: usize) {
        set(fill(dst, value.into(), 2, [count, 1], 0), DEFAULT)
    }

    fn cuMemsetD32_v2(dst: Address, value: c_uint, count: usize) {
        set(fill(dst, value, 4, [count, 1], 0), DEFAULT)
    }

    fn cuMemsetD8Async(dst: Address, value: c_uchar, count: usize, stream: Handle) {
        set(fill(dst, value.into(), 1, [count, 1], 0), stream)
    }

    fn cuMemsetD16Async(dst: Address, value: c_ushort, count: usize, stream: Handle) {
        set(fill(dst, value.into(), 2, [count, 1], 0), stream)
    }

    fn cuMemsetD32Async(dst: Address, value: c_uint, count: usize, stream: Handle) {
        set(fill(dst, value, 4, [count, 1], 0), stream)
    }

    fn cuMemsetD2D8_v2(dst: Address, pitch: usize, value: c_uchar, width: usize, height: usize) {
        set(fill(dst, value.into(), 1, [width, height], pitch), DEFAULT)
    }

    fn cuMemsetD2D16_v2(dst: Address, pitch: usize, value: c_ushort, width: usize, height: usize) {
        set(fill(dst, value.into(), 2, [width, height], pitch), DEFAULT)
    }

    fn cuMemsetD2D32_v2(dst: Address, pitch: usize, value: c_uint, width: usize, height: usize) {
        set(fill(dst, value, 4, [width, height], pitch), DEFAULT)
    }

    fn cuMemsetD2D8Async(
        dst: Address,
        pitch: usize,
        value: c_uchar,
        width: usize,
        height: usize,
        stream: Handle,
    ) {
        set(fill(dst, value.into(), 1, [width, height], pitch), stream)
    }

    fn cuMemsetD2D16Async(
        dst: Address,
        pitch: usize,
        value: c_ushort,
        width: usize,
        height: usize,
        stream: Handle,
    ) {
        set(fill(dst, value.into(), 2, [width, height], pitch), stream)
    }

    fn cuMemsetD2D32Async(
        dst: Address,
        pitch: usize,
        value: c_uint,
        width: usize,
        height: usize,
        stream: Handle,
    ) {
        set(fill(dst, value, 4, [width, height], pitch), stream)
    }
}
