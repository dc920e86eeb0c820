//! The interpreter loop: runs one warp until it must wait or has used up its turn.

mod access;
mod at;
mod atomic;
mod between;
mod call;
mod check;
mod collective;
mod copy;
mod fragment;
mod mbarrier;
mod memory;
mod printf;
mod product;
mod runtime;
mod special;
mod spread;
mod surface;
mod tensor;
mod texture;
mod traffic;
mod view;

use self::at::{At, Flow, Step};
pub(super) use self::copy::settle;
use super::state::HELD;
use super::state::clocks::Object;
use super::state::{Cta, FaultKind, LaunchFault, Pick, State, Warp, Where, Worker, fault};
use crate::ir::{Bar, Code, Inst, NO_GUARD, Op};

/// Maximum number of instructions in one turn.
const TURN: u32 = 1 << 16;
/// Number of backward branches after which a group yields, if its loop may wait for another thread.
const SPIN: u32 = 48;
/// Number of backward branches after which a group yields in any other loop.
const LONG: u32 = 1 << 15;

/// Reason why a warp's turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// No lanes of the warp are left.
    Done,
    /// All groups of the warp wait at barriers.
    Blocked,
    /// All groups of the warp appear to wait for other threads.
    Spinning,
    /// The turn is over. Instructions remain.
    Expired,
    /// Instructions remain, but other blocks should run first.
    Held,
}

/// Runs `warp` for one turn.
pub(super) fn run(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &mut Warp,
) -> Result<Turn, Box<LaunchFault>> {
    let mut fuel = TURN;
    loop {
        wake(worker, cta, warp);
        let group = match warp.pick() {
            Pick::Run(g) => g,
            Pick::Spinning => return Ok(Turn::Spinning),
            Pick::Blocked => return Ok(Turn::Blocked),
            Pick::Done => return Ok(Turn::Done),
        };
        let before = fuel;
        let spun = run_group(worker, cta, warp, group, &mut fuel);
        let steps = u64::from(before - fuel);
        worker.executed += steps;
        warp.clock += steps;
        if spun? && warp.groups.len() == 1 {
            warp.groups.iter_mut().for_each(|g| g.yielded = false);
            return Ok(Turn::Spinning);
        }
        if cta.held() {
            return Ok(Turn::Held);
        }
        if fuel == 0 {
            return Ok(Turn::Expired);
        }
    }
}

/// Resumes the groups whose barrier is complete.
fn wake(worker: &Worker<'_>, cta: &mut Cta, warp: &mut Warp) {
    for g in &mut warp.groups {
        let State::Barrier { id, since } = g.state else {
            continue;
        };
        let b = &cta.barriers[id as usize];
        if b.generation == since {
            continue;
        }
        g.state = State::Ready;
        if let Some(races) = &mut cta.races {
            races.acquire(Object::Barrier(id), warp.id);
        }
        let inst = &worker.grid.code.insts[g.pc as usize];
        let (popc, all, any) = b.result;
        let regs = &mut warp.frames[g.frame as usize].regs;
        let wide = |v: bool| if v { u32::MAX } else { 0 };
        match inst.op {
            Op::Bar(Bar::Popc) => regs.put32(inst.d, &[popc; 32], g.mask),
            Op::Bar(Bar::And) => regs.putp(inst.d, wide(all), g.mask),
            Op::Bar(Bar::Or) => regs.putp(inst.d, wide(any), g.mask),
            _ => {}
        }
        g.pc += 1;
    }
}

