//! Exported functions that return attributes of a pointer.

use std::ffi::c_uint;

use crate::driver::c::abi::Address;
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{In, Out, api};
use crate::driver::state::context::current;
use crate::driver::state::ledger::{Block, Kind};
use crate::driver::state::registry::registry;
use crate::memory::AllocKind;

/// Values of `CU_MEMORYTYPE_HOST` and `CU_MEMORYTYPE_DEVICE`.
const HOST: u64 = 1;
const DEVICE: u64 = 2;

/// Returns whether `cuIpcGetMemHandle` accepts an allocation.
pub fn exportable(block: Block) -> bool {
    block.kind == Kind::Device && block.pool == 0
}

/// Returns the value of an attribute, and its size in the caller's buffer, bytes.
fn attribute(address: Address, attribute: c_uint) -> Res<(u64, usize)> {
    let registry = registry()?;
    let found = registry.memory.allocation(address).ok_or(Code::INVALID_VALUE)?;
    let block = registry.ledger.find(address);
    let of_block = |value: fn(&Block) -> u64| block.as_ref().map_or(0, value);
    let host = found.kind == AllocKind::Host;
    let managed = block.is_some_and(|block| block.kind == Kind::Managed);
    let ordinal = match found.kind {
        AllocKind::Device(ordinal) | AllocKind::Module(ordinal) => u64::from(ordinal),
        AllocKind::Host => of_block(|block| u64::from(block.device)),
    };
    Ok(match attribute {
        1 => (of_block(|block| block.context as u64), 8),
        2 => (if host { HOST } else { DEVICE }, 4),
        3 => (address, 8),
        // Only host and managed memory have a host pointer; for other memory this is an error.
        4 if host || managed => (address, 8),
        6 => (0, 4),
        7 => (of_block(|block| block.id), 8),
        8 => (u64::from(managed), 4),
        9 => (ordinal, 4),
        10 => (u64::from(block.is_some_and(exportable)), 4),
        11 => (found.base, 8),
        12 => (found.bytes, 8),
        13 => (1, 4),
        14 => (0, 8),
        15 | 21 => (0, 4),
        // CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE.
        16 => (3, 4),
        17 => (of_block(|block| block.pool as u64), 8),
        18 => (found.bytes, 8),
        19 => (found.base, 8),
        20 => (of_block(|block| block.id), 8),
        _ => return Err(Code::INVALID_VALUE),
    })
}

fn store(data: Out<u64>, value: (u64, usize)) -> Res {
    match value.1 {
        4 => Out::<u32>::from(data).set(value.0 as u32),
        _ => data.set(value.0),
    }
}

api! {
    fn cuPointerGetAttribute(data: Out<u64>, which: c_uint, address: Address) {
        current()?;
        store(data, attribute(address, which)?)
    }

    fn cuPointerGetAttributes(
        count: c_uint,
        which: In<c_uint>,
        data: In<Out<u64>>,
        address: Address,
    ) {
        current()?;
        let places = data.list(count as usize)?;
        for (which, place) in which.list(count as usize)?.into_iter().zip(places) {
            // For an unknown pointer, or an attribute that the pointer does not have, this call stores
            // zero (and the ordinal -1 or -2 in newer versions) instead of failing.
            let unknown = match which {
                9 => (u64::MAX, 4),
                2 | 6 | 8 | 10 | 13 | 15 | 16 | 21 => (0, 4),
                1..=20 => (0, 8),
                _ => return Err(Code::INVALID_VALUE),
            };
            store(place, attribute(address, which).unwrap_or(unknown))?;
        }
        Ok(())
    }

    fn cuPointerSetAttribute(_value: In<u32>, which: c_uint, address: Address) {
        // CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: memory operations are always synchronous here.
        if which != 6 {
            return Err(Code::INVALID_VALUE);
        }
        attribute(address, which).map(|_| ())
    }
}
