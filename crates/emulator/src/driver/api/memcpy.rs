//! Exported copy and memset functions.

use std::ffi::{c_uchar, c_uint, c_ushort};

use crate::driver::c::abi::{Address, Handle, Memcpy2D, Memcpy3D};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{In, api};
use crate::driver::state::context::context;
use crate::driver::state::copy::{Claim, Side, Transfer};
use crate::driver::state::registry::registry;
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

/// One end of a copy of rows and layers, in the fields of the C structure.
struct End {
    kind: c_uint,
    host: usize,
    device: Address,
    array: Handle,
    /// Offset of the copied region in bytes, rows and layers.
    at: [usize; 3],
    pitch: usize,
    /// Number of rows per layer; 0 means the number of copied rows.
    rows: usize,
}

/// Values of `CU_MEMORYTYPE_HOST`, `_DEVICE`, `_ARRAY` and `_UNIFIED`.
const HOST: c_uint = 1;
const DEVICE: c_uint = 2;
const ARRAY: c_uint = 3;
const UNIFIED: c_uint = 4;

impl End {
    fn side(&self, size: [u64; 3]) -> Res<Side> {
        let (start, claim) = match self.kind {
            HOST => (self.host as u64, Claim::Any),
            DEVICE => (self.device, Claim::Device),
            UNIFIED => (self.device, Claim::Any),
            ARRAY => return in_array(self.array, self.at.map(|at| at as u64), size),
            _ => return Err(Code::INVALID_VALUE),
        };
        let [width, height, _] = size;
        let pitch = if self.pitch == 0 { width } else { self.pitch as u64 };
        if pitch < width {
            return Err(Code::INVALID_VALUE);
        }
        let rows = if self.rows == 0 { height } else { self.rows as u64 };
        let layer = pitch.checked_mul(rows).ok_or(Code::INVALID_VALUE)?;
        let [x, y, z] = self.at.map(|at| at as u64);
        let before = y.checked_mul(pitch).and_then(|rows| z.checked_mul(layer)?.checked_add(rows));
        let at = before.and_then(|bytes| start.checked_add(bytes)?.checked_add(x));
        Side::pitched(at.ok_or(Code::INVALID_VALUE)?, size, [pitch, layer], claim)
    }
}

/// Returns a transfer's side that is in an array.
pub fn in_array(array: Handle, at: [u64; 3], size: [u64; 3]) -> Res<Side> {
    let array = registry()?.arrays.get(array)?;
    let [_, height, depth] = array.texels.extents;
    let room = [array.row_bytes(), height, depth];
    let fits = |at: u64, size: u64, room: u64| at.checked_add(size).is_some_and(|end| end <= room);
    if (0..3).any(|dimension| !fits(at[dimension], size[dimension], room[dimension])) {
        return Err(Code::INVALID_VALUE);
    }
    let start = array.texels.byte_at(at[0], at[1], at[2]);
    Side::pitched(start, size, array.texels.pitches, Claim::Device)
}

/// Converts the C structure of a copy of rows and layers to a transfer.
pub fn transfer_3d(copy: &Memcpy3D) -> Res<Transfer> {
    let size = [copy.width as u64, copy.height as u64, copy.depth as u64];
    if copy.src_lod != 0 || copy.dst_lod != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let src = End {
        kind: copy.src_type,
        host: copy.src_host,
        device: copy.src_device,
        array: copy.src_array,
        at: [copy.src_x, copy.src_y, copy.src_z],
        pitch: copy.src_pitch,
        rows: copy.src_height,
    };
    let dst = End {
        kind: copy.dst_type,
        host: copy.dst_host,
        device: copy.dst_device,
        array: copy.dst_array,
        at: [copy.dst_x, copy.dst_y, copy.dst_z],
        pitch: copy.dst_pitch,
        rows: copy.dst_height,
    };
    let (src, dst) = (src.side(size)?, dst.side(size)?);
    Ok(Transfer { src, dst, width: size[0], height: size[1], depth: size[2] })
}

