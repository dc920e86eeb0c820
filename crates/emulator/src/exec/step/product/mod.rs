//! Products of matrices, element by element.
//!
//! `mma` fragments have the layouts of the PTX ISA. Sums are those of a tensor core ([`dot`]).
//! [`lanes::product`](crate::exec::lanes::product) computes most products. This module computes the
//! rest. Tests compare the two modules.

use super::at::At;
use super::spread;
use crate::arith::dot;
use crate::arith::soft::{self, Round};
use crate::exec::lanes::{Regs, cvt, half};
use crate::exec::state::{Warp, Worker};
use crate::ir::{Consts, Elem, Inst, Mma, Wmma};

/// Maximum number of elements of a matrix: 16 × 256, of one bit each.
const MAX: usize = 4096;

/// Returns element `index` of a lane's fragment.
fn element(
    regs: &Regs,
    consts: &Consts,
    list: &[u32],
    elem: Elem,
    lane: usize,
    index: usize,
) -> u64 {
    if elem == Elem::F64 {
        return regs.s64(consts, list[index])[lane];
    }
    let per = (32 / elem.bits()) as usize;
    let word = regs.s32(consts, list[index / per])[lane];
    let bits = elem.bits();
    let v = u64::from(word) >> (bits as usize * (index % per));
    v & ((1 << bits) - 1)
}

fn set_element(regs: &mut Regs, list: &[u32], elem: Elem, lane: usize, index: usize, v: u64) {
    if elem == Elem::F64 {
        regs.r64[list[index] as usize].0[lane] = v;
        return;
    }
    let bits = elem.bits();
    let per = (32 / bits) as usize;
    let word = &mut regs.r32[list[index / per] as usize].0[lane];
    let shift = bits as usize * (index % per);
    let mask = (((1u64 << bits) - 1) << shift) as u32;
    *word = *word & !mask | (v << shift) as u32 & mask;
}

