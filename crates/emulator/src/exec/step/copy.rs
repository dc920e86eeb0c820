//! `cp.async`: copies are recorded when they are issued, and performed when a wait requires them.

use super::access::{Kind, Target};
use super::at::At;
use super::memory;
use crate::exec::state::copies::{Arrival, Transfer};
use crate::exec::state::race::Mode;
use crate::exec::state::{Cta, LaunchFault, Warp, Worker};
use crate::ir::{Access, Inst};
use crate::ptx::Space;

/// Issues copies from global to shared memory. Bytes beyond the source's size become zeros.
pub(super) fn cp_async(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &mut Warp,
    at: &At,
    inst: &Inst,
    bytes: u8,
) -> Result<(), Box<LaunchFault>> {
    let words = bytes / 4;
    let access = |space| Access {
        space,
        width: 4,
        count: words,
        sext: false,
        wide: false,
        base64: true,
        strong: false,
        atomic: false,
        to16: false,
    };
    let k = &worker.grid.code.consts;
    let regs = &warp.frames[at.frame].regs;
    let size = *regs.s32(k, inst.c);
    let mut to = *regs.s64(k, inst.a);
    let mut from = regs.s64(k, inst.b).map(|v| v.wrapping_add(inst.imm as u64));
    let first = at.active.trailing_zeros() as usize;
    let (t, f) = (to[first], from[first]);
    for l in (0..32).filter(|l| at.active >> l & 1 == 0) {
        (to[l], from[l]) = (t, f);
    }
    let mut at = At { ..*at };
    memory::resolve(worker, cta, warp, &mut at, &mut to, access(Space::Shared), Kind::Write)?;
    // A lane that copies nothing reads nothing.
    let mut reading = At { active: 0, ..at };
    memory::lanes(at.active, |l| reading.active |= u32::from(size[l] != 0) << l);
    if reading.active != 0 {
        let source = from[reading.active.trailing_zeros() as usize];
        (0..32).filter(|l| reading.active >> l & 1 == 0).for_each(|l| from[l] = source);
        let global = access(Space::Global);
        let target =
            memory::resolve(worker, cta, warp, &mut reading, &mut from, global, Kind::Read)?;
        worker.count_access(&target, global, &from, reading.active, Kind::Read);
    }
    worker.count_access(&Target::Shared, access(Space::Shared), &to, at.active, Kind::Write);
    let mut read = [0u8; 32];
    memory::lanes(reading.active, |l| read[l] = size[l].min(bytes.into()) as u8);
    let marked = if cta.races.is_some() { cta.shared_bytes } else { 0 };
    let oldest = cta.copies.issue(warp.id, at.active, bytes, (&to, &from), read, marked);
    oldest.iter().for_each(|copy| land(cta, copy));
    Ok(())
}

/// Waits until at most `keep` groups of the lanes are pending. If `keep` is `None`, waits until no
/// copies are pending.
pub(super) fn wait(cta: &mut Cta, warp: &Warp, at: &At, keep: Option<u32>) {
    for copy in cta.copies.wait(warp.id, at.active, keep) {
        land(cta, &copy);
        // From now on the bytes count as written by the thread.
        let Some(races) = &mut cta.races else { continue };
        memory::lanes(copy.lanes, |l| {
            let (at, lane) = (u64::from(copy.to[l]), l as u32);
            races.access(at, copy.bytes.into(), warp.id, lane, Mode::Write);
        });
    }
}

/// Completes the copies that an arrival waits for.
pub(super) fn end_before(cta: &mut Cta, arrival: &Arrival) {
    for copy in cta.copies.before(arrival) {
        land(cta, &copy);
    }
}

/// Completes all copies of a block.
pub(in crate::exec) fn settle(cta: &mut Cta) {
    for copy in cta.copies.all() {
        land(cta, &copy);
    }
}

/// Performs a copy. The bytes are read now, not when the copy was issued; the ISA allows both. A
/// kernel that changes the source before it waits may expect the earlier bytes, which is an error.
fn land(cta: &mut Cta, copy: &Transfer) {
    memory::lanes(copy.lanes, |l| {
        let (to, from) = (u64::from(copy.to[l]), copy.from[l]);
        let width = copy.bytes.min(8);
        if copy.size[l] == copy.bytes {
            for n in (0..u64::from(copy.bytes)).step_by(width.into()) {
                // SAFETY: `resolve` has checked the lanes that read, and a multiple of the copy's
                // size is a multiple of `width`; the launch keeps the region mapped.
                let v = unsafe { memory::global_get(from + n, width) };
                memory::shared_put(cta, to + n, width, v);
            }
            return;
        }
        for n in 0..u64::from(copy.bytes) {
            let v = match n < u64::from(copy.size[l]) {
                // SAFETY: as above.
                true => unsafe { memory::global_get(from + n, 1) },
                false => 0,
            };
            memory::shared_put(cta, to + n, 1, v);
        }
    });
}
