//! Atomic operations and barrier objects in shared memory.

use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};

use super::access::{Kind, Target};
use super::at::At;
use super::memory;
use crate::arith::{nan, soft};
use crate::exec::lanes::{float, half};
use crate::exec::state::{Cta, FaultKind, LaunchFault, Warp, Worker, fault, race};
use crate::ir::{Access, Inst, Mbar, Rmw};
use crate::ptx::Space;

type Done = Result<(), Box<LaunchFault>>;

fn add_f32(a: u32, b: u32, ftz: bool) -> u32 {
    let f = |v: u32| f32::from_bits(if ftz { float::flush(v) } else { v });
    let sum = f(a) + f(b);
    let bits = if sum.is_nan() { 0x7fff_ffff } else { sum.to_bits() };
    if ftz { float::flush(bits) } else { bits }
}

/// In global memory a NaN is not quieted, and that of the operand goes first; in shared memory,
/// where the sum is an instruction of its own, the NaN of the memory.
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

/// The new value of an element of `width` bytes, in global memory or shared, that was `old`.
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

/// Replaces an element by `f` of it; what it was.
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

/// The state of an `mbarrier`: phase, expected and pending arrivals of 20 bits each.
struct Object {
    phase: u64,
    expected: u64,
    pending: u64,
}

const COUNT: u64 = (1 << 20) - 1;

impl Object {
    fn unpack(v: u64) -> Self {
        Self { phase: v >> 63, expected: v >> 32 & COUNT, pending: v & COUNT }
    }

    fn pack(&self) -> u64 {
        self.phase << 63 | self.expected << 32 | self.pending
    }

    fn arrive(&mut self, count: u64) {
        self.pending = self.pending.saturating_sub(count);
        if self.pending == 0 {
            self.phase ^= 1;
            self.pending = self.expected;
        }
    }
}

pub(super) fn mbarrier(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &mut Warp,
    at: &At,
    inst: &Inst,
    kind: Mbar,
) -> Done {
    let k = &worker.grid.code.consts;
    if kind == Mbar::PendingCount {
        warp.frames[at.frame].regs.u32_64(k, inst, at.active, |v| (v & COUNT) as u32);
        return Ok(());
    }
    let access = Access {
        space: Space::Shared,
        width: 8,
        count: 1,
        sext: false,
        wide: true,
        base64: true,
        strong: true,
        atomic: true,
        to16: false,
    };
    let mut a = memory::addresses(worker, warp, at, inst, access);
    let mut at = At { ..*at };
    // Who makes a barrier must have it ordered before its use.
    let plain = matches!(kind, Mbar::Init | Mbar::Inval);
    let (access, as_what) = match plain {
        true => (Access { atomic: false, ..access }, Kind::Write),
        false => (access, Kind::Atomic),
    };
    memory::resolve(worker, cta, warp, &mut at, &mut a, access, as_what)?;
    let regs = &warp.frames[at.frame].regs;
    let counts = if kind == Mbar::AsyncArrive { [1; 32] } else { *regs.s32(k, inst.b) };
    let tokens = match kind {
        Mbar::TestWait | Mbar::TryWait => *regs.s64(k, inst.c),
        _ => [0; 32],
    };
    let (mut out, mut done) = ([0u64; 32], 0u32);
    let mut races = cta.races.take();
    memory::lanes(at.active, |l| {
        let before = memory::shared_get(cta, a[l], 8);
        let mut o = Object::unpack(before);
        let known = race::Object::Word((a[l] / 4) as u32);
        out[l] = before;
        let n = u64::from(counts[l]);
        match kind {
            Mbar::Init => o = Object { phase: 0, expected: n & COUNT, pending: n & COUNT },
            Mbar::Inval => o = Object { phase: 0, expected: 0, pending: 0 },
            Mbar::Arrive => o.arrive(n),
            // Arrivals by `cp.async` count themselves, unless the program has counted them.
            Mbar::AsyncArrive if inst.e == 1 => {}
            Mbar::AsyncArrive => o.arrive(1),
            Mbar::ArriveDrop => {
                o.expected = o.expected.saturating_sub(n);
                o.arrive(n);
            }
            Mbar::TestWait | Mbar::TryWait => {
                done |= u32::from(o.phase != tokens[l] >> 63) << l;
            }
            _ => done |= u32::from(o.phase != n & 1) << l,
        }
        if let Some(races) = &mut races {
            let arrives = matches!(kind, Mbar::Arrive | Mbar::ArriveDrop | Mbar::AsyncArrive);
            if arrives {
                races.release(known, warp.id);
            }
            if arrives && o.phase != before >> 63 {
                races.publish(known);
            }
            if done >> l & 1 == 1 {
                races.acquire(known, warp.id);
            }
        }
        memory::shared_put(cta, a[l], 8, o.pack());
    });
    cta.races = races;
    let regs = &mut warp.frames[at.frame].regs;
    match kind {
        Mbar::Arrive | Mbar::ArriveDrop => {
            regs.put64(inst.d, &out, at.active);
        }
        Mbar::TestWait | Mbar::TryWait | Mbar::TestWaitParity | Mbar::TryWaitParity => {
            regs.putp(inst.d, done, at.active);
        }
        _ => {}
    }
    Ok(())
}
