//! Loads and stores of matrices. `ldmatrix` uses the layouts of the PTX ISA.

use super::access::{Kind, Target, access};
use super::at::{At, Flow, Step};
use super::fragment::{self, Matrix};
use super::product::{self, gather, scatter};
use super::{between, memory};
use crate::exec::lanes::ALL;
use crate::exec::state::{Cta, FaultKind, LaunchFault, Warp, Worker, fault};
use crate::ir::{Inst, Op, Wmma, WmmaKind};
use crate::ptx::Space;

pub(super) fn run(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &mut Warp,
    at: &At,
    inst: &Inst,
) -> Step {
    if at.active != ALL {
        let line = worker.grid.code.lines[at.pc as usize].0;
        let message = format!(
            "{}: a matrix instruction needs all lanes of the warp, but only lanes {:#010x} execute it; PTX \
             line {line}",
            worker.grid.kernel, at.active
        );
        return Err(fault(FaultKind::IllegalInstruction, message));
    }
    match inst.op {
        Op::Ldmatrix { count, trans, space } => {
            matrices(worker, cta, warp, at, inst, (count, trans, space), true)?;
        }
        Op::Stmatrix { count, trans, space } => {
            matrices(worker, cta, warp, at, inst, (count, trans, space), false)?;
        }
        Op::Mma(m) => product::mma(worker, warp, at, inst, m),
        Op::Wmma(w) if w.kind == WmmaKind::Mma => product::wmma(worker, warp, at, inst, w),
        Op::Wmma(w) => transfer(worker, cta, warp, at, inst, w)?,
        _ => {}
    }
    Ok(Flow::Next)
}

/// Executes `ldmatrix` and `stmatrix` on 8 × 8 matrices of 16-bit elements. Eight lanes hold the
/// addresses of a matrix's rows. Lane `t` holds elements 2(t mod 4) and 2(t mod 4) + 1 of row t /
/// 4.
fn matrices(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &mut Warp,
    at: &At,
    inst: &Inst,
    (count, trans, space): (u8, bool, Space),
    load: bool,
) -> Result<(), Box<LaunchFault>> {
    let code = worker.grid.code;
    let imm = inst.imm as u64;
    let rows = 8 * u32::from(count);
    let mask = if rows == 32 { ALL } else { (1 << rows) - 1 };
    let mut a = warp.frames[at.frame].regs.s64(&code.consts, inst.a).map(|v| v.wrapping_add(imm));
    let first = a[0];
    (0..32).filter(|l| mask >> l & 1 == 0).for_each(|l| a[l] = first);
    let mut rows_at = At { active: mask, ..*at };
    let acc = access(space, 8, 2);
    let kind = if load { Kind::Read } else { Kind::Write };
    let target = memory::resolve(worker, cta, warp, &mut rows_at, &mut a, acc, kind)?;
    if !matches!(target, Target::Shared) {
        let message = format!("{}: the matrix is not in shared memory", worker.grid.kernel);
        return Err(fault(FaultKind::IllegalAddress, message));
    }
    worker.count_access(&target, acc, &a, rows_at.active, kind);
    let list = &code.lists[inst.s as usize];
    for (n, reg) in list.iter().enumerate() {
        for t in 0..32usize {
            for half in 0..2 {
                let (r, c) = (t / 4, 2 * (t % 4) + half);
                let (r, c) = if trans { (c, r) } else { (r, c) };
                let lane = 8 * n + r;
                if rows_at.active >> lane & 1 == 0 {
                    continue;
                }
                let va = a[lane] + 2 * c as u64;
                let slot = &mut warp.frames[at.frame].regs.r32;
                if load {
                    let v = memory::shared_get(cta, va, 2) as u32;
                    let d = &mut slot[*reg as usize].0[t];
                    *d = *d & !(0xffff << (16 * half)) | v << (16 * half);
                } else {
                    let v = warp.frames[at.frame].regs.s32(&code.consts, *reg)[t];
                    memory::shared_put(cta, va, 2, u64::from(v >> (16 * half) & 0xffff));
                }
            }
        }
    }
    Ok(())
}

/// Loads or stores a `wmma` fragment. Each lane transfers its elements one after another.
fn transfer(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &mut Warp,
    at: &At,
    inst: &Inst,
    op: Wmma,
) -> Result<(), Box<LaunchFault>> {
    let code = worker.grid.code;
    let list = &code.lists[inst.s as usize];
    let (rows, cols) = op.extent();
    let (rows, cols) = (usize::from(rows), usize::from(cols));
    let store = op.kind == WmmaKind::StoreD;
    let kind = if store { Kind::Write } else { Kind::Read };
    let width = (op.elem.bits() / 8) as u8;
    let regs = &warp.frames[at.frame].regs;
    let base = regs.s64(&code.consts, inst.a).map(|v| v.wrapping_add(inst.imm as u64));
    let stride = *regs.s32(&code.consts, inst.b);
    let own = rows * cols / 32;
    let mut values = vec![0u64; rows * cols];
    if store {
        gather(&warp.frames[at.frame].regs, &code.consts, list, op.elem, &mut values);
    }
    let acc = access(op.space, width, 1);
    for e in 0..own {
        let mut a = [0u64; 32];
        for (lane, va) in a.iter_mut().enumerate() {
            let index = lane * own + e;
            let (r, c) = (index / cols, index % cols);
            let (far, near) = if op.row { (r, c) } else { (c, r) };
            let offset = far as u64 * u64::from(stride[lane]) + near as u64;
            *va = base[lane].wrapping_add(offset * u64::from(width));
        }
        let mut here = At { ..*at };
        let target = memory::resolve(worker, cta, warp, &mut here, &mut a, acc, kind)?;
        if e == 0 {
            // The first element of lane 0 is the first of the matrix.
            fragment::count(
                worker,
                &target,
                op,
                &Matrix { origin: a[0], stride: stride[0].into() },
            );
        }
        if store && cta.races.is_some() && matches!(target, Target::Global) {
            let new = std::array::from_fn(|lane| values[lane * own + e]);
            between::writes(worker, cta, warp, &here, &a, (0, width), &new, false);
        }
        memory::lanes(here.active, |lane| {
            let v = &mut values[lane * own + e];
            match (&target, store) {
                // SAFETY: `resolve` has checked the lanes of the mask.
                (Target::Global, false) => *v = unsafe { memory::global_get(a[lane], width) },
                // SAFETY: as above.
                (Target::Global, true) => unsafe { memory::global_put(a[lane], width, *v) },
                (Target::Shared, false) => *v = memory::shared_get(cta, a[lane], width),
                (Target::Shared, true) => memory::shared_put(cta, a[lane], width, *v),
                (Target::Local | Target::Param, _) => {}
            }
        });
        if matches!(target, Target::Local | Target::Param) {
            let message = format!("{}: the matrix is in local memory", worker.grid.kernel);
            return Err(fault(FaultKind::IllegalAddress, message));
        }
    }
    if !store {
        scatter(&mut warp.frames[at.frame].regs, list, op.elem, &values);
    }
    Ok(())
}
