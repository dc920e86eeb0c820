//! Detects races on global memory if the sanitiser is on: between blocks, and between the warps of
//! a block.

use super::access::Kind;
use super::at::At;
use super::check::{Wrong, report, verb};
use super::memory;
use crate::exec::state::blocks::{Act, BlockRaces, Me, Other};
use crate::exec::state::{Cta, FaultKind, Warp, Worker};

/// Returns the identity and the logical time of the block for an access.
fn me(races: &BlockRaces, cta: &Cta, releases: bool) -> Me {
    let time = if releases { races.release() } else { races.now() };
    // The index fits in 32 bits: launches with more blocks are not checked.
    Me { block: cta.index as u32, time, known: cta.known }
}

/// Checks plain reads and atomics on global memory for races, before they are performed.
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
    let atomic = kind != Kind::Read;
    if strong && !atomic {
        return;
    }
    let act = if atomic { Act::Atomic } else { Act::Read };
    within_block(worker, cta, warp, at, at.active, (a, 0, bytes), act);
    let Some(races) = &grid.block_races else { return };
    let mut me = me(races, cta, atomic);
    for lane in (0..32).filter(|l| at.active >> l & 1 == 1) {
        let place = (a[lane as usize], bytes);
        // No kernel writes to read-only memory, so reads of it cannot race.
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

/// Records which accesses are ordered before the block's, after strong loads from global memory and
/// after atomics that return the old value.
pub(super) fn acquires(
    worker: &Worker<'_>,
    cta: &mut Cta,
    warp: &Warp,
    at: &At,
    a: &[u64; 32],
    bytes: u32,
) {
    let grid = worker.grid;
    if let Some(races) = &mut cta.races {
        memory::lanes(at.active, |l| {
            races.global().read_strongly(&grid.room, (a[l], bytes), warp.id);
        });
    }
    let Some(races) = &grid.block_races else { return };
    memory::lanes(at.active, |l| {
        let who = (cta.index as u32, cta.known);
        cta.known = races.acquire(&grid.table, (a[l], bytes), who, false);
    });
}

/// Checks a write of one element per lane to global memory for races. Performs it if it is plain.
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
    let act = if strong { Act::StrongWrite } else { Act::Write };
    let kept = u64::MAX >> (64 - 8 * u32::from(width));
    let mut changing = at.active;
    memory::lanes(at.active, |l| {
        // SAFETY: `resolve` has checked the lanes of the mask.
        let held = unsafe { memory::global_get(a[l] + offset, width) };
        if !strong && held == values[l] & kept {
            changing &= !(1 << l);
        }
    });
    within_block(worker, cta, warp, at, changing, (a, offset, width.into()), act);
    let Some(races) = &grid.block_races else { return };
    let mut me = me(races, cta, strong);
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

/// Records an allocation from the device's heap (`got`), or that memory is freed on it.
pub(super) fn heap(worker: &Worker<'_>, cta: &mut Cta, warp: &Warp, got: bool) {
    if let Some(races) = &mut cta.races {
        let mut within = races.global();
        if got { within.take_over(warp.id) } else { within.hand_on(warp.id) }
    }
    match &worker.grid.block_races {
        Some(races) if got => cta.known = cta.known.max(races.allocated()),
        Some(races) => races.freed(),
        None => {}
    }
}

/// Checks accesses of a warp against those of other warps of its block, before they are performed.
fn within_block(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &Warp,
    at: &At,
    lanes: u32,
    (a, offset, bytes): (&[u64; 32], u64, u32),
    act: Act,
) {
    let Some(mut races) = cta.races.take() else { return };
    let mut within = races.global();
    for lane in (0..32).filter(|lane| lanes >> lane & 1 == 1) {
        let va = a[lane as usize] + offset;
        // No kernel writes to read-only memory, so reads of it cannot race.
        let watched = act != Act::Read
            || worker.region(va, va + u64::from(bytes)).is_some_and(|r| !r.read_only());
        let thread = warp.id * 32 + lane;
        let rival =
            if watched { within.access(&worker.grid.room, (va, bytes), thread, act) } else { None };
        let Some((other, them)) = rival else { continue };
        let me = match act {
            Act::Read => "read",
            Act::Write | Act::StrongWrite => "write",
            Act::Atomic => "atomic",
        };
        let (other_warp, other_lane) = (other / 32, other % 32);
        let beside = move || {
            format!(
                ", and {them} by warp {other_warp} lane {other_lane} of the same block with no \
                 barrier between"
            )
        };
        found(worker, cta, warp, (at.pc, lane), (va, bytes), me, beside);
    }
    if matches!(act, Act::Atomic | Act::StrongWrite) {
        within.hand_on(warp.id);
    }
    cta.races = Some(races);
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
    let beside =
        move || format!(", and {them} by block ({x},{y},{z}) without synchronisation between them");
    found(worker, cta, warp, (pc, lane), (va, bytes), me, beside);
}

/// Reports that an access races. `beside` describes the other access.
fn found(
    worker: &mut Worker<'_>,
    cta: &Cta,
    warp: &Warp,
    (pc, lane): (u32, u32),
    (va, bytes): (u64, u32),
    me: &'static str,
    beside: impl FnOnce() -> String + 'static,
) {
    let wrong = Wrong {
        check: "global_race",
        kind: FaultKind::IllegalInstruction,
        address: va,
        bytes,
        text: Box::new(move || {
            (format!("race: {bytes}-byte {me} at {va:#x} of global memory"), beside())
        }),
    };
    // A race is a finding, never a fault. The time limit is checked again after the turn.
    let _ = report(worker, cta, warp, pc, lane, wrong, true);
}
