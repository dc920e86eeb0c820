//! Special registers, and the address spaces of generic addresses.

use std::time::{SystemTime, UNIX_EPOCH};

use super::at::At;
use crate::exec::state::{Cta, Warp, Worker};
use crate::ir::window::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW};
use crate::ir::{Inst, Op, RESERVED_SHARED, Sreg};
use crate::ptx::Space;

/// Clock cycles that `%clock` advances per warp instruction.
const CYCLES: u64 = 4;

/// Offset in the reserved shared memory at which cooperative groups keep the state of groups of
/// several warps. They expect 288 bytes there.
const GROUPS_OFFSET: u64 = 512;

/// Returns the space that a generic address belongs to.
pub(super) fn space_of(va: u64) -> Space {
    let within = |window: u64| va.wrapping_sub(window) < WINDOW;
    if within(SHARED_WINDOW) {
        Space::Shared
    } else if within(LOCAL_WINDOW) {
        Space::Local
    } else if within(PARAM_WINDOW) {
        Space::Param
    } else {
        Space::Global
    }
}

pub(super) fn read(worker: &Worker<'_>, cta: &Cta, warp: &mut Warp, at: &At, inst: &Inst) {
    let k = &worker.grid.code.consts;
    match inst.op {
        Op::Sreg(s) => {
            let v = lanes(worker, cta, warp, s).map(|v| v as u32);
            warp.frames[at.frame].regs.put32(inst.d, &v, at.active);
        }
        Op::Sreg64(s) => {
            let v = lanes(worker, cta, warp, s);
            warp.frames[at.frame].regs.put64(inst.d, &v, at.active);
        }
        Op::FrameAddr => {
            let frame = &mut warp.frames[at.frame];
            let v = u64::from(frame.local).wrapping_add(inst.imm as u64);
            frame.regs.put64(inst.d, &[v; 32], at.active);
        }
        Op::Activemask => {
            warp.frames[at.frame].regs.put32(inst.d, &[at.active; 32], at.active);
        }
        Op::Cvta { space, to, .. } => {
            let window = match space {
                Space::Shared => SHARED_WINDOW,
                Space::Local => LOCAL_WINDOW,
                _ => 0,
            };
            let delta = if to { window.wrapping_neg() } else { window };
            warp.frames[at.frame].regs.u64(k, inst, at.active, |a| a.wrapping_add(delta));
        }
        Op::Isspacep(space) => {
            let regs = &mut warp.frames[at.frame].regs;
            let a = regs.s64(k, inst.a);
            let constants = &worker.grid.code.constants;
            let constant = |va| constants.iter().any(|(at, n)| (*at..at + n).contains(&va));
            let is = |va| match (space, space_of(va)) {
                (Space::Const, s) => s == Space::Global && constant(va),
                // Kernel parameters count as global memory.
                (Space::Global, Space::Param) => true,
                (Space::Global, s) => s == Space::Global && !constant(va),
                (space, s) => s == space,
            };
            let v = (0..32).fold(0, |m, l| m | u32::from(is(a[l])) << l);
            regs.putp(inst.d, v, at.active);
        }
        _ => {}
    }
}

fn nanoseconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64)
}

/// Returns the values of a special register in all lanes.
fn lanes(worker: &Worker<'_>, cta: &Cta, warp: &Warp, s: Sreg) -> [u64; 32] {
    let grid = worker.grid;
    let each = |f: &dyn Fn(u32) -> u64| std::array::from_fn(|l| f(l as u32));
    let [bx, by, bz] = grid.cfg.block;
    let sms = u64::from(grid.opts.sm_count.max(1));
    // The clock of a warp counts the warp's own instructions, so that it is the same in every run.
    let clock = warp.clock * CYCLES;
    let uniform = match s {
        Sreg::TidX => return warp.tid[0].map(u64::from),
        Sreg::TidY => return warp.tid[1].map(u64::from),
        Sreg::TidZ => return warp.tid[2].map(u64::from),
        Sreg::LaneId => return each(&u64::from),
        Sreg::LanemaskEq => return each(&|l| 1 << l),
        Sreg::LanemaskLe => return each(&|l| (2 << l) - 1),
        Sreg::LanemaskLt => return each(&|l| (1 << l) - 1),
        Sreg::LanemaskGe => return each(&|l| u64::from(u32::MAX << l)),
        Sreg::LanemaskGt => return each(&|l| u64::from((u32::MAX << l) & !(1 << l))),
        Sreg::NtidX => bx.into(),
        Sreg::NtidY => by.into(),
        Sreg::NtidZ => bz.into(),
        Sreg::CtaidX => cta.id[0].into(),
        Sreg::CtaidY => cta.id[1].into(),
        Sreg::CtaidZ => cta.id[2].into(),
        Sreg::NctaidX => grid.cfg.grid[0].into(),
        Sreg::NctaidY => grid.cfg.grid[1].into(),
        Sreg::NctaidZ => grid.cfg.grid[2].into(),
        Sreg::WarpId => warp.id.into(),
        Sreg::NWarpId => 64,
        Sreg::SmId => cta.index % sms,
        Sreg::NSmId => sms,
        Sreg::GridId => grid.id,
        Sreg::Clock | Sreg::Clock64 => clock,
        Sreg::ClockHi => clock >> 32,
        Sreg::GlobalTimer => nanoseconds(),
        Sreg::GlobalTimerLo => nanoseconds() & 0xffff_ffff,
        Sreg::GlobalTimerHi => nanoseconds() >> 32,
        Sreg::DynamicSmem => grid.cfg.dynamic_shared_bytes.into(),
        Sreg::TotalSmem => grid.shared_bytes.into(),
        Sreg::AggrSmem => u64::from(grid.shared_bytes) + u64::from(RESERVED_SHARED),
        Sreg::ReservedBegin => grid.reserved_at().into(),
        Sreg::ReservedGroups => u64::from(grid.reserved_at()) + GROUPS_OFFSET,
        Sreg::ReservedEnd => u64::from(grid.reserved_at()) + u64::from(RESERVED_SHARED),
        Sreg::ReservedBytes => RESERVED_SHARED.into(),
        Sreg::WorkspaceHigh => grid.workspace >> 32,
        Sreg::WorkspaceLow => grid.workspace & 0xffff_ffff,
        Sreg::Zero => 0,
        Sreg::One => 1,
    };
    [uniform; 32]
}
