//! The CUDA runtime's `cudaMemset` functions, which fill rows and layers with a byte.

use std::ffi::c_int;

use super::call::{defaulted, streamed};
use super::memory::{Extent, Pitched};
use crate::driver::api::memcpy::fill;
use crate::driver::c::abi::{Address, Handle};
use crate::driver::c::code::{Code, Res};
use crate::driver::state::stream::stream as stream_of;

/// Fills rows with a byte. As in the driver, the call does not wait, even without `Async` in its
/// name.
fn set(dst: Address, value: c_int, size: [usize; 2], pitch: usize, stream: Handle) -> Res {
    fill(dst, u32::from(value as u8), 1, size, pitch).submit(&*stream_of(stream)?)
}

/// Fills layers. Contiguous layers are filled like the rows of a single layer.
fn set_layers(dst: Pitched, value: c_int, size: Extent, stream: Handle) -> Res {
    if size.height == dst.height || size.depth == 1 {
        let rows = size.height.checked_mul(size.depth).ok_or(Code::INVALID_VALUE)?;
        return set(dst.at, value, [size.width, rows], dst.pitch, stream);
    }
    let layer = dst.pitch.checked_mul(dst.height).ok_or(Code::INVALID_VALUE)?;
    let mut at = dst.at;
    for _ in 0..size.depth {
        set(at, value, [size.width, size.height], dst.pitch, stream)?;
        at = at.checked_add(layer as u64).ok_or(Code::INVALID_VALUE)?;
    }
    Ok(())
}

defaulted! {
    fn cudaMemset / cudaMemset_ptds [stream](dst: Address, value: c_int, bytes: usize) {
        set(dst, value, [bytes, 1], 0, stream)
    }

    fn cudaMemset2D / cudaMemset2D_ptds [stream](
        dst: Address,
        pitch: usize,
        value: c_int,
        width: usize,
        height: usize,
    ) {
        set(dst, value, [width, height], pitch, stream)
    }

    fn cudaMemset3D / cudaMemset3D_ptds [stream](dst: Pitched, value: c_int, size: Extent) {
        set_layers(dst, value, size, stream)
    }
}

streamed! {
    fn cudaMemsetAsync / cudaMemsetAsync_ptsz [stream](
        dst: Address,
        value: c_int,
        bytes: usize,
        stream: Handle,
    ) {
        set(dst, value, [bytes, 1], 0, stream)
    }

    fn cudaMemset2DAsync / cudaMemset2DAsync_ptsz [stream](
        dst: Address,
        pitch: usize,
        value: c_int,
        width: usize,
        height: usize,
        stream: Handle,
    ) {
        set(dst, value, [width, height], pitch, stream)
    }

    fn cudaMemset3DAsync / cudaMemset3DAsync_ptsz [stream](
        dst: Pitched,
        value: c_int,
        size: Extent,
        stream: Handle,
    ) {
        set_layers(dst, value, size, stream)
    }
}
