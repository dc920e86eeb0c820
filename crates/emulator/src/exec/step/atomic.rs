//! Atomic operations.

use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};

use super::access::{Kind, Target};
use super::at::At;
use super::{between, memory};
use crate::arith::{nan, soft};
use crate::exec::lanes::{float, half};
use crate::exec::state::{Cta, FaultKind, LaunchFault, Warp, Worker, fault};
use crate::ir::{Access, Inst, Rmw};

type Done = Result<(), Box<LaunchFault>>;

fn add_f32(a: u32, b: u32, ftz: bool) -> u32 {
    let f = |v: u32| f32::from_bits(if ftz { float::flush(v) } else { v });
    let sum = f(a) + f(b);
    let bits = if sum.is_nan() { 0x7fff_ffff } else { sum.to_bits() };
    if ftz { float::flush(bits) } else { bits }
}

/// Adds two f64 numbers. In global memory a NaN is not quieted, and a NaN operand takes precedence.
/// In shared memory, where the addition is a separate instruction, the NaN in memory takes
/// precedence.
fn add_f64(old: u64, b: u64, global: bool) -> u64 {
    let nan = |v: u64| f64::from_bits(v).is_nan();
    let sum = (f64::from_bits(old) + f64::from_bits(b)).to_bits();
    match global {
        true if nan(b) => b,
        true if nan(old) => old,
        _ => nan::two(sum, b, old),
    }
}

fn halves(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    let high = f((a >> 16) as u16, (b >> 16) as u16);
    u32::from(f(a as u16, b as u16)) | u32::from(high) << 16
}

/// Returns the new value of an element of `width` bytes. `old` is its old value; `global`
/// distinguishes global from shared memory.
fn apply(rmw: Rmw, width: u8, global: bool, old: u64, b: u64, c: u64) -> u64 {
    let wide = width == 8;
    let s = |v: u64| if wide { v as i64 } else { i64::from(v as i32) };
    let (o, x) = (old as u32, b as u32);
    match rmw {
        Rmw::And => old & b,
        Rmw::Or => old | b,
        Rmw::Xor => old ^ b,
        Rmw::Exch => b,
        Rmw::Cas => {
            if old == b {
                c
            } else {
                old
            }
        }
        Rmw::Add => old.wrapping_add(b),
        Rmw::Inc => {
            if o >= x {
                0
            } else {
                u64::from(o + 1)
            }
        }
        Rmw::Dec => {
            if o == 0 || o > x {
                b
            } else {
                u64::from(o - 1)
            }
        }
        Rmw::MinS => {
            if s(b) < s(old) {
                b
            } else {
                old
            }
        }
        Rmw::MaxS => {
            if s(b) > s(old) {
                b
            } else {
                old
            }
        }
        Rmw::MinU => old.min(b),
        Rmw::MaxU => old.max(b),
        Rmw::AddF32 => add_f32(o, x, global).into(),
        Rmw::AddF64 => add_f64(old, b, global),
        Rmw::AddF16 => half::add(soft::F16, old as u16, b as u16).into(),
        Rmw::AddBf16 => half::add(soft::BF16, old as u16, b as u16).into(),
        Rmw::AddF16x2 => halves(o, x, |p, q| half::add(soft::F16, p, q)).into(),
        Rmw::AddBf16x2 => halves(o, x, |p, q| half::add(soft::BF16, p, q)).into(),
    }
}

/// Replaces an element by the result of `f` and returns the old value.
///
/// # Safety
/// `va` is a multiple of `width`, in a mapped region.
unsafe fn update(va: u64, width: u8, f: impl Fn(u64) -> u64) -> u64 {
    // SAFETY: by contract.
    unsafe {
        match width {
            2 => {
                let cell = AtomicU16::from_ptr(va as *mut u16);
                let g = |v: u16| Some(f(v.into()) as u16);
                cell.fetch_update(AcqRel, Acquire, g).unwrap_or_else(|v| v).into()
            }
            4 => {
                let cell = AtomicU32::from_ptr(va as *mut u32);
                let g = |v: u32| Some(f(v.into()) as u32);
                cell.fetch_update(AcqRel, Acquire, g).unwrap_or_else(|v| v).into()
            }
            _ => {
                let cell = AtomicU64::from_ptr(va as *mut u64);
                cell.fetch_update(AcqRel, Acquire, |v| Some(f(v))).unwrap_or_else(|v| v)
            }
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "the parts of an atomic")]
pub(super) fn atom(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &mut Warp,
    at: &At,
    inst: &Inst,
    rmw: Rmw,
    access: Access,
    result: bool,
) -> Done {
    let mut a = memory::addresses(worker, warp, at, inst, access);
    let mut at = At { ..*at };
    let target = memory::resolve(worker, cta, warp, &mut at, &mut a, access, Kind::Atomic)?;
    let kind = if result { Kind::Atomic } else { Kind::Reduction };
    worker.count_access(&target, access, &a, at.active, kind);
    let (k, w) = (&worker.grid.code.consts, access.width);
    let regs = &warp.frames[at.frame].regs;
    let read = |n: u32| -> [u64; 32] {
        if access.wide { *regs.s64(k, n) } else { regs.s32(k, n).map(u64::from) }
    };
    let b = read(inst.b);
    let c = if rmw == Rmw::Cas { read(inst.c) } else { [0; 32] };
    let mut old = [0u64; 32];
    match target {
        Target::Global => memory::lanes(at.active, |l| {
            // SAFETY: `resolve` has checked the lanes of the mask.
            old[l] = unsafe { update(a[l], w, |v| apply(rmw, w, true, v, b[l], c[l])) };
        }),
        Target::Shared => memory::lanes(at.active, |l| {
            old[l] = memory::shared_get(cta, a[l], w);
            memory::shared_put(cta, a[l], w, apply(rmw, w, false, old[l], b[l], c[l]));
        }),
        _ => {
            let message = format!(
                "{}: an atomic on local memory or parameters, PTX line {}",
                worker.grid.kernel, worker.grid.code.lines[at.pc as usize].0
            );
            return Err(fault(FaultKind::IllegalInstruction, message));
        }
    }
    if result && cta.races.is_some() && matches!(target, Target::Global) {
        between::acquires(worker, cta, warp, &at, &a, w.into());
    }
    if result {
        let regs = &mut warp.frames[at.frame].regs;
        if access.wide {
            regs.put64(inst.d, &old, at.active);
        } else {
            regs.put32(inst.d, &old.map(|v| v as u32), at.active);
        }
    }
    Ok(())
}