/// Runs one group until another group must be chosen. Returns whether the group appears to wait in
/// a loop.
fn run_group(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &mut Warp,
    group: usize,
    fuel: &mut u32,
) -> Result<bool, Box<LaunchFault>> {
    let code: &Code = worker.grid.code;
    let alu = worker.grid.alu;
    let g = warp.groups[group];
    let (frame, mask) = (g.frame as usize, g.mask);
    let mut pc = g.pc;
    let mut limit = warp.limit(group, pc);
    let (mut backward, mut waits) = (0u32, false);
    loop {
        let inst: &Inst = &code.insts[pc as usize];
        let mut active = mask;
        if inst.guard != NO_GUARD {
            let p = warp.frames[frame].regs.p[(inst.guard / 2) as usize];
            active &= p ^ 0u32.wrapping_sub(inst.guard & 1);
        }
        let profile = &mut worker.profile[pc as usize];
        profile.warps += 1;
        profile.active += u64::from(mask.count_ones());
        profile.threads += u64::from(active.count_ones());
        *fuel -= 1;
        let mut next = pc + 1;
        if inst.op == Op::Bra {
            if active == mask {
                next = inst.imm as u32;
            } else if active != 0 {
                worker.counts.divergent_branches += 1;
                split(warp, group, inst.imm as u32, active, pc);
                return Ok(false);
            }
            if next <= pc {
                backward += 1;
                limit = warp.limit(group, next);
                let most = if waits { SPIN } else { LONG };
                if backward >= most {
                    warp.groups[group].pc = next;
                    warp.groups[group].yielded = true;
                    return Ok(waits);
                }
            }
        } else if active != 0 && !alu(&mut warp.frames[frame].regs, &code.consts, inst, active) {
            let at = At { group, frame, pc, mask, active };
            waits |= may_wait(&inst.op);
            match other(worker, cta, warp, &at, inst)? {
                Flow::Next => {}
                Flow::Choose => return Ok(false),
            }
        }
        pc = next;
        if pc >= limit || *fuel == 0 {
            warp.groups[group].pc = pc;
            return Ok(false);
        }
    }
}

/// Returns whether a loop around the instruction may wait for another thread.
fn may_wait(op: &Op) -> bool {
    match op {
        Op::Ld(a) => a.strong,
        Op::Atom { result, .. } => *result,
        Op::Nanosleep | Op::Mbar(_) => true,
        _ => false,
    }
}

/// Splits a group: the lanes `taken` branch to `target`, and the others continue.
fn split(warp: &mut Warp, group: usize, target: u32, taken: u32, pc: u32) {
    let mut away = warp.groups[group];
    away.mask = taken;
    away.pc = target;
    warp.groups[group].mask &= !taken;
    warp.groups[group].pc = pc + 1;
    warp.groups.push(away);
}

/// Executes an instruction that is not arithmetic.
fn other(worker: &mut Worker<'_>, cta: &mut Cta, warp: &mut Warp, at: &At, inst: &Inst) -> Step {
    worker.pc = at.pc;
    match inst.op {
        Op::LdParam { .. } => memory::param(worker, warp, at, inst)?,
        Op::Ld(access) => {
            memory::by_space(worker, warp, at, inst, access, |worker, warp, at| {
                memory::load(worker, cta, warp, at, inst, access)
            })?;
            if cta.hold == HELD {
                warp.groups[at.group].pc = at.pc + 1;
                return Ok(Flow::Choose);
            }
        }
        Op::St(access) => memory::by_space(worker, warp, at, inst, access, |worker, warp, at| {
            memory::store(worker, cta, warp, at, inst, access)
        })?,
        Op::Tex(tex) => texture::read(worker, cta, warp, at, inst, tex)?,
        Op::Surf(surf) => surface::run(worker, cta, warp, at, inst, surf)?,
        Op::Atom { rmw, access, result } => {
            memory::by_space(worker, warp, at, inst, access, |worker, warp, at| {
                atomic::atom(worker, cta, warp, at, inst, rmw, access, result)
            })?;
        }
        Op::Sreg(_)
        | Op::Sreg64(_)
        | Op::FrameAddr
        | Op::Activemask
        | Op::Cvta { .. }
        | Op::Isspacep(_) => special::read(worker, cta, warp, at, inst),
        Op::Shfl(_) | Op::Vote(_) | Op::Match { .. } | Op::Redux(_) | Op::Elect | Op::SyncWarp => {
            return collective::run(worker, cta, warp, at, inst);
        }
        Op::Ldmatrix { .. } | Op::Stmatrix { .. } | Op::Mma(_) | Op::Wmma(_) => {
            return tensor::run(worker, cta, warp, at, inst);
        }
        Op::CpAsync { bytes, .. } => copy::cp_async(worker, cta, warp, at, inst, bytes)?,
        Op::CpCommit => cta.copies.commit(warp.id, at.active),
        Op::CpWait { all } => copy::wait(cta, warp, at, (!all).then_some(inst.imm as u32)),
        Op::Mbar(kind) => mbarrier::mbarrier(worker, cta, warp, at, inst, kind)?,
        Op::Bar(kind) => return Ok(barrier(worker, cta, warp, at, inst, kind)),
        Op::Fence => {
            if let Some(races) = &mut cta.races {
                races.global().hand_on(warp.id);
            }
            std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        }
        Op::Nanosleep => {}
        Op::BrxIdx => return branch_table(worker, warp, at, inst),
        Op::Call | Op::CallIndirect => return call::call(worker, warp, at, inst),
        Op::Ret => return Ok(call::ret(worker, warp, at)),
        Op::Builtin(b) => runtime::call(worker, cta, warp, at, inst, b)?,
        Op::Alloca | Op::StackSave | Op::StackRestore => call::stack(worker, cta, warp, at, inst)?,
        Op::Exit => {
            warp.exit(at.frame as u32, at.active);
            cta.exit(warp.id, at.active.count_ones());
            let g = &mut warp.groups[at.group];
            g.mask &= !at.active;
            g.pc = at.pc + 1;
            return Ok(Flow::Choose);
        }
        Op::Trap => {
            let lane = at.active.trailing_zeros();
            let who = Where::new(worker.grid, cta.id, warp, lane, at.pc);
            let message = format!("trap {}{}", who.who(), who.place());
            return Err(fault(FaultKind::Trap, message));
        }
        _ => {
            let line = worker.grid.code.lines[at.pc as usize].0;
            let message = format!("PTX line {line}: {:?} cannot be executed", inst.op);
            return Err(fault(FaultKind::Unsupported, message));
        }
    }
    Ok(Flow::Next)
}