/// Returns the value of an element as f64.
fn number(elem: Elem, v: u64) -> f64 {
    match elem {
        Elem::F16 => half::to_f32(soft::F16, v as u16).into(),
        Elem::Bf16 => half::to_f32(soft::BF16, v as u16).into(),
        // The hardware reads only the upper 19 bits.
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

/// Returns the bits of a result in the format of its element.
fn result(elem: Elem, v: f64) -> u64 {
    match elem {
        Elem::F64 if v.is_nan() => soft::F64.nan(),
        Elem::F64 => v.to_bits(),
        Elem::F16 => soft::convert(soft::F64, soft::F16, Round::Rn, v.to_bits()),
        _ if v.is_nan() => 0x7fff_ffff,
        _ => (v as f32).to_bits().into(),
    }
}

/// Returns row and depth of element `e` of a lane's fragment of A. Successive registers cover the
/// two halves of the rows first, and then the chunks of the depth.
fn place_a(m: Mma, lane: usize, e: usize) -> (usize, usize) {
    let per = if m.a == Elem::F64 { 1 } else { (32 / m.a.bits()) as usize };
    let (reg, within) = (e / per, e % per);
    let halves = usize::from(m.m) / 8;
    let row = lane / 4 + 8 * (reg % halves);
    (row, reg / halves * 4 * per + lane % 4 * per + within)
}

/// Returns depth and column of element `e` of a lane's fragment of B.
fn place_b(m: Mma, lane: usize, e: usize) -> (usize, usize) {
    let per = if m.b == Elem::F64 { 1 } else { (32 / m.b.bits()) as usize };
    let (reg, within) = (e / per, e % per);
    (reg * 4 * per + lane % 4 * per + within, lane / 4)
}

/// Returns row and column of element `e` of a lane's fragment of C or D.
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

    /// Multiplies the matrices and returns the elements of D.
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
        // B in column-major order.
        let y = (0..self.n).flat_map(|j| (0..self.k).map(move |k| self.b[k * self.n + j]));
        let y: Vec<f64> = y.map(|v| number(b, v)).collect();
        let mut out = Vec::with_capacity(self.m * self.n);
        for (i, row) in x.chunks(self.k).enumerate() {
            for (j, column) in y.chunks(self.k).enumerate() {
                let c = number(c, self.c[i * self.n + j]);
                // For f64 this is the chain of fused operations that the ISA requires. The products
                // of narrower formats are exact in f64.
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

pub(super) fn mma(worker: &mut Worker<'_>, warp: &mut Warp, at: &At, inst: &Inst, op: Mma) {
    let code = worker.grid.code;
    count(worker, op.a, op.m.into(), op.n.into(), op.k.into());
    let [d, a, b, c] = [inst.d, inst.a, inst.b, inst.c].map(|n| &code.lists[n as usize][..]);
    let regs = &mut warp.frames[at.frame].regs;
    let task = spread::mma(op, a, b, c, d);
    if !(worker.grid.multiply)(regs, &code.consts, &task, &mut worker.tiles) {
        mma_by_elements(regs, &code.consts, op, [d, a, b, c]);
    }
}

fn mma_by_elements(regs: &mut Regs, consts: &Consts, op: Mma, [rd, ra, rb, rc]: [&[u32]; 4]) {
    let (m, n, k) = (usize::from(op.m), usize::from(op.n), usize::from(op.k));
    let mut p = Product::new(m, n, k);
    for lane in 0..32 {
        for e in 0..m * k / 32 {
            let (i, j) = place_a(op, lane, e);
            p.a[i * k + j] = element(regs, consts, ra, op.a, lane, e);
        }
        for e in 0..k * n / 32 {
            let (i, j) = place_b(op, lane, e);
            p.b[i * n + j] = element(regs, consts, rb, op.b, lane, e);
        }
        for e in 0..m * n / 32 {
            let (i, j) = place_c(lane, e);
            p.c[i * n + j] = element(regs, consts, rc, op.c, lane, e);
        }
    }
    let d = p.multiply(op.a, op.b, op.c, op.d, op.satfinite);
    for lane in 0..32 {
        for e in 0..m * n / 32 {
            let (i, j) = place_c(lane, e);
            set_element(regs, rd, op.d, lane, e, d[i * n + j]);
        }
    }
}

/// Returns the number of elements that a lane's registers hold, and how many of them are distinct.
fn capacity(list: &[u32], elem: Elem, elements: usize) -> (usize, usize) {
    let per = if elem == Elem::F64 { 1 } else { (32 / elem.bits()) as usize };
    (list.len() * per, elements / 32)
}

/// Reads a `wmma` fragment, whose layout the emulator chooses: lane `l` holds the elements from `l
/// × size / 32` on, in row-major order, repeated until its registers are full.
pub(super) fn gather(regs: &Regs, consts: &Consts, list: &[u32], elem: Elem, out: &mut [u64]) {
    let (_, own) = capacity(list, elem, out.len());
    for lane in 0..32 {
        for e in 0..own {
            out[lane * own + e] = element(regs, consts, list, elem, lane, e);
        }
    }
}

pub(super) fn scatter(regs: &mut Regs, list: &[u32], elem: Elem, values: &[u64]) {
    let (all, own) = capacity(list, elem, values.len());
    for lane in 0..32 {
        for e in 0..all {
            set_element(regs, list, elem, lane, e, values[lane * own + e % own]);
        }
    }
}

pub(super) fn wmma(worker: &mut Worker<'_>, warp: &mut Warp, at: &At, inst: &Inst, op: Wmma) {
    let code = worker.grid.code;
    count(worker, op.elem, op.m.into(), op.n.into(), op.k.into());
    let [d, a, b, c] = [inst.d, inst.a, inst.b, inst.c].map(|n| &code.lists[n as usize][..]);
    let regs = &mut warp.frames[at.frame].regs;
    let task = spread::wmma(op, a, b, c, d);
    if !(worker.grid.multiply)(regs, &code.consts, &task, &mut worker.tiles) {
        wmma_by_elements(regs, &code.consts, op, [d, a, b, c]);
    }
}

fn wmma_by_elements(regs: &mut Regs, consts: &Consts, op: Wmma, [rd, ra, rb, rc]: [&[u32]; 4]) {
    let mut p = Product::new(op.m.into(), op.n.into(), op.k.into());
    gather(regs, consts, ra, op.elem, &mut p.a);
    gather(regs, consts, rb, op.elem, &mut p.b);
    gather(regs, consts, rc, op.c, &mut p.c);
    let d = p.multiply(op.elem, op.elem, op.c, op.d, op.satfinite);
    scatter(regs, rd, op.d, &d);
}

#[cfg(test)]
mod tests;
