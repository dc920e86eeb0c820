//! Invalid accesses: their description, and whether the kernel stops.

use super::access::Kind;
use super::at::At;
use super::memory;
use crate::check::Finding;
use crate::exec::state::race::Mode;
use crate::exec::state::{Cta, FaultKind, LaunchFault, State, Warp, Where, Worker, fault, found};
use crate::ir::Op;

type Done = Result<(), Box<LaunchFault>>;

/// Description of an invalid access.
pub(super) struct Wrong {
    pub(super) check: &'static str,
    pub(super) kind: FaultKind,
    pub(super) address: u64,
    pub(super) bytes: u32,
    pub(super) text: Text,
}

/// Creates the text of a finding, such as "out of bounds 4-byte write at 0x…", and the text that
/// follows the thread. The sanitiser skips invalid accesses, millions in some kernels, and needs
/// the text of the first ones only.
pub(super) type Text = Box<dyn FnOnce() -> (String, String)>;

/// Reports an invalid access, as a finding if `go_on` is set and as a fault otherwise.
pub(super) fn report(
    worker: &mut Worker<'_>,
    cta: &Cta,
    warp: &Warp,
    pc: u32,
    lane: u32,
    wrong: Wrong,
    go_on: bool,
) -> Done {
    if go_on {
        worker.grid.check_time()?;
        if worker.findings.again(pc, wrong.check) {
            return Ok(());
        }
    }
    let who = Where::new(worker.grid, cta.id, warp, lane, pc);
    let (what, detail) = (wrong.text)();
    let message = format!("{what} {}{detail}{}", who.who(), who.place());
    let finding = Finding {
        check: wrong.check,
        kernel: worker.grid.kernel.to_string(),
        block: who.block,
        thread: who.thread,
        address: wrong.address,
        bytes: wrong.bytes,
        source: who.source,
        message,
        count: 1,
    };
    if go_on {
        worker.findings.add(pc, finding);
        return Ok(());
    }
    Err(found(wrong.kind, finding))
}

pub(super) fn verb(kind: Kind) -> &'static str {
    match kind {
        Kind::Read => "read",
        Kind::Write => "write",
        Kind::Atomic | Kind::Reduction => "atomic",
    }
}

/// Returns the problem of one access to global memory, or `None` if the access is valid. Marks
/// written bytes as initialised.
fn examine(worker: &mut Worker<'_>, va: u64, bytes: u32, kind: Kind) -> Option<Wrong> {
    let size = u64::from(bytes);
    let name = verb(kind);
    let wrong = |check, kind, what: &'static str, detail: Box<dyn FnOnce() -> String>| {
        let text = move || (format!("{what} {bytes}-byte {name} at {va:#x}"), detail());
        Wrong { check, kind, address: va, bytes, text: Box::new(text) }
    };
    if va & (size - 1) != 0 {
        let detail = Box::new(move || format!(", which is not a multiple of {bytes}"));
        return Some(wrong("misaligned", FaultKind::MisalignedAddress, "misaligned", detail));
    }
    let sanitize = worker.grid.opts.sanitize;
    let table = worker.grid.table.clone();
    // An access that wraps around the end of the address space is in no region.
    let region = va.checked_add(size).and_then(|end| worker.region(va, end));
    match region {
        None => {
            let (check, what) = match table.freed(va) {
                Some(_) => ("use_after_free", "use after free:"),
                None => ("out_of_bounds", "out of bounds"),
            };
            let detail = Box::new(move || format!(", {}", table.describe(va)));
            Some(wrong(check, FaultKind::IllegalAddress, what, detail))
        }
        Some(r) if kind != Kind::Read && r.read_only() => {
            let (offset, all) = (va - r.base, r.bytes);
            let detail = Box::new(move || format!(", {offset} bytes into a {all}-byte input"));
            let what = "forbidden";
            Some(wrong("read_only_write", FaultKind::IllegalAddress, what, detail))
        }
        Some(r) => {
            let shadow = r.shadow.as_ref()?;
            let offset = va - r.base;
            let missing = kind != Kind::Write && sanitize && !shadow.written(offset, size);
            if kind != Kind::Read {
                shadow.mark(offset, size);
            }
            let all = r.bytes;
            let detail = move || format!(", {offset} bytes into a {all}-byte allocation");
            let detail = Box::new(detail);
            missing.then(|| {
                wrong("uninitialised_read", FaultKind::IllegalAddress, "uninitialised", detail)
            })
        }
    }
}