fn barrier(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &mut Warp,
    at: &At,
    inst: &Inst,
    kind: Bar,
) -> Flow {
    let regs = &warp.frames[at.frame].regs;
    let k = &worker.grid.code.consts;
    let first = at.active.trailing_zeros() as usize;
    let id = (regs.s32(k, inst.a)[first] & 15) as u8;
    let expected = regs.s32(k, inst.b)[first];
    let lanes = at.active.count_ones();
    let yes = match kind {
        Bar::Popc | Bar::And | Bar::Or => (regs.sp(inst.c) & at.active).count_ones(),
        _ => 0,
    };
    // A barrier counts whole warps, so the missing lanes of a partial warp arrive with it.
    let whole = expected != 0 && at.active == warp.alive;
    let threads = if whole { 32 } else { lanes };
    if kind == Bar::Sync && worker.grid.opts.sanitize {
        check::divergent_barrier(worker, cta, warp, at, id);
    }
    let since = cta.barriers[id as usize].generation;
    if let Some(races) = &mut cta.races {
        races.release(Object::Barrier(id), warp.id);
    }
    cta.arrive(id, threads, lanes, yes, expected);
    if kind == Bar::Arrive {
        return Flow::Next;
    }
    let g = &mut warp.groups[at.group];
    let mut waiting = *g;
    waiting.mask = at.active;
    waiting.pc = at.pc;
    waiting.state = State::Barrier { id, since };
    waiting.yielded = false;
    if at.active == at.mask {
        *g = waiting;
    } else {
        g.mask &= !at.active;
        g.pc = at.pc + 1;
        warp.groups.push(waiting);
    }
    Flow::Choose
}

/// Executes `brx.idx`: each lane goes to the target that its index selects.
fn branch_table(worker: &Worker<'_>, warp: &mut Warp, at: &At, inst: &Inst) -> Step {
    let table = &worker.grid.code.lists[inst.imm as usize];
    let index = *warp.frames[at.frame].regs.s32(&worker.grid.code.consts, inst.a);
    let mut left = at.active;
    let template = warp.groups[at.group];
    warp.groups[at.group].mask &= !at.active;
    warp.groups[at.group].pc = at.pc + 1;
    while left != 0 {
        let n = index[left.trailing_zeros() as usize];
        let same = (0..32).fold(0, |m, l| m | u32::from(index[l] == n) << l) & left;
        left &= !same;
        let Some(target) = table.get(n as usize) else {
            let line = worker.grid.code.lines[at.pc as usize].0;
            let message = format!(
                "PTX line {line}: branch index {n} is outside the table of {} targets",
                table.len()
            );
            return Err(fault(FaultKind::IllegalInstruction, message));
        };
        let mut g = template;
        (g.mask, g.pc) = (same, *target);
        warp.groups.push(g);
    }
    Ok(Flow::Choose)
}
