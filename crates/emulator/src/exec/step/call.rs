//! Calls, returns and the stack.

use super::at::{At, Flow, Step};
use crate::exec::state::{
    Cta, FaultKind, LaunchFault, MAX_DEPTH, NONE, STACK, Warp, Where, Worker, fault,
};
use crate::ir::window::FUNCTION_WINDOW;
use crate::ir::{Inst, Op, Row32};

/// Parameter size above which copying takes longer than thousands of instructions, bytes.
const LONG: u64 = 4 << 10;
/// Maximum memory for the calls of all threads that have begun, bytes.
const MAX_STACKS: u64 = 1 << 30;

/// Copies `bytes` bytes between the local memory of two frames, in the lanes of `mask`.
fn copy(warp: &mut Warp, to: u32, from: u32, bytes: u32, mask: u32) {
    for n in 0..bytes.div_ceil(4) {
        let v = warp.local[(from / 4 + n) as usize];
        let d = &mut warp.local[(to / 4 + n) as usize];
        for l in 0..32 {
            d.0[l] = if mask >> l & 1 != 0 { v.0[l] } else { d.0[l] };
        }
    }
}

/// Returns the fault of a call that exceeds a stack limit. A GPU does not support recursion of this
/// depth either, because its stack is smaller. For other calls, the GPU's compiler reserves enough,
/// up to the maximum local memory of a thread.
fn overflow(
    worker: &Worker<'_>,
    warp: &Warp,
    at: &At,
    recursive: bool,
    what: &str,
) -> Box<LaunchFault> {
    let kind = if recursive { FaultKind::StackOverflow } else { FaultKind::Unsupported };
    let line = worker.grid.code.lines[at.pc as usize].0;
    let lane = at.active.trailing_zeros() as usize;
    let t = [warp.tid[0][lane], warp.tid[1][lane], warp.tid[2][lane]];
    let message = format!(
        "{}: stack overflow in thread ({},{},{}): {what}; PTX line {line}",
        worker.grid.kernel, t[0], t[1], t[2]
    );
    fault(kind, message)
}

/// Executes `call`: lanes enter a frame of the function. In an indirect call, each function gets a
/// separate frame.
pub(super) fn call(worker: &Worker<'_>, warp: &mut Warp, at: &At, inst: &Inst) -> Step {
    let code = worker.grid.code;
    let site = &code.calls[inst.imm as usize];
    let template = warp.groups[at.group];
    let mut left = at.active;
    let targets = match inst.op {
        Op::CallIndirect => Some(*warp.frames[at.frame].regs.s64(&code.consts, inst.a)),
        _ => None,
    };
    warp.groups[at.group].mask &= !at.active;
    warp.groups[at.group].pc = at.pc + 1;
    while left != 0 {
        let lane = left.trailing_zeros() as usize;
        let (func, same) = match &targets {
            None => (site.func, left),
            Some(t) => {
                let same = (0..32).fold(0, |m, l| m | u32::from(t[l] == t[lane]) << l) & left;
                (indirect(worker, t[lane])?, same)
            }
        };
        left &= !same;
        let info = &code.funcs[func as usize];
        let fits = |have: &[(u32, u32)], want: &[(u32, u32)]| {
            have.len() == want.len() && have.iter().zip(want).all(|(h, w)| h.1 == w.1)
        };
        if !fits(&site.args, &info.params) || !fits(&site.rets, &info.rets) {
            let message = format!(
                "PTX line {}: the arguments of the call do not match the parameters of `{}`",
                code.lines[at.pc as usize].0, info.name
            );
            return Err(fault(FaultKind::IllegalInstruction, message));
        }
        let bytes: u64 = info.params.iter().map(|p| u64::from(p.1)).sum();
        if bytes > LONG {
            worker.grid.check_time()?;
        }
        let caller = &warp.frames[at.frame];
        let recursive = || warp.is_in(func, at.frame as u32);
        if caller.depth + 1 >= MAX_DEPTH {
            return Err(overflow(
                worker,
                warp,
                at,
                recursive(),
                &format!("{MAX_DEPTH} nested calls"),
            ));
        }
        if caller.top + info.local > code.funcs[0].local + STACK {
            return Err(overflow(
                worker,
                warp,
                at,
                recursive(),
                &format!("more than {STACK} bytes"),
            ));
        }
        let frame = match warp.shared_frame(at.frame as u32, at.pc, func) {
            Some(f) => {
                warp.frames[f as usize].lanes |= same;
                f
            }
            None => {
                let (frame, grown) = warp.new_frame(code, func, at.frame as u32, at.pc, same);
                let taken = worker.grid.stacks.take(grown);
                if taken.all > MAX_STACKS {
                    // The thread that makes the last call is not necessarily the one that used the
                    // memory.
                    let recursive = taken.recursive > taken.all / 2;
                    let what = format!("more than {MAX_STACKS} bytes in all threads");
                    return Err(overflow(worker, warp, at, recursive, &what));
                }
                frame
            }
        };
        let (to, from) = (warp.frames[frame as usize].local, warp.frames[at.frame].local);
        for ((arg, bytes), (param, _)) in site.args.iter().zip(&info.params) {
            copy(warp, to + param, from + arg, *bytes, same);
        }
        let mut g = template;
        (g.mask, g.pc, g.frame) = (same, info.entry, frame);
        warp.groups.push(g);
    }
    Ok(Flow::Choose)
}

