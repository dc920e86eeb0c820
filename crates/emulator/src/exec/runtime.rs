//! Functions of the device runtime: `printf`, `assert`, `malloc`, `free`.

use super::block::Cta;
use super::fault::{Where, fault};
use super::grid::Worker;
use super::memory::{frame_get, frame_put};
use super::printf::{Args, format};
use super::special::space_of;
use super::step::At;
use super::warp::Warp;
use super::{FaultKind, LaunchFault};
use crate::ir::lower::{LOCAL_WINDOW, SHARED_WINDOW};
use crate::ir::{Builtin, CallSite, Inst};
use crate::ptx::Space;

/// Longest text that a format or a `%s` may have, in bytes.
const MAX_TEXT: usize = 64 << 10;

/// Reads bytes at a generic address as one thread sees them.
pub(super) struct View<'v, 'w> {
    pub(super) worker: &'v mut Worker<'w>,
    pub(super) cta: &'v Cta,
    pub(super) warp: &'v Warp,
    pub(super) lane: usize,
}

impl View<'_, '_> {
    /// The byte at `va`, if there is one.
    fn byte(&mut self, va: u64) -> Option<u8> {
        match space_of(va) {
            Space::Shared => {
                let at = va - SHARED_WINDOW;
                let word = *self.cta.shared.get((at / 4) as usize)?;
                Some((word >> (at % 4 * 8)) as u8)
            }
            Space::Local => {
                let at = va - LOCAL_WINDOW;
                let word = self.warp.local.get((at / 4) as usize)?.0[self.lane];
                Some((word >> (at % 4 * 8)) as u8)
            }
            Space::Param => None,
            _ => {
                self.worker.region(va, va.checked_add(1)?)?;
                // SAFETY: the byte is in a mapped region.
                Some(unsafe { super::memory::global_get(va, 1) } as u8)
            }
        }
    }

    /// `n` bytes as a little-endian number.
    pub(super) fn number(&mut self, va: u64, n: u64) -> Option<u64> {
        (0..n).try_fold(0, |v, i| Some(v | u64::from(self.byte(va.checked_add(i)?)?) << (8 * i)))
    }

    /// The bytes from `va` up to a zero.
    pub(super) fn text(&mut self, va: u64) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        while out.len() < MAX_TEXT {
            match self.byte(va.checked_add(out.len() as u64)?)? {
                0 => return Some(out),
                b => out.push(b),
            }
        }
        Some(out)
    }
}

/// Argument `n` of a call in one lane.
fn argument(warp: &Warp, at: &At, site: &CallSite, lane: usize, n: usize) -> u64 {
    let (offset, bytes) = site.args[n];
    frame_get(warp, lane, warp.frames[at.frame].local + offset, bytes as u8)
}

fn give(warp: &mut Warp, at: &At, site: &CallSite, lane: usize, v: u64) {
    if let Some((offset, bytes)) = site.rets.first() {
        let to = warp.frames[at.frame].local + offset;
        frame_put(warp, lane, to, *bytes as u8, v);
    }
}

pub(super) fn call(
    worker: &mut Worker<'_>,
    cta: &Cta,
    warp: &mut Warp,
    at: &At,
    inst: &Inst,
    builtin: Builtin,
) -> Result<(), Box<LaunchFault>> {
    let site = &worker.grid.code.calls[inst.imm as usize];
    for lane in (0..32).filter(|l| at.active >> l & 1 == 1) {
        let arg = |warp: &Warp, n| argument(warp, at, site, lane, n);
        let value = match builtin {
            Builtin::Vprintf => {
                // One text may take as long as thousands of instructions.
                worker.grid.check_time()?;
                let (fmt, args) = (arg(warp, 0), arg(warp, 1));
                print(worker, cta, warp, lane, fmt, args).unwrap_or(u64::MAX)
            }
            Builtin::AssertFail => return Err(assertion(worker, cta, warp, at, site, lane)),
            Builtin::Malloc => worker.grid.heap.alloc(arg(warp, 0)),
            Builtin::Free => {
                if let Err(what) = worker.grid.heap.free(arg(warp, 0)) {
                    let who = Where::new(worker.grid, cta.id, warp, lane as u32, at.pc);
                    let message = format!("{what} {}{}", who.who(), who.place());
                    return Err(fault(FaultKind::IllegalAddress, message));
                }
                0
            }
        };
        give(warp, at, site, lane, value);
    }
    Ok(())
}

/// Formats and prints; the number of arguments, or `None` where memory cannot be read.
fn print(
    worker: &mut Worker<'_>,
    cta: &Cta,
    warp: &Warp,
    lane: usize,
    fmt: u64,
    args: u64,
) -> Option<u64> {
    let print = worker.grid.opts.printf;
    let mut view = View { worker, cta, warp, lane };
    let text = view.text(fmt)?;
    let mut args = Args::new(view, args);
    let out = format(&text, &mut args)?;
    print(&out);
    Some(args.count())
}

fn assertion(
    worker: &mut Worker<'_>,
    cta: &Cta,
    warp: &Warp,
    at: &At,
    site: &CallSite,
    lane: usize,
) -> Box<LaunchFault> {
    let [message, file, line, function] = [0, 1, 2, 3].map(|n| argument(warp, at, site, lane, n));
    let who = Where::new(worker.grid, cta.id, warp, lane as u32, at.pc);
    let mut view = View { worker, cta, warp, lane };
    let mut text = |va| {
        let bytes = view.text(va).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let (message, file, function) = (text(message), text(file), text(function));
    let text = format!("{file}:{line}: {function}: {} Assertion `{message}` failed.", who.who());
    fault(FaultKind::Assert, text)
}
