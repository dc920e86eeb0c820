//! Loads and stores.
//!
//! If the addresses of all lanes lie in one allocation, which is the usual case, they are checked
//! together; otherwise one by one. All workers share global memory. Each element is accessed by a
//! relaxed atomic of its size, so that races of the kernel are not races of this program. (A kernel
//! may race on one address with accesses of different sizes. Rust does not define that case; all
//! known processors behave as a GPU does.) Shared and local memory belong to one block, which runs
//! on one worker at a time.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::access::{Kind, Target};
use super::at::At;
use super::special::space_of;
use super::{between, check};
use crate::exec::state::{Cta, LaunchFault, Warp, Worker};
use crate::ir::window::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW};
use crate::ir::{Access, Inst, Op};
use crate::ptx::Space;

type Done = Result<(), Box<LaunchFault>>;

/// Reads an element of `width` bytes.
///
/// # Safety
/// `va` is a multiple of `width`, in a mapped region.
#[inline(always)]
unsafe fn get(va: u64, width: u8) -> u64 {
    // SAFETY: by contract.
    unsafe {
        match width {
            1 => AtomicU8::from_ptr(va as *mut u8).load(Relaxed).into(),
            2 => AtomicU16::from_ptr(va as *mut u16).load(Relaxed).into(),
            4 => AtomicU32::from_ptr(va as *mut u32).load(Relaxed).into(),
            _ => AtomicU64::from_ptr(va as *mut u64).load(Relaxed),
        }
    }
}

/// Writes an element of `width` bytes.
///
/// # Safety
/// `va` is a multiple of `width`, in a mapped region.
#[inline(always)]
unsafe fn put(va: u64, width: u8, v: u64) {
    // SAFETY: by contract.
    unsafe {
        match width {
            1 => AtomicU8::from_ptr(va as *mut u8).store(v as u8, Relaxed),
            2 => AtomicU16::from_ptr(va as *mut u16).store(v as u16, Relaxed),
            4 => AtomicU32::from_ptr(va as *mut u32).store(v as u32, Relaxed),
            _ => AtomicU64::from_ptr(va as *mut u64).store(v, Relaxed),
        }
    }
}

/// Extends a narrow element to the width of its register.
#[inline(always)]
fn extend(v: u64, access: Access) -> u64 {
    if !access.sext {
        return v;
    }
    let s = match access.width {
        1 => v as i8 as i64,
        2 => v as i16 as i64,
        4 => v as i32 as i64,
        _ => v as i64,
    };
    if access.to16 {
        u64::from(s as u16)
    } else if access.wide {
        s as u64
    } else {
        u64::from(s as u32)
    }
}

/// Loads a kernel parameter, which is the same in all lanes.
pub(super) fn param(worker: &Worker<'_>, warp: &mut Warp, at: &At, inst: &Inst) -> Done {
    let Op::LdParam { width, sext, wide, to16 } = inst.op else {
        return Ok(());
    };
    let mut bytes = [0u8; 8];
    let from = inst.imm as usize;
    let params = worker.grid.params;
    match params.get(from..from.saturating_add(width as usize)) {
        Some(p) => bytes[..width as usize].copy_from_slice(p),
        None => return Err(check::bad_param(worker, inst.imm, width)),
    }
    let access = Access {
        space: Space::Param,
        width,
        count: 1,
        sext,
        wide,
        base64: true,
        strong: false,
        atomic: false,
        to16,
    };
    let v = extend(u64::from_le_bytes(bytes), access);
    let regs = &mut warp.frames[at.frame].regs;
    if wide {
        regs.put64(inst.d, &[v; 32], at.active);
    } else {
        regs.put32(inst.d, &[v as u32; 32], at.active);
    }
    Ok(())
}

/// Returns the addresses of all lanes. For inactive lanes, it returns the address of the first
/// active lane.
pub(super) fn addresses(
    worker: &Worker<'_>,
    warp: &Warp,
    at: &At,
    inst: &Inst,
    access: Access,
) -> [u64; 32] {
    let (k, frame) = (&worker.grid.code.consts, &warp.frames[at.frame]);
    let imm = inst.imm as u64;
    let mut out = [0u64; 32];
    if access.space == Space::Param {
        return [u64::from(frame.local).wrapping_add(imm); 32];
    }
    if access.base64 {
        let a = frame.regs.s64(k, inst.a);
        for l in 0..32 {
            out[l] = a[l].wrapping_add(imm);
        }
    } else {
        let a = frame.regs.s32(k, inst.a);
        for l in 0..32 {
            out[l] = u64::from(a[l].wrapping_add(imm as u32));
        }
    }
    if at.active != u32::MAX {
        let first = out[at.active.trailing_zeros() as usize];
        for (l, va) in out.iter_mut().enumerate() {
            *va = if at.active >> l & 1 != 0 { *va } else { first };
        }
    }
    out
}

