//! Device memory that processes of one host share.
//!
//! Exporting an allocation backs it by a file of shared memory, at the same address. The handle
//! names that file through `/proc/<pid>/fd/<n>`: it opens for processes of the same user alone
//! (the kernel asks for the right to inspect the exporting process, and the file's mode is 0600),
//! there is nothing in a file system to clean up or to guess, and the inode number in the handle
//! tells a stale handle from a new file with the same descriptor. As with the real driver, the
//! exporting process must outlive the others' use of the memory.

use std::ffi::c_uint;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use crate::driver::c::abi::{Address, Bytes};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{Out, api};
use crate::driver::state::context::current;
use crate::driver::state::ledger::{AllocationRequest, Kind};
use crate::driver::state::pages::Pages;
use crate::driver::state::registry::registry;
use crate::memory::AllocKind;

/// The begin of every handle; tells a handle of this driver from bytes of anything else.
const MAGIC: [u8; 8] = *b"wgipcmem";
/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`.
const LAZY_PEER: c_uint = 1;

/// What a handle says.
struct Ticket {
    process: u32,
    descriptor: u32,
    inode: u64,
    bytes: u64,
}

impl Ticket {
    fn write(&self) -> Bytes<64> {
        let mut out = [0; 64];
        out[..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&self.process.to_le_bytes());
        out[12..16].copy_from_slice(&self.descriptor.to_le_bytes());
        out[16..24].copy_from_slice(&self.inode.to_le_bytes());
        out[24..32].copy_from_slice(&self.bytes.to_le_bytes());
        Bytes(out)
    }

    fn read(handle: &Bytes<64>) -> Res<Self> {
        let word = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&handle.0[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        if handle.0[..8] != MAGIC {
            return Err(Code::INVALID_VALUE);
        }
        let who = word(8);
        let (process, descriptor) = (who as u32, (who >> 32) as u32);
        Ok(Ticket { process, descriptor, inode: word(16), bytes: word(24) })
    }

    fn open(&self) -> Res<File> {
        let path = format!("/proc/{}/fd/{}", self.process, self.descriptor);
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|_| Code::MAP_FAILED)?;
        let known = file.metadata().map_err(|_| Code::MAP_FAILED)?;
        if known.ino() != self.inode || known.len() != self.bytes {
            return Err(Code::MAP_FAILED);
        }
        Ok(file)
    }
}

fn export(address: Address) -> Res<Bytes<64>> {
    let context = current()?;
    let registry = registry()?;
    let block = registry.ledger.find(address).ok_or(Code::INVALID_VALUE)?;
    if block.kind != Kind::Device || block.pool != 0 {
        return Err(Code::INVALID_VALUE);
    }
    context.drain();
    let file = registry.ledger.share(&block)?;
    let inode = file.metadata().map_err(|_| Code::OPERATING_SYSTEM)?.ino();
    let descriptor = file.as_raw_fd() as u32;
    let process = std::process::id();
    Ok(Ticket { process, descriptor, inode, bytes: block.bytes }.write())
}

fn import(handle: &Bytes<64>) -> Res<u64> {
    let context = current()?;
    let registry = registry()?;
    let ticket = Ticket::read(handle)?;
    if ticket.process == std::process::id() {
        // The real driver refuses to open a handle in the process that made it.
        return Err(Code::INVALID_CONTEXT);
    }
    let pages = Pages::shared(&ticket.open()?, ticket.bytes).map_err(|_| Code::MAP_FAILED)?;
    let device = AllocKind::Device(context.device.ordinal);
    let made = registry.memory.map(pages.base(), ticket.bytes, device);
    let base = made.map_err(|_| Code::MAP_FAILED)?;
    let request = AllocationRequest {
        bytes: ticket.bytes,
        kind: Kind::Imported,
        context: context.handle,
        device: context.device,
        flags: 0,
        pool: 0,
    };
    registry.ledger.adopt(base, request, Some(pages));
    Ok(base)
}

api! {
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
        let context = current()?;
        let ledger = &registry()?.ledger;
        ledger.begin(base, &[Kind::Imported])?;
        context.drain();
        ledger.release(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_round_trip_and_others_are_refused() {
        let ticket = Ticket { process: 7, descriptor: 9, inode: 1 << 40, bytes: 4096 };
        let handle = ticket.write();
        let read = Ticket::read(&handle).unwrap();
        assert_eq!((read.process, read.descriptor), (7, 9));
        assert_eq!((read.inode, read.bytes), (1 << 40, 4096));
        assert!(Ticket::read(&Bytes([0; 64])).is_err());
    }
}