/// Returns the function that a pointer refers to.
fn indirect(worker: &Worker<'_>, va: u64) -> Result<u32, Box<LaunchFault>> {
    let n = va.wrapping_sub(FUNCTION_WINDOW);
    let index = worker.grid.index.iter().find(|(m, _)| *m as u64 * 16 == n);
    // Function 0 is the kernel itself, which cannot be called.
    index.map(|(_, f)| *f).filter(|f| *f != 0).ok_or_else(|| {
        let message = format!(
            "{}: call of {va:#x}, which is not the address of a function",
            worker.grid.kernel
        );
        fault(FaultKind::IllegalInstruction, message)
    })
}

/// Executes `ret`: lanes return to their caller with the results.
pub(super) fn ret(worker: &Worker<'_>, warp: &mut Warp, at: &At) -> Flow {
    let code = worker.grid.code;
    let frame = &warp.frames[at.frame];
    let (parent, call, local) = (frame.parent, frame.call, frame.local);
    let info = &code.funcs[frame.func as usize];
    debug_assert!(parent != NONE);
    let site = &code.calls[code.insts[call as usize].imm as usize];
    let base = warp.frames[parent as usize].local;
    for ((to, bytes), (from, _)) in site.rets.iter().zip(&info.rets) {
        copy(warp, base + to, local + from, *bytes, at.active);
    }
    warp.leave(at.frame as u32, at.active);
    let g = &mut warp.groups[at.group];
    let mut back = *g;
    (back.mask, back.pc, back.frame) = (at.active, call + 1, parent);
    if at.active == at.mask {
        *g = back;
    } else {
        g.mask &= !at.active;
        g.pc = at.pc + 1;
        warp.groups.push(back);
    }
    Flow::Choose
}

/// Executes `alloca`, `stacksave` and `stackrestore`. All lanes of a frame share its stack, so an
/// allocation has the size of the largest request of any lane.
pub(super) fn stack(
    worker: &Worker<'_>,
    cta: &Cta,
    warp: &mut Warp,
    at: &At,
    inst: &Inst,
) -> Result<(), Box<LaunchFault>> {
    let k = &worker.grid.code.consts;
    let top = warp.frames[at.frame].top;
    match inst.op {
        Op::Alloca => {
            let sizes = warp.frames[at.frame].regs.s64(k, inst.a);
            let most = (0..32).filter(|l| at.active >> l & 1 == 1).map(|l| sizes[l]).max();
            let begin = top.next_multiple_of(inst.imm as u32);
            let end = most.and_then(|n| u64::from(begin).checked_add(n)).unwrap_or(u64::MAX);
            let limit = worker.grid.code.funcs[0].local + STACK;
            if end > limit.into() {
                let who = Where::new(worker.grid, cta.id, warp, at.active.trailing_zeros(), at.pc);
                let message =
                    format!("stack overflow {}: more than {STACK} bytes{}", who.who(), who.place());
                return Err(fault(FaultKind::StackOverflow, message));
            }
            let end = (end as u32).next_multiple_of(16);
            warp.frames[at.frame].top = end;
            let rows = (end / 4) as usize;
            if warp.local.len() < rows {
                warp.local.resize(rows, Row32([0; 32]));
            }
            warp.frames[at.frame].regs.put64(inst.d, &[begin.into(); 32], at.active);
        }
        Op::StackSave => {
            warp.frames[at.frame].regs.put64(inst.d, &[top.into(); 32], at.active);
        }
        _ => {
            // Lanes in other groups may still use their memory, so the stack shrinks only when all
            // lanes of the frame are here.
            let all = warp.frames[at.frame].lanes == at.active;
            let lane = at.active.trailing_zeros() as usize;
            let to = warp.frames[at.frame].regs.s64(k, inst.a)[lane];
            let frame = &mut warp.frames[at.frame];
            if all && to >= frame.local.into() && to < frame.top.into() {
                frame.top = to as u32;
            }
        }
    }
    Ok(())
}
