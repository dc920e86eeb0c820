//! Matrix instructions.
//!
//! Layouts of `mma` and `ldmatrix` fragments are those of the PTX ISA. Sums are those of a
//! tensor core ([`dot`]).

use super::access::{Kind, Target, access};
use super::at::{At, Flow, Step};
use super::fragment::{self, Matrix};
use super::{between, memory};
use crate::arith::dot;
use crate::arith::soft::{self, Round};
use crate::exec::lanes::ALL;
use crate::exec::lanes::{cvt, half};
use crate::exec::state::{Cta, FaultKind, Frame, LaunchFault, Warp, Worker, fault};
use crate::ir::{Code, Elem, Inst, Mma, Op, Wmma, WmmaKind};
use crate::ptx::Space;

/// Largest matrix of a fragment: 16 × 256 bits.
const MAX: usize = 4096;

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
            "{}: a matrix instruction needs all lanes of the warp, but only {:#010x} are here; PTX \
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
        Op::Mma(m) => mma(worker, warp, at, inst, m),
        Op::Wmma(w) if w.kind == WmmaKind::Mma => wmma(worker, warp, at, inst, w),
        Op::Wmma(w) => transfer(worker, cta, warp, at, inst, w)?,
        _ => {}
    }
    Ok(Flow::Next)
}

/// `ldmatrix` and `stmatrix`: 8 × 8 matrices of 16 bits, the rows at the addresses of 8 lanes
/// each. Lane `t` has elements 2(t mod 4) and the next of row t / 4.
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
        let message = format!("{}: a matrix that is not in shared memory", worker.grid.kernel);
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

/// Element `index` of a lane's fragment.
fn element(frame: &Frame, code: &Code, list: &[u32], elem: Elem, lane: usize, index: usize) -> u64 {
    if elem == Elem::F64 {
        return frame.regs.s64(&code.consts, list[index])[lane];
    }
    let per = (32 / elem.bits()) as usize;
    let word = frame.regs.s32(&code.consts, list[index / per])[lane];
    let bits = elem.bits();
    let v = u64::from(word) >> (bits as usize * (index % per));
    v & ((1 << bits) - 1)
}

fn set_element(frame: &mut Frame, list: &[u32], elem: Elem, lane: usize, index: usize, v: u64) {
    if elem == Elem::F64 {
        frame.regs.r64[list[index] as usize].0[lane] = v;
        return;
    }
    let bits = elem.bits();
    let per = (32 / bits) as usize;
    let word = &mut frame.regs.r32[list[index / per] as usize].0[lane];
    let shift = bits as usize * (index % per);
    let mask = (((1u64 << bits) - 1) << shift) as u32;
    *word = *word & !mask | (v << shift) as u32 & mask;
}

/// The value of an element.
fn number(elem: Elem, v: u64) -> f64 {
    match elem {
        Elem::F16 => half::to_f32(soft::F16, v as u16).into(),
        Elem::Bf16 => half::to_f32(soft::BF16, v as u16).into(),
        // The hardware looks at the upper 19 bits only.
        Elem::Tf32 => f32::from_bits(v as u32 & 0xffff_e000).into(),
        Elem::F32 => f32::from_bits(v as u32).into(),
        Elem::F64 => f64::from_bits(v),
        Elem::E4m3 => cvt::eight_bits(false, v as u8),
        Elem::E5m2 => cvt::eight_bits(true, v as u8),
        _ => integer(elem, v) as f64,
    }
}

fn integer(elem: Elem, v: u64) -> i64 {
    match elem {
        Elem::S8 => v as i8 as i64,
        Elem::S4 => ((v as i8) << 4 >> 4) as i64,
        Elem::S32 => v as i32 as i64,
        _ => v as i64,
    }
}

/// The bits of a result.
fn result(elem: Elem, v: f64) -> u64 {
    match elem {
        Elem::F64 if v.is_nan() => soft::F64.nan(),
        Elem::F64 => v.to_bits(),
        Elem::F16 => soft::convert(soft::F64, soft::F16, Round::Rn, v.to_bits()),
        _ if v.is_nan() => 0x7fff_ffff,
        _ => (v as f32).to_bits().into(),
    }
}

