//! Device memory and events shared by processes of one host.
//!
//! An exported object is a file in a directory that the processes have in common
//! (`state::segment`). A handle contains only the file's random number and length, so it cannot
//! refer to any other file. As with the real driver, the process that created a handle cannot open
//! it, and only one context of a device can open memory. The errors for invalid handles were
//! determined on an H200.

use std::ffi::c_uint;
use std::sync::Arc;

use crate::driver::api::pointer::exportable;
use crate::driver::c::abi::{Address, Bytes, Handle};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{Out, api};
use crate::driver::state::context::{context, current};
use crate::driver::state::event::{Event, event};
use crate::driver::state::ledger::{AllocationRequest, Kind};
use crate::driver::state::registry::registry;
use crate::driver::state::segment::{Content, Name, made_here};
use crate::driver::state::signal::{self, Shared};

/// Value of `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`: peer access between the devices is enabled as
/// needed.
const LAZY_PEER: c_uint = 1;

/// The fields of a `CUipcMemHandle` or `CUipcEventHandle`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ticket {
    name: Name,
    bytes: u64,
}

/// Returns the first bytes of every handle. They distinguish handles of this driver from other
/// data.
fn magic(content: Content) -> [u8; 8] {
    match content {
        Content::Memory => *b"wgipcmem",
        Content::Event => *b"wgipcevt",
    }
}

impl Ticket {
    fn write(&self) -> Bytes<64> {
        let mut out = [0; 64];
        out[..8].copy_from_slice(&magic(self.name.content));
        out[8..24].copy_from_slice(&self.name.number.to_le_bytes());
        out[24..32].copy_from_slice(&self.bytes.to_le_bytes());
        Bytes(out)
    }

    /// Parses a handle. Returns `None` if it is not a handle of this kind.
    fn read(handle: &Bytes<64>, content: Content) -> Option<Self> {
        let (mut number, mut bytes) = ([0; 16], [0; 8]);
        number.copy_from_slice(&handle.0[8..24]);
        bytes.copy_from_slice(&handle.0[24..32]);
        let name = Name { content, number: u128::from_le_bytes(number) };
        let ticket = Ticket { name, bytes: u64::from_le_bytes(bytes) };
        (ticket.write().0 == handle.0).then_some(ticket)
    }
}

fn export(address: Address) -> Res<Bytes<64>> {
    current()?;
    let ledger = &registry()?.ledger;
    let block = ledger.find(address).ok_or(Code::INVALID_VALUE)?;
    if !exportable(block) || block.leaving {
        return Err(Code::INVALID_VALUE);
    }
    let name = ledger.share(&block)?.name;
    Ok(Ticket { name, bytes: block.bytes }.write())
}

fn import(handle: &Bytes<64>) -> Res<u64> {
    let context = current()?;
    let registry = registry()?;
    let ticket = Ticket::read(handle, Content::Memory).ok_or(Code::INVALID_VALUE)?;
    if made_here(ticket.name) {
        return Err(Code::INVALID_CONTEXT);
    }
    let request = AllocationRequest {
        bytes: ticket.bytes,
        kind: Kind::Imported,
        context: context.handle,
        device: context.device,
        flags: 0,
        pool: 0,
    };
    registry.ledger.import(request, ticket.name, || {
        registry.segments.open(ticket.name, ticket.bytes).map_err(|_| Code::MAP_FAILED)
    })
}

/// Ends one use of imported memory, in any context. The last use waits for work that may access the
/// memory, and then releases the memory.
fn close(base: Address) -> Res {
    let own = current()?;
    let ledger = &registry()?.ledger;
    let Some(block) = ledger.close(base)? else { return Ok(()) };
    own.drain();
    if let Ok(opener) = context(block.context) {
        opener.drain();
    }
    ledger.release(base)
}

fn export_event(handle: Handle) -> Res<Bytes<64>> {
    let name = event(handle)?.export()?;
    Ok(Ticket { name, bytes: signal::BYTES }.write())
}

fn import_event(handle: &Bytes<64>) -> Res<Handle> {
    let context = current()?;
    let registry = registry()?;
    let ticket = Ticket::read(handle, Content::Event).ok_or(Code::MAP_FAILED)?;
    if made_here(ticket.name) {
        return Err(Code::INVALID_CONTEXT);
    }
    if ticket.bytes != signal::BYTES {
        return Err(Code::MAP_FAILED);
    }
    let shared = Shared::join(&registry.segments, ticket.name).map_err(|_| Code::MAP_FAILED)?;
    Ok(registry.events.insert(Arc::new(Event::imported(context.handle, shared))))
}

api! {
    fn cuIpcGetEventHandle(out: Out<Bytes<64>>, handle: Handle) {
        out.required()?;
        out.set(export_event(handle)?)
    }

    fn cuIpcOpenEventHandle(out: Out<Handle>, handle: Bytes<64>) {
        out.required()?;
        out.set(import_event(&handle)?)
    }

    fn cuIpcGetMemHandle(out: Out<Bytes<64>>, address: Address) {
        out.required()?;
        out.set(export(address)?)
    }

    fn cuIpcOpenMemHandle_v2(out: Out<Address>, handle: Bytes<64>, flags: c_uint) {
        out.required()?;
        if flags != LAZY_PEER {
            return Err(Code::INVALID_VALUE);
        }
        out.set(import(&handle)?)
    }

    fn cuIpcCloseMemHandle(base: Address) {
        close(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_round_trip_and_others_are_refused() {
        let name = Name { content: Content::Memory, number: 1 << 90 | 5 };
        let ticket = Ticket { name, bytes: 4096 };
        let handle = ticket.write();
        assert_eq!(Ticket::read(&handle, Content::Memory), Some(ticket));
        assert_eq!(Ticket::read(&handle, Content::Event), None);
        assert_eq!(Ticket::read(&Bytes([0; 64]), Content::Memory), None);
        let mut longer = handle;
        longer.0[63] = 1;
        assert_eq!(Ticket::read(&longer, Content::Memory), None);
    }
}
