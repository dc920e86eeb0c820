//! Functions of the device runtime: `printf`, `assert`, `malloc`, `free`.

use super::at::At;
use super::between;
use super::memory::{frame_get, frame_put};
use super::printf::{Args, format};
use super::view::View;
use crate::exec::state::{Cta, FaultKind, LaunchFault, Warp, Where, Worker, fault};
use crate::ir::{Builtin, CallSite, Inst};

/// Returns argument `n` of a call in one lane.
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
    cta: &mut Cta,
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
                // Formatting a text may take as long as thousands of instructions.
                worker.grid.check_time()?;
                let (fmt, args) = (arg(warp, 0), arg(warp, 1));
                print(worker, cta, warp, lane, fmt, args).unwrap_or(u64::MAX)
            }
            Builtin::AssertFail => return Err(assertion(worker, cta, warp, at, site, lane)),
            Builtin::Malloc => {
                let va = worker.grid.heap.alloc(arg(warp, 0));
                between::heap(worker, cta, warp, true);
                va
            }
            Builtin::Free => {
                between::heap(worker, cta, warp, false);
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

/// Formats and prints a text. Returns the number of arguments, or `None` if memory cannot be read.
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