/// Returns the data registers of an access.
fn data<'c>(worker: &Worker<'c>, inst: &'c Inst, access: Access, load: bool) -> &'c [u32] {
    if access.count == 1 {
        std::slice::from_ref(if load { &inst.d } else { &inst.b })
    } else {
        &worker.grid.code.lists[inst.s as usize]
    }
}

/// Returns the lanes of a store whose values shared memory already contains.
pub(super) fn again(worker: &Worker<'_>, cta: &Cta, warp: &Warp, at: &At, a: &[u64; 32]) -> u32 {
    let inst = &worker.grid.code.insts[at.pc as usize];
    let Op::St(access) = inst.op else { return 0 };
    let (w, mut same) = (access.width, at.active);
    let (regs, k) = (&warp.frames[at.frame].regs, &worker.grid.code.consts);
    for (n, reg) in data(worker, inst, access, false).iter().enumerate() {
        let v: [u64; 32] =
            if access.wide { *regs.s64(k, *reg) } else { regs.s32(k, *reg).map(u64::from) };
        lanes(same, |l| {
            let there = shared_get(cta, a[l] + n as u64 * u64::from(w), w);
            if there != v[l] & u64::MAX >> (64 - 8 * w) {
                same &= !(1 << l);
            }
        });
    }
    same
}

