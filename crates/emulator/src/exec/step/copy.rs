//! `cp.async`.

use super::access::{Kind, Target};
use super::at::At;
use super::memory;
use crate::exec::state::{Cta, LaunchFault, Warp, Worker};
use crate::ir::{Access, Inst};
use crate::ptx::Space;

/// Copies from global to shared memory; what is beyond the source's size becomes zeros.
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
    memory::lanes(at.active, |l| {
        for n in 0..u64::from(bytes) {
            let reads = reading.active >> l & 1 == 1 && n < u64::from(size[l]);
            let v = match reads {
                // SAFETY: `resolve` has checked the lanes that read.
                true => unsafe { memory::global_get(from[l] + n, 1) },
                false => 0,
            };
            memory::shared_put(cta, to[l] + n, 1, v);
        }
    });
    Ok(())
}