/// Examines the lanes of a global access one by one. Lanes with an invalid access are removed from
/// the mask, except for uninitialised reads.
#[expect(clippy::too_many_arguments, reason = "the parts of an access")]
pub(super) fn each_lane(
    worker: &mut Worker<'_>,
    cta: &Cta,
    warp: &Warp,
    at: &mut At,
    a: &[u64; 32],
    bytes: u32,
    kind: Kind,
    go_on: bool,
) -> Done {
    for lane in (0..32).filter(|l| at.active >> l & 1 == 1).collect::<Vec<u32>>() {
        let va = a[lane as usize];
        if let Some(wrong) = examine(worker, va, bytes, kind) {
            let skip = wrong.check != "uninitialised_read";
            report(worker, cta, warp, at.pc, lane, wrong, go_on)?;
            if skip {
                at.active &= !(1 << lane);
            }
        }
    }
    Ok(())
}

/// Reports invalid accesses to a space other than global memory. Their lanes are removed from the
/// mask.
#[expect(clippy::too_many_arguments, reason = "the parts of an access")]
pub(super) fn windowed(
    worker: &mut Worker<'_>,
    cta: &Cta,
    warp: &Warp,
    at: &mut At,
    a: &[u64; 32],
    bytes: u32,
    kind: Kind,
    space: &'static str,
) -> Done {
    let size = match space {
        "shared" => u64::from(cta.shared_bytes),
        "local" => warp.local.len() as u64 * 4,
        _ => worker.grid.params.len() as u64,
    };
    let go_on = worker.grid.opts.sanitize;
    for lane in (0..32).filter(|l| at.active >> l & 1 == 1).collect::<Vec<u32>>() {
        let va = a[lane as usize];
        let outside = va.checked_add(bytes.into()).is_none_or(|end| end > size);
        let name = verb(kind);
        let wrong = if va & u64::from(bytes - 1) != 0 {
            Wrong {
                check: "misaligned",
                kind: FaultKind::MisalignedAddress,
                address: va,
                bytes,
                text: Box::new(move || {
                    let what =
                        format!("misaligned {bytes}-byte {name} at {va:#x} of {space} memory");
                    (what, format!(", which is not a multiple of {bytes}"))
                }),
            }
        } else if outside || (space == "parameter" && kind != Kind::Read) {
            Wrong {
                check: "out_of_bounds",
                kind: FaultKind::IllegalAddress,
                address: va,
                bytes,
                text: Box::new(move || {
                    let what = format!("out of bounds {bytes}-byte {name} at {va:#x}");
                    (format!("{what} of {size} bytes of {space} memory"), String::new())
                }),
            }
        } else {
            continue;
        };
        report(worker, cta, warp, at.pc, lane, wrong, go_on)?;
        at.active &= !(1 << lane);
    }
    Ok(())
}

/// Checks an access to shared memory for races. `bytes`: size of each lane's access; `atomic`:
/// whether the access is an atomic of the memory model.
pub(super) fn race(
    worker: &mut Worker<'_>,
    cta: &mut Cta,
    warp: &Warp,
    at: &At,
    a: &[u64; 32],
    (bytes, atomic): (u32, bool),
    kind: Kind,
) {
    let mode = match kind {
        Kind::Read if atomic => Mode::AtomicRead,
        Kind::Read => Mode::Read,
        Kind::Write if !atomic => Mode::Write,
        Kind::Write | Kind::Atomic | Kind::Reduction => Mode::Atomic,
    };
    let again = if mode == Mode::Write { memory::again(worker, cta, warp, at, a) } else { 0 };
    let Some(mut races) = cta.races.take() else {
        return;
    };
    for lane in (0..32).filter(|l| at.active >> l & 1 == 1) {
        let va = a[lane as usize];
        let copying = cta.copies.in_flight(va, bytes);
        let mode = if again >> lane & 1 == 1 { Mode::Again } else { mode };
        let raced = races.access(va, bytes, warp.id, lane, mode);
        if let Some(other) = copying {
            let _ =
                report(worker, cta, warp, at.pc, lane, unfinished(va, bytes, kind, other), true);
            continue;
        }
        let lanes = (warp.id, lane);
        let apart = races.access_in_warp((va, bytes), lanes, at.active, mode);
        if let Some(other) = apart.filter(|_| raced.is_none()) {
            let wrong = unsynchronised(va, bytes, kind, other);
            let _ = report(worker, cta, warp, at.pc, lane, wrong, true);
        }
        let Some((other, wrote)) = raced else {
            continue;
        };
        let them = if wrote { "write" } else { "read" };
        let wrong = shared_race((va, bytes), kind, move || {
            let (warp, lane) = (other / 32, other % 32);
            format!(", after a {them} by warp {warp} lane {lane} with no barrier between")
        });
        // A race is a finding, never a fault. The time limit is checked again after the turn.
        let _ = report(worker, cta, warp, at.pc, lane, wrong, true);
    }
    // The instructions of an `mbarrier` themselves record the order that it establishes.
    if atomic && !matches!(worker.grid.code.insts[at.pc as usize].op, Op::Mbar(_)) {
        for lane in (0..32).filter(|l| at.active >> l & 1 == 1) {
            races.synchronise(a[lane as usize], warp.id, mode);
        }
    }
    cta.races = Some(races);
}

