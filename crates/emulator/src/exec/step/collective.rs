//! Instructions that exchange values between the lanes of a warp.

use super::at::{At, Flow, Step};
use super::check;
use crate::exec::lanes::Regs;
use crate::exec::state::{Cta, State, Warp, Worker};
use crate::ir::{Consts, Inst, Op, Redux, Shfl, Vote};

/// Returns the operand that holds the mask of the lanes which must take part.
fn members(regs: &Regs, k: &Consts, inst: &Inst) -> [u32; 32] {
    let n = match inst.op {
        Op::Shfl(_) => inst.s,
        Op::Elect | Op::SyncWarp => inst.a,
        _ => inst.b,
    };
    *regs.s32(k, n)
}

/// Executes the instruction for lanes whose partners have arrived. The other lanes wait for their
/// partners.
pub(super) fn run(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &mut Warp,
    at: &At,
    inst: &Inst,
) -> Step {
    let code = worker.grid.code;
    let k = &code.consts;
    let masks = members(&warp.frames[at.frame].regs, k, inst);
    let forced = std::mem::take(&mut warp.groups[at.group].forced);
    let (mut left, mut missing) = (at.active, 0);
    while left != 0 {
        let lane = left.trailing_zeros() as usize;
        let same = (0..32).fold(0, |m, l| m | u32::from(masks[l] == masks[lane]) << l) & left;
        left &= !same;
        let wanted = masks[lane] & warp.alive;
        if wanted & !same != 0 && !forced && waits_for(warp, at, wanted & !same) {
            missing |= same;
            continue;
        }
        if let Some(races) = &mut cta.races {
            races.synchronise_lanes(warp.id, same);
            let (mask, absent) = (masks[lane], wanted & !same);
            if same & !mask != 0 || absent != 0 {
                check::undefined_mask(worker, cta, warp, at, (mask, same, absent));
            }
        }
        execute(&mut warp.frames[at.frame].regs, k, inst, same);
    }
    if missing == 0 {
        return Ok(Flow::Next);
    }
    let g = &mut warp.groups[at.group];
    let mut waiting = *g;
    (waiting.mask, waiting.pc, waiting.state) = (missing, at.pc, State::Sync);
    if missing == at.mask {
        *g = waiting;
    } else {
        g.mask &= !missing;
        g.pc = at.pc + 1;
        warp.groups.push(waiting);
    }
    Ok(Flow::Choose)
}

/// Returns whether missing lanes may still arrive. Lanes of this group that the guard has disabled
/// cannot, since they pass the instruction together with it.
fn waits_for(warp: &Warp, at: &At, lanes: u32) -> bool {
    let here = warp.groups[at.group].mask & !at.active;
    lanes & !here != 0
}

fn execute(regs: &mut Regs, k: &Consts, inst: &Inst, m: u32) {
    match inst.op {
        Op::Shfl(how) => shuffle(regs, k, inst, how, m),
        Op::Vote(how) => vote(regs, inst, how, m),
        Op::Match { all, wide } => matching(regs, k, inst, all, wide, m),
        Op::Redux(op) => reduce(regs, k, inst, op, m),
        Op::Elect => {
            let leader = m.trailing_zeros();
            regs.put32(inst.d, &[leader; 32], m);
            regs.putp(inst.e, 1 << leader, m);
        }
        _ => {}
    }
}

fn shuffle(regs: &mut Regs, k: &Consts, inst: &Inst, how: Shfl, m: u32) {
    let (a, b, c) = (*regs.s32(k, inst.a), *regs.s32(k, inst.b), *regs.s32(k, inst.c));
    let (mut out, mut valid) = (a, 0u32);
    for l in 0..32u32 {
        let (step, clamp, seg) = (b[l as usize] & 31, c[l as usize] & 31, c[l as usize] >> 8 & 31);
        let max = (l & seg) | (clamp & !seg);
        let min = l & seg;
        let (from, good) = match how {
            Shfl::Up => (l.wrapping_sub(step), l as i32 - step as i32 >= max as i32),
            Shfl::Down => (l + step, l + step <= max),
            Shfl::Bfly => (l ^ step, l ^ step <= max),
            Shfl::Idx => (min | (step & !seg), (min | (step & !seg)) <= max),
        };
        if good {
            valid |= 1 << l;
            out[l as usize] = a[(from & 31) as usize];
        }
    }
    regs.put32(inst.d, &out, m);
    regs.putp(inst.e, valid, m);
}

fn vote(regs: &mut Regs, inst: &Inst, how: Vote, m: u32) {
    let p = regs.sp(inst.a) & m;
    let answer = |yes: bool| if yes { u32::MAX } else { 0 };
    match how {
        Vote::Ballot => regs.put32(inst.d, &[p; 32], m),
        Vote::All => regs.putp(inst.d, answer(p == m), m),
        Vote::Any => regs.putp(inst.d, answer(p != 0), m),
        Vote::Uni => regs.putp(inst.d, answer(p == m || p == 0), m),
    }
}

fn matching(regs: &mut Regs, k: &Consts, inst: &Inst, all: bool, wide: bool, m: u32) {
    let v: [u64; 32] = if wide { *regs.s64(k, inst.a) } else { regs.s32(k, inst.a).map(u64::from) };
    let equal = |l: usize| (0..32).fold(0, |x, o| x | u32::from(v[o] == v[l]) << o) & m;
    if all {
        let same = equal(m.trailing_zeros() as usize) == m;
        regs.put32(inst.d, &[if same { m } else { 0 }; 32], m);
        regs.putp(inst.e, if same { u32::MAX } else { 0 }, m);
    } else {
        regs.put32(inst.d, &std::array::from_fn(equal), m);
    }
}

fn reduce(regs: &mut Regs, k: &Consts, inst: &Inst, op: Redux, m: u32) {
    let a = regs.s32(k, inst.a);
    let lanes = (0..32).filter(|l| m >> l & 1 == 1).map(|l| a[l]);
    let v = lanes.reduce(|x, y| match op {
        Redux::Add => x.wrapping_add(y),
        Redux::MinS => (x as i32).min(y as i32) as u32,
        Redux::MaxS => (x as i32).max(y as i32) as u32,
        Redux::MinU => x.min(y),
        Redux::MaxU => x.max(y),
        Redux::And => x & y,
        Redux::Or => x | y,
        Redux::Xor => x ^ y,
    });
    regs.put32(inst.d, &[v.unwrap_or(0); 32], m);
}