/// Row and column (or depth) of element `e` of a lane's fragment of A: registers go through the
/// two halves of the rows, then through the chunks of the depth.
fn place_a(m: Mma, lane: usize, e: usize) -> (usize, usize) {
    let per = if m.a == Elem::F64 { 1 } else { (32 / m.a.bits()) as usize };
    let (reg, within) = (e / per, e % per);
    let halves = usize::from(m.m) / 8;
    let row = lane / 4 + 8 * (reg % halves);
    (row, reg / halves * 4 * per + lane % 4 * per + within)
}

/// Depth and column of element `e` of a lane's fragment of B.
fn place_b(m: Mma, lane: usize, e: usize) -> (usize, usize) {
    let per = if m.b == Elem::F64 { 1 } else { (32 / m.b.bits()) as usize };
    let (reg, within) = (e / per, e % per);
    (reg * 4 * per + lane % 4 * per + within, lane / 4)
}

/// Row and column of element `e` of a lane's fragment of C and D.
fn place_c(lane: usize, e: usize) -> (usize, usize) {
    (lane / 4 + 8 * (e / 2), 2 * (lane % 4) + e % 2)
}

/// Operands of a product, row by row: A is m × k, B is k × n.
struct Product {
    m: usize,
    n: usize,
    k: usize,
    a: Vec<u64>,
    b: Vec<u64>,
    c: Vec<u64>,
}

impl Product {
    fn new(m: usize, n: usize, k: usize) -> Self {
        debug_assert!(m * k <= MAX && k * n <= MAX);
        Self { m, n, k, a: vec![0; m * k], b: vec![0; k * n], c: vec![0; m * n] }
    }

    /// Elements of D.
    fn multiply(&self, a: Elem, b: Elem, c: Elem, d: Elem, sat: bool) -> Vec<u64> {
        if a.integer() { self.integers(a, b, sat) } else { self.floats(a, b, c, d) }
    }

    fn integers(&self, a: Elem, b: Elem, sat: bool) -> Vec<u64> {
        let term = |x: u64, y: u64| match a {
            Elem::B1Xor => (x ^ y) as i64,
            Elem::B1And => (x & y) as i64,
            _ => integer(a, x) * integer(b, y),
        };
        let mut out = Vec::with_capacity(self.m * self.n);
        for i in 0..self.m {
            for j in 0..self.n {
                let own = (0..self.k).map(|k| term(self.a[i * self.k + k], self.b[k * self.n + j]));
                let v = own.sum::<i64>() + self.c[i * self.n + j] as i32 as i64;
                let v = if sat { v.clamp(i32::MIN.into(), i32::MAX.into()) } else { v };
                out.push(u64::from(v as u32));
            }
        }
        out
    }

    fn floats(&self, a: Elem, b: Elem, c: Elem, d: Elem) -> Vec<u64> {
        let x: Vec<f64> = self.a.iter().map(|v| number(a, *v)).collect();
        // Column by column.
        let y = (0..self.n).flat_map(|j| (0..self.k).map(move |k| self.b[k * self.n + j]));
        let y: Vec<f64> = y.map(|v| number(b, v)).collect();
        let mut out = Vec::with_capacity(self.m * self.n);
        for (i, row) in x.chunks(self.k).enumerate() {
            for (j, column) in y.chunks(self.k).enumerate() {
                let c = number(c, self.c[i * self.n + j]);
                // For f64 this is the chain of fused operations that the ISA asks for; the
                // products of narrower formats are exact anyway.
                let chain = || row.iter().zip(column).fold(c, |sum, (x, y)| x.mul_add(*y, sum));
                let cut = match a {
                    Elem::F16 | Elem::Bf16 | Elem::Tf32 => dot::dot(row, column, c),
                    Elem::E4m3 | Elem::E5m2 => {
                        let round = |v| number(d, result(d, v));
                        Some(dot::eight(row, column, c, round))
                    }
                    _ => None,
                };
                out.push(result(d, cut.unwrap_or_else(chain)));
            }
        }
        out
    }
}

/// Counts the operations of a product.
fn count(worker: &mut Worker<'_>, elem: Elem, m: usize, n: usize, k: usize) {
    let c = &mut worker.counts;
    let field = match elem {
        Elem::F16 | Elem::Bf16 => &mut c.tensor_half_ops,
        Elem::Tf32 | Elem::F32 => &mut c.tensor_tf32_ops,
        Elem::F64 => &mut c.tensor_double_ops,
        Elem::E4m3 | Elem::E5m2 => &mut c.tensor_fp8_ops,
        _ => &mut c.tensor_integer_ops,
    };
    *field += 2 * (m * n * k) as u64;
}

