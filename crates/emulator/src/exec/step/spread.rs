//! Maps the elements of a lane's fragment to positions in the matrix.

use crate::exec::lanes::product::{Operand, Spread, Task};
use crate::ir::{Elem, Mma, Wmma};

/// Returns the number of elements in one register.
fn per(elem: Elem) -> usize {
    (32 / elem.bits()).max(1) as usize
}

fn spread(
    elements: usize,
    lanes: impl Fn(usize) -> usize,
    offset: impl Fn(usize) -> usize,
) -> Spread {
    Spread {
        lanes: std::array::from_fn(|l| lanes(l) as u16),
        elements: (0..elements).map(|e| offset(e) as u16).collect(),
    }
}

/// Returns the operands of an `mma`, whose fragments follow the tables of the PTX ISA.
pub(super) fn mma<'a>(op: Mma, a: &'a [u32], b: &'a [u32], c: &'a [u32], d: &'a [u32]) -> Task<'a> {
    let (m, n, k) = (usize::from(op.m), usize::from(op.n), usize::from(op.k));
    let (eight, pa, pb) = (matches!(op.a, Elem::E4m3 | Elem::E5m2), per(op.a), per(op.b));
    // Depth of an element relative to the lane's first one. Successive registers of A cover the
    // halves of the rows first, and then the depth. With 8-bit floats, a register holds two
    // elements in each half of the depth.
    let depth = |register: usize, within: usize, per: usize| {
        if eight {
            register * 8 + within / 2 * k / 2 + within % 2
        } else {
            register * 4 * per + within
        }
    };
    let lane_depth = |lane: usize, per: usize| lane % 4 * if eight { 2 } else { per };
    let halves = m / 8;
    let in_a = spread(
        m * k / 32,
        |lane| lane / 4 * k + lane_depth(lane, pa),
        |e| e / pa % halves * 8 * k + depth(e / pa / halves, e % pa, pa),
    );
    let in_b = spread(
        k * n / 32,
        |lane| lane_depth(lane, pb) * n + lane / 4,
        |e| depth(e / pb, e % pb, pb) * n,
    );
    let in_c = || {
        let lanes = |lane| lane / 4 * n + 2 * (lane % 4);
        spread(m * n / 32, lanes, |e| e / 2 * 8 * n + e % 2)
    };
    let operand = |registers, elem, spread| Operand { registers, elem, spread };
    Task {
        m,
        n,
        k,
        a: operand(a, op.a, in_a),
        b: operand(b, op.b, in_b),
        c: operand(c, op.c, in_c()),
        d: operand(d, op.d, in_c()),
        saturate: op.satfinite,
    }
}

/// Returns the operands of a `wmma`, in which each lane holds a contiguous part of the matrix in
/// row-major order.
pub(super) fn wmma<'a>(
    op: Wmma,
    a: &'a [u32],
    b: &'a [u32],
    c: &'a [u32],
    d: &'a [u32],
) -> Task<'a> {
    let (m, n, k) = (usize::from(op.m), usize::from(op.n), usize::from(op.k));
    let operand = |registers, elem, size: usize| {
        let own = size / 32;
        Operand { registers, elem, spread: spread(own, |lane| lane * own, |e| e) }
    };
    Task {
        m,
        n,
        k,
        a: operand(a, op.elem, m * k),
        b: operand(b, op.elem, k * n),
        c: operand(c, op.c, m * n),
        d: operand(d, op.d, m * n),
        saturate: op.satfinite,
    }
}