/// Describes an access to bytes that another lane of the warp wrote in an instruction which this
/// lane did not execute.
fn unsynchronised(va: u64, bytes: u32, kind: Kind, other: u32) -> Wrong {
    shared_race((va, bytes), kind, move || {
        let lane = other % 32;
        format!(
            ", after a write by lane {lane} of the same warp, which had taken another path, with no `__syncwarp()` between"
        )
    })
}

/// Describes an access to shared memory that races with another one. `detail` describes the other
/// access and follows the thread.
fn shared_race(
    (va, bytes): (u64, u32),
    kind: Kind,
    detail: impl FnOnce() -> String + 'static,
) -> Wrong {
    let me = verb(kind);
    let what = move || format!("race: {bytes}-byte {me} at {va:#x} of shared memory");
    Wrong {
        check: "shared_race",
        kind: FaultKind::IllegalInstruction,
        address: va,
        bytes,
        text: Box::new(move || (what(), detail())),
    }
}

/// Reports lanes that execute a warp-wide instruction whose mask does not include them, or whose
/// mask names lanes that do not arrive.
pub(super) fn undefined_mask(
    worker: &mut Worker<'_>,
    cta: &Cta,
    warp: &Warp,
    at: &At,
    (mask, here, absent): (u32, u32, u32),
) {
    let wrong = Wrong {
        check: "undefined_mask",
        kind: FaultKind::IllegalInstruction,
        address: 0,
        bytes: 0,
        text: Box::new(move || {
            let detail = if here & !mask != 0 {
                format!(", which does not include the executing lanes {:#010x}", here & !mask)
            } else {
                format!(", of which lanes {absent:#010x} do not arrive")
            };
            (format!("undefined result: mask {mask:#010x}"), detail)
        }),
    };
    let _ = report(worker, cta, warp, at.pc, here.trailing_zeros(), wrong, true);
}

/// Describes an access to bytes that another instruction's pending copy will write.
fn unfinished(va: u64, bytes: u32, kind: Kind, other: u32) -> Wrong {
    shared_race((va, bytes), kind, move || {
        let (warp, lane) = (other / 32, other % 32);
        format!(
            ", to which an asynchronous copy by warp {warp} lane {lane} is on its way, without a \
             wait for it"
        )
    })
}

/// Reports lanes of one warp that wait at different barrier instructions.
pub(super) fn divergent_barrier(worker: &mut Worker<'_>, cta: &Cta, warp: &Warp, at: &At, id: u8) {
    let elsewhere = warp.groups.iter().enumerate().find(|(i, g)| {
        let waits = matches!(g.state, State::Barrier { id: other, .. } if other == id);
        *i != at.group && waits && g.pc != at.pc
    });
    let Some((_, g)) = elsewhere else { return };
    let lane = at.active.trailing_zeros();
    let other = worker.grid.code.lines[g.pc as usize].0;
    let (here, there, warp_id) = (at.active, g.mask, warp.id);
    let wrong = Wrong {
        check: "divergent_barrier",
        kind: FaultKind::IllegalInstruction,
        address: 0,
        bytes: 0,
        text: Box::new(move || {
            (
                format!("divergent barrier {id}: lanes {here:#010x} of warp {warp_id}"),
                format!(", while lanes {there:#010x} wait at PTX line {other}"),
            )
        }),
    };
    let _ = report(worker, cta, warp, at.pc, lane, wrong, true);
}

/// Returns the fault of a kernel that reads parameters beyond those of the launch.
pub(super) fn bad_param(worker: &Worker<'_>, offset: i64, width: u8) -> Box<LaunchFault> {
    let have = worker.grid.params.len();
    let message = format!(
        "{}: reads {width} bytes of parameters at {offset}, but the launch has {have} bytes",
        worker.grid.kernel
    );
    fault(FaultKind::IllegalAddress, message)
}
