//! Looks for races between blocks, when the sanitiser is on.

use super::access::Kind;
use super::at::At;
use super::check::{Wrong, report, verb};
use super::memory;
use crate::exec::state::blocks::{Act, BlockRaces, Me, Other};
use crate::exec::state::{Cta, FaultKind, Warp, Worker};

/// Who makes an access now.
fn me(races: &BlockRaces, cta: &Cta, releases: bool) -> Me {
    let time = if releases { races.release() } else { races.now() };
    // There are fewer blocks than that, or nothing is compared.
    Me { block: cta.index as u32, time, known: cta.known }
}

/// Notes reads of global memory and atomics on it, before they are made.
#[expect(clippy::too_many_arguments, reason = "the parts of an access")]
pub(super) fn reads(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &Warp,
    at: &At,
    a: &[u64; 32],
    bytes: u32,
    kind: Kind,
    strong: bool,
) {
    let grid = worker.grid;
    let Some(races) = &grid.block_races else { return };
    let atomic = kind != Kind::Read;
    if strong && !atomic {
        return;
    }
    let mut me = me(races, cta, atomic);
    let act = if atomic { Act::Atomic } else { Act::Read };
    for lane in (0..32).filter(|l| at.active >> l & 1 == 1) {
        let place = (a[lane as usize], bytes);
        // Nobody writes to memory that is only read.
        if !atomic
            && worker.region(place.0, place.0 + u64::from(bytes)).is_none_or(|r| r.read_only())
        {
            continue;
        }
        if let Some(other) = races.access(&grid.table, place, &mut me, act) {
            tell(worker, cta, warp, at.pc, lane, place, verb(kind), other);
        }
        if !atomic {
            me.known = races.acquire(&grid.table, place, (me.block, me.known), true);
        }
    }
    cta.known = me.known;
}

/// Notes what a block knows after loads from global memory, or atomics that hand back what was
/// there.
pub(super) fn acquires(worker: &Worker<'_>, cta: &mut Cta, at: &At, a: &[u64; 32], bytes: u32) {
    let grid = worker.grid;
    let Some(races) = &grid.block_races else { return };
    memory::lanes(at.active, |l| {
        let who = (cta.index as u32, cta.known);
        cta.known = races.acquire(&grid.table, (a[l], bytes), who, false);
    });
}

/// Notes a write of one element by each lane to global memory, and makes it if it is a plain one.
#[expect(clippy::too_many_arguments, reason = "the parts of an access")]
pub(super) fn writes(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &Warp,
    at: &At,
    a: &[u64; 32],
    (offset, width): (u64, u8),
    values: &[u64; 32],
    strong: bool,
) {
    let grid = worker.grid;
    let Some(races) = &grid.block_races else { return };
    let mut me = me(races, cta, strong);
    let act = if strong { Act::StrongWrite } else { Act::Write };
    let kept = u64::MAX >> (64 - 8 * u32::from(width));
    for lane in (0..32).filter(|l| at.active >> l & 1 == 1) {
        let (va, new) = (a[lane as usize] + offset, values[lane as usize] & kept);
        let place = (va, width.into());
        let alone = races.alone(va);
        // SAFETY: `resolve` has checked the lanes of the mask.
        if !strong && unsafe { memory::global_get(va, width) } == new {
            continue;
        }
        let other = races.access(&grid.table, place, &mut me, act);
        if !strong {
            // SAFETY: as above.
            unsafe { memory::global_put(va, width, new) };
        }
        drop(alone);
        if let Some(other) = other {
            tell(worker, cta, warp, at.pc, lane, place, "write", other);
        }
    }
    cta.known = me.known;
}

/// Memory is given back to the device's heap, or, if `got`, taken from it.
pub(super) fn heap(worker: &Worker<'_>, cta: &mut Cta, got: bool) {
    match &worker.grid.block_races {
        Some(races) if got => cta.known = cta.known.max(races.allocated()),
        Some(races) => races.freed(),
        None => {}
    }
}

#[expect(clippy::too_many_arguments, reason = "the parts of an access")]
fn tell(
    worker: &mut Worker<'_>,
    cta: &Cta,
    warp: &Warp,
    pc: u32,
    lane: u32,
    (va, bytes): (u64, u32),
    me: &'static str,
    other: Other,
) {
    let [x, y, z] = worker.grid.place(other.block);
    let them = other.what;
    let wrong = Wrong {
        check: "global_race",
        kind: FaultKind::IllegalInstruction,
        address: va,
        bytes,
        text: Box::new(move || {
            (
                format!("race: {bytes}-byte {me} at {va:#x} of global memory"),
                format!(", and {them} by block ({x},{y},{z}) with nothing that orders them"),
            )
        }),
    };
    // A race is a finding, never a fault; and where the time is up, that shows after the turn.
    let _ = report(worker, cta, warp, pc, lane, wrong, true);
}