fn mma(worker: &mut Worker<'_>, warp: &mut Warp, at: &At, inst: &Inst, op: Mma) {
    let code = worker.grid.code;
    let list = |n: u32| &code.lists[n as usize][..];
    let (m, n, k) = (usize::from(op.m), usize::from(op.n), usize::from(op.k));
    let mut p = Product::new(m, n, k);
    let frame = &warp.frames[at.frame];
    for lane in 0..32 {
        for e in 0..m * k / 32 {
            let (i, j) = place_a(op, lane, e);
            p.a[i * k + j] = element(frame, code, list(inst.a), op.a, lane, e);
        }
        for e in 0..k * n / 32 {
            let (i, j) = place_b(op, lane, e);
            p.b[i * n + j] = element(frame, code, list(inst.b), op.b, lane, e);
        }
        for e in 0..m * n / 32 {
            let (i, j) = place_c(lane, e);
            p.c[i * n + j] = element(frame, code, list(inst.c), op.c, lane, e);
        }
    }
    let d = p.multiply(op.a, op.b, op.c, op.d, op.satfinite);
    let frame = &mut warp.frames[at.frame];
    for lane in 0..32 {
        for e in 0..m * n / 32 {
            let (i, j) = place_c(lane, e);
            set_element(frame, list(inst.d), op.d, lane, e, d[i * n + j]);
        }
    }
    count(worker, op.a, m, n, k);
}

/// How many elements a lane's registers hold, and how many of them are different.
fn capacity(list: &[u32], elem: Elem, elements: usize) -> (usize, usize) {
    let per = if elem == Elem::F64 { 1 } else { (32 / elem.bits()) as usize };
    (list.len() * per, elements / 32)
}

/// The `wmma` layout is ours to choose: lane `l` has the elements from `l × size / 32`, row by
/// row, as often as they fit.
fn gather(frame: &Frame, code: &Code, list: &[u32], elem: Elem, out: &mut [u64]) {
    let (_, own) = capacity(list, elem, out.len());
    for lane in 0..32 {
        for e in 0..own {
            out[lane * own + e] = element(frame, code, list, elem, lane, e);
        }
    }
}

fn scatter(frame: &mut Frame, list: &[u32], elem: Elem, values: &[u64]) {
    let (all, own) = capacity(list, elem, values.len());
    for lane in 0..32 {
        for e in 0..all {
            set_element(frame, list, elem, lane, e, values[lane * own + e % own]);
        }
    }
}

fn wmma(worker: &mut Worker<'_>, warp: &mut Warp, at: &At, inst: &Inst, op: Wmma) {
    let code = worker.grid.code;
    let list = |n: u32| &code.lists[n as usize][..];
    let (m, n, k) = (usize::from(op.m), usize::from(op.n), usize::from(op.k));
    let mut p = Product::new(m, n, k);
    let frame = &warp.frames[at.frame];
    gather(frame, code, list(inst.a), op.elem, &mut p.a);
    gather(frame, code, list(inst.b), op.elem, &mut p.b);
    gather(frame, code, list(inst.c), op.c, &mut p.c);
    let d = p.multiply(op.elem, op.elem, op.c, op.d, op.satfinite);
    scatter(&mut warp.frames[at.frame], list(inst.d), op.d, &d);
    count(worker, op.elem, m, n, k);
}

/// Loads or stores a `wmma` fragment, each lane its elements one after the other.
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
        gather(&warp.frames[at.frame], code, list, op.elem, &mut values);
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
            // The first lane has the first element.
            fragment::count(
                worker,
                &target,
                op,
                &Matrix { origin: a[0], stride: stride[0].into() },
            );
        }
        if store && worker.grid.block_races.is_some() && matches!(target, Target::Global) {
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
            let message = format!("{}: a matrix in local memory", worker.grid.kernel);
            return Err(fault(FaultKind::IllegalAddress, message));
        }
    }
    if !store {
        scatter(&mut warp.frames[at.frame], list, op.elem, &values);
    }
    Ok(())
}
