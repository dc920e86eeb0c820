//! Variables of the program: their addresses, and copies to and from them.

use std::ffi::c_uint;

use super::call::{defaulted, runtime, streamed};
use super::copy::{ANY, DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE, flat};
use super::error::INVALID_DIRECTION;
use super::unit::variable;
use crate::driver::c::abi::{Address, Handle};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::Out;

/// Returns the address of the part of a variable that a copy of this kind accesses.
pub fn part(symbol: usize, offset: usize, bytes: usize, kind: c_uint, into: bool) -> Res<Address> {
    let other = if into { HOST_TO_DEVICE } else { DEVICE_TO_HOST };
    if !matches!(kind, DEVICE_TO_DEVICE | ANY) && kind != other {
        return Err(INVALID_DIRECTION);
    }
    let (address, size) = variable(symbol)?;
    let end = offset.checked_add(bytes).ok_or(Code::INVALID_VALUE)?;
    if end as u64 > size { Err(Code::INVALID_VALUE) } else { Ok(address + offset as u64) }
}

runtime! {
    fn cudaGetSymbolAddress(out: Out<Address>, symbol: usize) {
        out.required()?;
        out.set(variable(symbol)?.0)
    }

    fn cudaGetSymbolSize(out: Out<usize>, symbol: usize) {
        out.required()?;
        out.set(variable(symbol)?.1 as usize)
    }
}

defaulted! {
    fn cudaMemcpyToSymbol / cudaMemcpyToSymbol_ptds [stream](
        symbol: usize,
        src: Address,
        bytes: usize,
        offset: usize,
        kind: c_uint,
    ) {
        flat(part(symbol, offset, bytes, kind, true)?, src, bytes, kind, stream, true)
    }

    fn cudaMemcpyFromSymbol / cudaMemcpyFromSymbol_ptds [stream](
        dst: Address,
        symbol: usize,
        bytes: usize,
        offset: usize,
        kind: c_uint,
    ) {
        flat(dst, part(symbol, offset, bytes, kind, false)?, bytes, kind, stream, true)
    }
}

streamed! {
    fn cudaMemcpyToSymbolAsync / cudaMemcpyToSymbolAsync_ptsz [stream](
        symbol: usize,
        src: Address,
        bytes: usize,
        offset: usize,
        kind: c_uint,
        stream: Handle,
    ) {
        flat(part(symbol, offset, bytes, kind, true)?, src, bytes, kind, stream, false)
    }

    fn cudaMemcpyFromSymbolAsync / cudaMemcpyFromSymbolAsync_ptsz [stream](
        dst: Address,
        symbol: usize,
        bytes: usize,
        offset: usize,
        kind: c_uint,
        stream: Handle,
    ) {
        flat(dst, part(symbol, offset, bytes, kind, false)?, bytes, kind, stream, false)
    }
}