fn transfer_2d(copy: &Memcpy2D) -> Res<Transfer> {
    transfer_3d(&Memcpy3D {
        src_x: copy.src_x,
        src_y: copy.src_y,
        src_type: copy.src_type,
        src_host: copy.src_host,
        src_device: copy.src_device,
        src_array: copy.src_array,
        src_pitch: copy.src_pitch,
        dst_x: copy.dst_x,
        dst_y: copy.dst_y,
        dst_type: copy.dst_type,
        dst_host: copy.dst_host,
        dst_device: copy.dst_device,
        dst_array: copy.dst_array,
        dst_pitch: copy.dst_pitch,
        width: copy.width,
        height: copy.height,
        depth: 1,
        ..Memcpy3D::default()
    })
}

/// Copies `bytes` bytes between memory and the first row of an array, or between the first rows of
/// two arrays, from an offset on.
fn row(dst: RowEnd, src: RowEnd, bytes: usize, handle: Handle, wait: bool) -> Res {
    let size = [bytes as u64, 1, 1];
    let side = |end: RowEnd| match end {
        RowEnd::Memory(at, claim) => Side::flat(at, bytes as u64, claim),
        RowEnd::Array(array, offset) => in_array(array, [offset as u64, 0, 0], size),
    };
    let (src, dst) = (side(src)?, side(dst)?);
    let transfer = Transfer { src, dst, width: bytes as u64, height: 1, depth: 1 };
    transfer.submit(&*stream(handle)?, wait)
}

/// One end of a copy of bytes.
#[derive(Clone, Copy)]
enum RowEnd {
    Memory(u64, Claim),
    Array(Handle, usize),
}

/// Converts the arguments of a memset call to a fill.
pub fn fill(dst: Address, value: u32, element: u8, size: [usize; 2], pitch: usize) -> Fill {
    let [width, height] = size.map(|count| count as u64);
    let pattern = value.to_le_bytes();
    Fill { dst, pattern, element, width, height, pitch: pitch as u64 }
}

/// Queues a memset. The call does not wait for memsets of device memory, even without `Async` in
/// its name.
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

    fn cuMemcpyHtoA_v2(dst: Handle, offset: usize, src: usize, bytes: usize) {
        row(RowEnd::Array(dst, offset), RowEnd::Memory(src as u64, Any), bytes, DEFAULT, true)
    }

    fn cuMemcpyHtoAAsync_v2(dst: Handle, offset: usize, src: usize, bytes: usize, stream: Handle) {
        row(RowEnd::Array(dst, offset), RowEnd::Memory(src as u64, Any), bytes, stream, false)
    }

    fn cuMemcpyAtoH_v2(dst: usize, src: Handle, offset: usize, bytes: usize) {
        row(RowEnd::Memory(dst as u64, Any), RowEnd::Array(src, offset), bytes, DEFAULT, true)
    }

    fn cuMemcpyAtoHAsync_v2(dst: usize, src: Handle, offset: usize, bytes: usize, stream: Handle) {
        row(RowEnd::Memory(dst as u64, Any), RowEnd::Array(src, offset), bytes, stream, false)
    }

    fn cuMemcpyDtoA_v2(dst: Handle, offset: usize, src: Address, bytes: usize) {
        row(RowEnd::Array(dst, offset), RowEnd::Memory(src, Device), bytes, DEFAULT, false)
    }

    fn cuMemcpyAtoD_v2(dst: Address, src: Handle, offset: usize, bytes: usize) {
        row(RowEnd::Memory(dst, Device), RowEnd::Array(src, offset), bytes, DEFAULT, false)
    }

    fn cuMemcpyAtoA_v2(
        dst: Handle,
        dst_offset: usize,
        src: Handle,
        src_offset: usize,
        bytes: usize,
    ) {
        row(RowEnd::Array(dst, dst_offset), RowEnd::Array(src, src_offset), bytes, DEFAULT, false)
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
