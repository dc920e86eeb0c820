//! Memory requests of `wmma` loads and stores.
//!
//! The ISA does not specify how a fragment is distributed over the lanes. The emulator's layout
//! suits execution but not counting. This module counts the accesses of the code that `ptxas`
//! generates for sm_80 and sm_90, whose fragments are those of `mma`: a matrix of 8 × 4 lanes, each
//! with a few elements along the second dimension.

use super::access::{Kind, Target, access};
use crate::exec::lanes::ALL;
use crate::exec::state::Worker;
use crate::ir::{Wmma, WmmaKind};
use crate::ptx::Space;

/// Position of a matrix: address of its first element, and number of elements from one row (or
/// column) to the next.
pub(super) struct Matrix {
    pub(super) origin: u64,
    pub(super) stride: u64,
}

/// The dimensions of a fragment, expressed in lanes.
struct Layout {
    /// Number of elements in the direction of the groups of four lanes (`major`), and of the lanes
    /// of a group (`minor`).
    major: u64,
    minor: u64,
    /// Number of adjacent elements of a lane along the minor dimension.
    run: u64,
    /// Whether the adjacent elements of a lane are also adjacent in memory.
    contiguous: bool,
    bytes: u64,
}

fn layout(op: Wmma) -> Layout {
    let (m, n, k) = (u64::from(op.m), u64::from(op.n), u64::from(op.k));
    let bits = u64::from(op.elem.bits());
    let packed = (32 / bits).max(1);
    let (major, minor, run, contiguous) = match op.kind {
        WmmaKind::LoadA => (m, k, packed, op.row),
        WmmaKind::LoadB => (n, k, packed, !op.row),
        _ => (m, n, 2, op.row),
    };
    Layout { major, minor, run, contiguous, bytes: bits / 8 }
}

/// Counts the requests of a fragment's load or store.
pub(super) fn count(worker: &mut Worker<'_>, target: &Target, op: Wmma, matrix: &Matrix) {
    let l = layout(op);
    let operand = matches!(op.kind, WmmaKind::LoadA | WmmaKind::LoadB);
    if matches!(target, Target::Shared) && operand && l.bytes == 2 {
        return by_ldmatrix(worker, target, &l, matrix);
    }
    let kind = if op.kind == WmmaKind::StoreD { Kind::Write } else { Kind::Read };
    let mut request = |elements: u64, place: &dyn Fn(u64, u64) -> (u64, u64)| {
        let mut a = [0u64; 32];
        for (lane, va) in (0u64..).zip(&mut a) {
            let (far, near) = place(lane / 4, lane % 4);
            *va = matrix.origin.wrapping_add((far * matrix.stride + near) * l.bytes);
        }
        worker.count_access(target, access(op.space, l.bytes as u8, elements as u8), &a, ALL, kind);
    };
    for a in (0..l.major).step_by(8) {
        for b in (0..l.minor).step_by(4 * l.run as usize) {
            if l.contiguous {
                request(l.run, &|i, j| (a + i, b + j * l.run));
            } else if l.bytes == 2 {
                // The lanes load the matrix in its memory order and then transpose it, or transpose
                // it before a store.
                request(2, &|i, j| (b + i, a + 2 * j));
            } else {
                for e in 0..l.run {
                    request(1, &|i, j| (b + j * l.run + e, a + i));
                }
            }
        }
    }
}

/// Counts the loads of 16-bit operands in shared memory. `ldmatrix` loads them, up to four 8 × 8
/// matrices at a time.
fn by_ldmatrix(worker: &mut Worker<'_>, target: &Target, l: &Layout, matrix: &Matrix) {
    let (far, near) = if l.contiguous { (l.major, l.minor) } else { (l.minor, l.major) };
    let tiles: Vec<(u64, u64)> =
        (0..far).step_by(8).flat_map(|f| (0..near).step_by(8).map(move |n| (f, n))).collect();
    for group in tiles.chunks(4) {
        let mut a = [0u64; 32];
        let lanes = 8 * group.len();
        for (lane, va) in a.iter_mut().enumerate().take(lanes) {
            let (f, n) = group[lane / 8];
            let offset = (f + lane as u64 % 8) * matrix.stride + n;
            *va = matrix.origin.wrapping_add(2 * offset);
        }
        let mask = if lanes == 32 { ALL } else { (1 << lanes) - 1 };
        worker.count_access(target, access(Space::Shared, 8, 2), &a, mask, Kind::Read);
    }
}