/// Splits the lanes of a generic access by the space of their addresses. Calls `f` for the lanes of
/// each space.
pub(super) fn by_space(
    worker: &mut Worker<'_>,
    warp: &mut Warp,
    at: &At,
    inst: &Inst,
    access: Access,
    mut f: impl FnMut(&mut Worker<'_>, &mut Warp, &At) -> Done,
) -> Done {
    if access.space != Space::Generic {
        return f(worker, warp, at);
    }
    let a = addresses(worker, warp, at, inst, access);
    let mut left = at.active;
    while left != 0 {
        let space = space_of(a[left.trailing_zeros() as usize]);
        let same = (0..32).fold(0, |m, l| m | u32::from(space_of(a[l]) == space) << l) & left;
        left &= !same;
        f(worker, warp, &At { active: same, ..*at })?;
    }
    Ok(())
}

/// Determines the space of an access and checks its addresses, which become offsets in their space.
/// An invalid access of a lane removes the lane from the mask if the sanitiser is on, and is a
/// fault otherwise.
pub(super) fn resolve(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &Warp,
    at: &mut At,
    a: &mut [u64; 32],
    access: Access,
    kind: Kind,
) -> Result<Target, Box<LaunchFault>> {
    let bytes = u64::from(access.width) * u64::from(access.count);
    let mut space = access.space;
    if space == Space::Generic {
        let first = a[at.active.trailing_zeros() as usize];
        space = space_of(first);
        let window = match space {
            Space::Shared => SHARED_WINDOW,
            Space::Local => LOCAL_WINDOW,
            Space::Param => PARAM_WINDOW,
            _ => 0,
        };
        if window != 0 {
            a.iter_mut().for_each(|v| *v = v.wrapping_sub(window));
        }
    }
    let (low, high, bits) = (worker.grid.span)(a);
    let end = high.wrapping_add(bytes);
    let aligned = bits & (bytes - 1) == 0;
    match space {
        Space::Global | Space::Const | Space::Generic => {
            let write = kind != Kind::Read;
            let sanitize = worker.grid.opts.sanitize;
            let region = if end > low && aligned { worker.region(low, end) } else { None };
            let good = match region {
                Some(r) => (!write || !r.read_only()) && r.shadow.is_none(),
                None => false,
            };
            if !good {
                check::each_lane(worker, cta, warp, at, a, bytes as u32, kind, sanitize)?;
            }
            if cta.races.is_some() && kind != Kind::Write && space != Space::Const {
                between::reads(worker, cta, warp, at, a, bytes as u32, kind, access.strong);
            }
            Ok(Target::Global)
        }
        Space::Shared => {
            if !aligned || end > u64::from(cta.shared_bytes) || end < low {
                check::windowed(worker, cta, warp, at, a, bytes as u32, kind, "shared")?;
            }
            if cta.races.is_some() {
                check::race(worker, cta, warp, at, a, (bytes as u32, access.atomic), kind);
            }
            Ok(Target::Shared)
        }
        Space::Local | Space::Param if access.space != Space::Generic || space == Space::Local => {
            if !aligned || end > warp.local.len() as u64 * 4 || end < low {
                check::windowed(worker, cta, warp, at, a, bytes as u32, kind, "local")?;
            }
            Ok(Target::Local)
        }
        _ => {
            if kind != Kind::Read || !aligned || end > worker.grid.params.len() as u64 || end < low
            {
                check::windowed(worker, cta, warp, at, a, bytes as u32, kind, "parameter")?;
            }
            Ok(Target::Param)
        }
    }
}

/// Reads an element from an array of words.
#[inline(always)]
fn word_get(words: &[u32], at: u64, width: u8) -> u64 {
    let i = (at / 4) as usize;
    match width {
        4 => words[i].into(),
        8 => u64::from(words[i + 1]) << 32 | u64::from(words[i]),
        2 => u64::from((words[i] >> (at % 4 * 8)) as u16),
        _ => u64::from((words[i] >> (at % 4 * 8)) as u8),
    }
}

#[inline(always)]
fn word_put(words: &mut [u32], at: u64, width: u8, v: u64) {
    let i = (at / 4) as usize;
    match width {
        4 => words[i] = v as u32,
        8 => (words[i], words[i + 1]) = (v as u32, (v >> 32) as u32),
        n => {
            let shift = at % 4 * 8;
            let mask = if n == 2 { 0xffffu32 } else { 0xff } << shift;
            words[i] = words[i] & !mask | (v as u32) << shift & mask;
        }
    }
}

/// Reads an element of one lane's local memory.
fn local_get(warp: &Warp, lane: usize, at: u64, width: u8) -> u64 {
    let i = (at / 4) as usize;
    let low = warp.local[i].0[lane];
    match width {
        4 => low.into(),
        8 => u64::from(warp.local[i + 1].0[lane]) << 32 | u64::from(low),
        2 => u64::from((low >> (at % 4 * 8)) as u16),
        _ => u64::from((low >> (at % 4 * 8)) as u8),
    }
}

fn local_put(warp: &mut Warp, lane: usize, at: u64, width: u8, v: u64) {
    let i = (at / 4) as usize;
    match width {
        8 => {
            warp.local[i].0[lane] = v as u32;
            warp.local[i + 1].0[lane] = (v >> 32) as u32;
        }
        n => {
            let mut word = [warp.local[i].0[lane]];
            word_put(&mut word, at % 4, n, v);
            warp.local[i].0[lane] = word[0];
        }
    }
}

/// Calls `f` for every lane of a mask.
#[inline(always)]
pub(super) fn lanes(mask: u32, mut f: impl FnMut(usize)) {
    if mask == u32::MAX {
        (0..32).for_each(f);
    } else {
        let mut left = mask;
        while left != 0 {
            f(left.trailing_zeros() as usize);
            left &= left - 1;
        }
    }
}

pub(super) fn load(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &mut Warp,
    at: &At,
    inst: &Inst,
    access: Access,
) -> Done {
    let mut a = addresses(worker, warp, at, inst, access);
    let mut at = At { ..*at };
    let target = resolve(worker, cta, warp, &mut at, &mut a, access, Kind::Read)?;
    worker.count_access(&target, access, &a, at.active, Kind::Read);
    read_in(worker, cta, warp, &at, inst, access, &target, &a);
    if matches!(target, Target::Global) && !access.strong {
        cta.loaded();
    }
    if access.strong && matches!(target, Target::Global) && cta.races.is_some() {
        let bytes = u32::from(access.width) * u32::from(access.count);
        between::acquires(worker, cta, warp, &at, &a, bytes);
    }
    Ok(())
}

/// Reads the elements of all lanes into their registers.
#[expect(clippy::too_many_arguments, reason = "the parts of an access")]
#[inline(always)]
fn read_in(
    worker: &Worker<'_>,
    cta: &Cta,
    warp: &mut Warp,
    at: &At,
    inst: &Inst,
    access: Access,
    target: &Target,
    a: &[u64; 32],
) {
    let (w, m) = (access.width, at.active);
    if w == 4 && !access.wide && load_words(worker, cta, warp, at, inst, access, target, a) {
        return;
    }
    for (n, reg) in data(worker, inst, access, true).iter().enumerate() {
        let off = n as u64 * u64::from(w);
        let mut v = [0u64; 32];
        match target {
            // SAFETY: `resolve` has checked all lanes of the mask.
            Target::Global if w == 4 => lanes(m, |l| v[l] = unsafe { get(a[l] + off, 4) }),
            // SAFETY: as above.
            Target::Global => lanes(m, |l| v[l] = unsafe { get(a[l] + off, w) }),
            Target::Shared if w == 4 => lanes(m, |l| v[l] = word_get(&cta.shared, a[l] + off, 4)),
            Target::Shared => lanes(m, |l| v[l] = word_get(&cta.shared, a[l] + off, w)),
            Target::Local => lanes(m, |l| v[l] = local_get(warp, l, a[l] + off, w)),
            Target::Param => {
                let p = worker.grid.params;
                lanes(m, |l| {
                    let from = (a[l] + off) as usize;
                    let mut b = [0; 8];
                    b[..w as usize].copy_from_slice(&p[from..from + w as usize]);
                    v[l] = u64::from_le_bytes(b);
                });
            }
        }
        let regs = &mut warp.frames[at.frame].regs;
        if access.sext {
            v.iter_mut().for_each(|v| *v = extend(*v, access));
        }
        if access.wide {
            regs.put64(*reg, &v, m);
        } else {
            regs.put32(*reg, &v.map(|v| v as u32), m);
        }
    }
}

/// Loads 32-bit elements from global or shared memory, which is the most frequent case. Returns
/// false for local memory and parameters.
#[expect(clippy::too_many_arguments, reason = "the parts of an access")]
#[inline(always)]
fn load_words(
    worker: &Worker<'_>,
    cta: &Cta,
    warp: &mut Warp,
    at: &At,
    inst: &Inst,
    access: Access,
    target: &Target,
    a: &[u64; 32],
) -> bool {
    let regs = &mut warp.frames[at.frame].regs;
    for (n, reg) in data(worker, inst, access, true).iter().enumerate() {
        let off = 4 * n as u64;
        let mut v = [0u32; 32];
        match target {
            Target::Global => lanes(at.active, |l| {
                // SAFETY: `resolve` has checked all lanes of the mask.
                let cell = unsafe { AtomicU32::from_ptr((a[l] + off) as *mut u32) };
                v[l] = cell.load(Relaxed);
            }),
            Target::Shared => lanes(at.active, |l| v[l] = cta.shared[((a[l] + off) / 4) as usize]),
            _ => return false,
        }
        regs.put32(*reg, &v, at.active);
    }
    true
}

pub(super) fn store(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &mut Warp,
    at: &At,
    inst: &Inst,
    access: Access,
) -> Done {
    let mut a = addresses(worker, warp, at, inst, access);
    let mut at = At { ..*at };
    let target = resolve(worker, cta, warp, &mut at, &mut a, access, Kind::Write)?;
    worker.count_access(&target, access, &a, at.active, Kind::Write);
    let (w, m) = (access.width, at.active);
    if access.strong {
        std::sync::atomic::fence(std::sync::atomic::Ordering::Release);
    }
    for (n, reg) in data(worker, inst, access, false).iter().enumerate() {
        let off = n as u64 * u64::from(w);
        let regs = &warp.frames[at.frame].regs;
        let k = &worker.grid.code.consts;
        let v: [u64; 32] =
            if access.wide { *regs.s64(k, *reg) } else { regs.s32(k, *reg).map(u64::from) };
        if cta.races.is_some() && matches!(target, Target::Global) {
            between::writes(worker, cta, warp, &at, &a, (off, w), &v, access.strong);
        }
        match target {
            // SAFETY: `resolve` has checked all lanes of the mask.
            Target::Global if w == 4 => lanes(m, |l| unsafe { put(a[l] + off, 4, v[l]) }),
            // SAFETY: as above.
            Target::Global => lanes(m, |l| unsafe { put(a[l] + off, w, v[l]) }),
            Target::Shared => lanes(m, |l| word_put(&mut cta.shared, a[l] + off, w, v[l])),
            Target::Local => lanes(m, |l| local_put(warp, l, a[l] + off, w, v[l])),
            Target::Param => {}
        }
    }
    Ok(())
}

/// Reads an element at a valid global address.
///
/// # Safety
/// As for `get`.
pub(super) unsafe fn global_get(va: u64, width: u8) -> u64 {
    // SAFETY: by contract.
    unsafe { get(va, width) }
}

/// Writes an element at a valid global address.
///
/// # Safety
/// As for `put`.
pub(super) unsafe fn global_put(va: u64, width: u8, v: u64) {
    // SAFETY: by contract.
    unsafe { put(va, width, v) }
}

/// Reads an element of shared memory at a valid offset.
pub(super) fn shared_get(cta: &Cta, at: u64, width: u8) -> u64 {
    word_get(&cta.shared, at, width)
}

/// Writes an element of shared memory at a valid offset.
pub(super) fn shared_put(cta: &mut Cta, at: u64, width: u8, v: u64) {
    word_put(&mut cta.shared, at, width, v);
}

/// Reads an element of local memory in one lane, at a valid offset.
pub(super) fn frame_get(warp: &Warp, lane: usize, at: u32, width: u8) -> u64 {
    local_get(warp, lane, at.into(), width)
}

/// Writes an element of local memory in one lane, at a valid offset.
pub(super) fn frame_put(warp: &mut Warp, lane: usize, at: u32, width: u8, v: u64) {
    local_put(warp, lane, at.into(), width, v);
}
