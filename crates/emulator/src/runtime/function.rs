//! Properties of kernels: attributes, parameters, and the number of blocks that fit on a
//! multiprocessor.

use std::ffi::{c_char, c_int, c_uint};

use super::call::{driver, runtime, told};
use super::unit::function;
use crate::driver::api::module::{
    cuFuncGetAttribute, cuFuncGetName, cuFuncGetParamInfo, cuFuncSetAttribute,
    cuFuncSetCacheConfig, cuFuncSetSharedMemConfig,
};
use crate::driver::api::occupancy::{
    cuOccupancyAvailableDynamicSMemPerBlock, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
};
use crate::driver::c::abi::Handle;
use crate::driver::c::code::Res;
use crate::driver::c::entry::Out;
use crate::driver::state::module;

/// The C structure `cudaFuncAttributes`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Attributes {
    /// Sizes of static shared memory, constant memory and local memory, bytes.
    sizes: [usize; 3],
    /// The other attributes, in the order of `ORDER`.
    numbers: [c_int; 13],
    reserved: [c_int; 16],
}

/// The driver's numbers (`CUfunction_attribute`) of `sizes` and `numbers`. The cluster scheduling
/// policy (15) precedes the flag for non-portable cluster sizes (14).
const SIZES: [c_uint; 3] = [1, 2, 3];
const ORDER: [c_uint; 13] = [0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 14];

fn attributes(handle: Handle) -> Res<Attributes> {
    let of = |which| told(|out| driver!(cuFuncGetAttribute(out, which, handle)));
    let mut found = Attributes { sizes: [0; 3], numbers: [0; 13], reserved: [0; 16] };
    for (place, which) in found.sizes.iter_mut().zip(SIZES) {
        *place = of(which)? as usize;
    }
    for (place, which) in found.numbers.iter_mut().zip(ORDER) {
        *place = of(which)?;
    }
    Ok(found)
}

runtime! {
    fn cudaFuncGetAttributes(out: Out<Attributes>, symbol: usize) {
        out.required()?;
        out.set(attributes(function(symbol)?)?)
    }

    fn cudaFuncSetAttribute(symbol: usize, which: c_uint, value: c_int) {
        driver!(cuFuncSetAttribute(function(symbol)?, which, value))
    }

    fn cudaFuncSetCacheConfig(symbol: usize, config: c_uint) {
        driver!(cuFuncSetCacheConfig(function(symbol)?, config))
    }

    fn cudaFuncSetSharedMemConfig(symbol: usize, config: c_uint) {
        driver!(cuFuncSetSharedMemConfig(function(symbol)?, config))
    }

    fn cudaFuncGetName(out: Out<*const c_char>, symbol: usize) {
        driver!(cuFuncGetName(out, function(symbol)?))
    }

    fn cudaFuncGetParamInfo(
        symbol: usize,
        index: usize,
        offset: Out<usize>,
        bytes: Out<usize>,
    ) {
        driver!(cuFuncGetParamInfo(function(symbol)?, index, offset, bytes))
    }

    fn cudaFuncGetParamCount(symbol: usize, count: Out<usize>) {
        count.set(module::function(function(symbol)?)?.function.params().len())
    }

    fn cudaGetFuncBySymbol(out: Out<Handle>, symbol: usize) {
        out.required()?;
        out.set(function(symbol)?)
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        out: Out<c_int>,
        symbol: usize,
        block: c_int,
        dynamic: usize,
    ) {
        let handle = function(symbol)?;
        driver!(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
            out, handle, block, dynamic, 0
        ))
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        out: Out<c_int>,
        symbol: usize,
        block: c_int,
        dynamic: usize,
        flags: c_uint,
    ) {
        let handle = function(symbol)?;
        driver!(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
            out, handle, block, dynamic, flags
        ))
    }

    fn cudaOccupancyAvailableDynamicSMemPerBlock(
        out: Out<usize>,
        symbol: usize,
        blocks: c_int,
        block: c_int,
    ) {
        driver!(cuOccupancyAvailableDynamicSMemPerBlock(out, function(symbol)?, blocks, block))
    }
}
