//! Copies between CUDA arrays and memory.

use std::ffi::c_uint;

use super::call::{defaulted, streamed};
use super::copy::{DEVICE_TO_DEVICE, claims};
use crate::driver::api::memcpy::in_array;
use crate::driver::c::abi::{Address, Handle};
use crate::driver::c::code::Res;
use crate::driver::state::copy::{Side, Transfer};
use crate::driver::state::registry::registry;
use crate::driver::state::stream::stream as stream_of;

/// Rows that are copied between an array and memory.
#[derive(Clone, Copy)]
struct Rows {
    array: Handle,
    /// Offset in the array, in bytes and rows.
    at: [usize; 2],
    memory: Address,
    pitch: usize,
    /// Number of bytes per row, and number of rows.
    size: [usize; 2],
    kind: c_uint,
    is_to_array: bool,
}

impl Rows {
    fn submit(&self, stream: Handle, wait: bool) -> Res {
        let (to, from) = claims(self.kind)?;
        let [width, height] = self.size.map(|size| size as u64);
        let [x, y] = self.at.map(|at| at as u64);
        let size = [width, height, 1];
        let pitch = self.pitch as u64;
        let claim = if self.is_to_array { from } else { to };
        let memory = Side::pitched(self.memory, size, [pitch, 0], claim)?;
        let array = in_array(self.array, [x, y, 0], size)?;
        let (src, dst) = if self.is_to_array { (memory, array) } else { (array, memory) };
        let transfer = Transfer { src, dst, width, height, depth: 1 };
        transfer.submit(&*stream_of(stream)?, wait && self.kind != DEVICE_TO_DEVICE)
    }

    /// Submits a copy of bytes that are contiguous in memory and fill the array row by row.
    fn submit_bytes(mut self, mut bytes: usize, stream: Handle, wait: bool) -> Res {
        let row = registry()?.arrays.get(self.array)?.row_bytes() as usize;
        while bytes > 0 {
            let [x, y] = self.at;
            let whole = if x == 0 { bytes / row } else { 0 };
            self.size = match whole {
                // The rest of a row. A position beyond its end is rejected.
                0 => [bytes.min(row.saturating_sub(x).max(1)), 1],
                rows => [row, rows],
            };
            self.pitch = row;
            self.submit(stream, wait)?;
            let moved = self.size[0] * self.size[1];
            bytes -= moved;
            self.memory = self.memory.wrapping_add(moved as u64);
            self.at = if x + self.size[0] == row { [0, y + self.size[1]] } else { [x + moved, y] };
        }
        Ok(())
    }
}

defaulted! {
    fn cudaMemcpy2DToArray / cudaMemcpy2DToArray_ptds [stream](
        array: Handle,
        x: usize,
        y: usize,
        memory: Address,
        pitch: usize,
        width: usize,
        height: usize,
        kind: c_uint,
    ) {
        let (at, size) = ([x, y], [width, height]);
        Rows { array, at, memory, pitch, size, kind, is_to_array: true }.submit(stream, true)
    }

    fn cudaMemcpy2DFromArray / cudaMemcpy2DFromArray_ptds [stream](
        memory: Address,
        pitch: usize,
        array: Handle,
        x: usize,
        y: usize,
        width: usize,
        height: usize,
        kind: c_uint,
    ) {
        let (at, size) = ([x, y], [width, height]);
        Rows { array, at, memory, pitch, size, kind, is_to_array: false }.submit(stream, true)
    }

    fn cudaMemcpyToArray / cudaMemcpyToArray_ptds [stream](
        array: Handle,
        x: usize,
        y: usize,
        memory: Address,
        bytes: usize,
        kind: c_uint,
    ) {
        let (at, pitch, size) = ([x, y], 0, [0; 2]);
        let rows = Rows { array, at, memory, pitch, size, kind, is_to_array: true };
        rows.submit_bytes(bytes, stream, true)
    }

    fn cudaMemcpyFromArray / cudaMemcpyFromArray_ptds [stream](
        memory: Address,
        array: Handle,
        x: usize,
        y: usize,
        bytes: usize,
        kind: c_uint,
    ) {
        let (at, pitch, size) = ([x, y], 0, [0; 2]);
        let rows = Rows { array, at, memory, pitch, size, kind, is_to_array: false };
        rows.submit_bytes(bytes, stream, true)
    }
}

streamed! {
    fn cudaMemcpy2DToArrayAsync / cudaMemcpy2DToArrayAsync_ptsz [stream](
        array: Handle,
        x: usize,
        y: usize,
        memory: Address,
        pitch: usize,
        width: usize,
        height: usize,
        kind: c_uint,
        stream: Handle,
    ) {
        let (at, size) = ([x, y], [width, height]);
        Rows { array, at, memory, pitch, size, kind, is_to_array: true }.submit(stream, false)
    }

    fn cudaMemcpy2DFromArrayAsync / cudaMemcpy2DFromArrayAsync_ptsz [stream](
        memory: Address,
        pitch: usize,
        array: Handle,
        x: usize,
        y: usize,
        width: usize,
        height: usize,
        kind: c_uint,
        stream: Handle,
    ) {
        let (at, size) = ([x, y], [width, height]);
        Rows { array, at, memory, pitch, size, kind, is_to_array: false }.submit(stream, false)
    }
}
