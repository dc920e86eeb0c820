//! `mbarrier` objects in shared memory.

use super::access::Kind;
use super::at::At;
use super::{copy, memory};
use crate::exec::state::copies::Arrival;
use crate::exec::state::{Cta, LaunchFault, Warp, Worker, clocks};
use crate::ir::{Access, Inst, Mbar};
use crate::ptx::Space;

type Done = Result<(), Box<LaunchFault>>;

/// The state of an `mbarrier`: its phase, its expected arrivals and its pending arrivals (20 bits
/// each).
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
    // A kernel must order the initialisation of a barrier before its use.
    let plain = matches!(kind, Mbar::Init | Mbar::Inval);
    let (access, as_what) = match plain {
        true => (Access { atomic: false, ..access }, Kind::Write),
        false => (access, Kind::Atomic),
    };
    memory::resolve(worker, cta, warp, &mut at, &mut a, access, as_what)?;
    match kind {
        Mbar::Arrive | Mbar::ArriveDrop => {}
        Mbar::AsyncArrive => {
            arrive_later(cta, warp, &at, &a, inst.e == 1);
            return Ok(());
        }
        // A thread that waits also waits for copies, and no arrival may follow after a barrier is
        // destroyed.
        _ => memory::lanes(at.active, |l| end_arrivals(cta, a[l])),
    }
    let regs = &warp.frames[at.frame].regs;
    let counts = *regs.s32(k, inst.b);
    let tokens = match kind {
        Mbar::TestWait | Mbar::TryWait => *regs.s64(k, inst.c),
        _ => [0; 32],
    };
    let (mut out, mut done) = ([0u64; 32], 0u32);
    let mut races = cta.races.take();
    memory::lanes(at.active, |l| {
        let before = memory::shared_get(cta, a[l], 8);
        let mut o = Object::unpack(before);
        let known = clocks::Object::Word((a[l] / 4) as u32);
        out[l] = before;
        let n = u64::from(counts[l]);
        match kind {
            Mbar::Init => o = Object { phase: 0, expected: n & COUNT, pending: n & COUNT },
            Mbar::Inval => o = Object { phase: 0, expected: 0, pending: 0 },
            Mbar::Arrive => o.arrive(n),
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
            let arrives = matches!(kind, Mbar::Arrive | Mbar::ArriveDrop);
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

/// Records that the lanes arrive when their copies issued so far have completed. If `counts` is
/// set, the pending count grows by these arrivals. Otherwise the barrier's initial count includes
/// them.
fn arrive_later(cta: &mut Cta, warp: &Warp, at: &At, a: &[u64; 32], counts: bool) {
    let mut left = at.active;
    while left != 0 {
        let object = a[left.trailing_zeros() as usize];
        let same = (0..32).fold(0, |m, l| m | u32::from(a[l] == object) << l) & left;
        left &= !same;
        if counts {
            let mut o = Object::unpack(memory::shared_get(cta, object, 8));
            o.pending = (o.pending + u64::from(same.count_ones())).min(COUNT);
            memory::shared_put(cta, object, 8, o.pack());
        }
        if let Some(races) = &mut cta.races {
            races.release(clocks::Object::Word((object / 4) as u32), warp.id);
        }
        if let Some(oldest) = cta.copies.arrive(object, warp.id, same) {
            end_arrival(cta, &oldest);
        }
    }
}

/// Completes the copies that the arrivals at an object wait for.
fn end_arrivals(cta: &mut Cta, object: u64) {
    for arrival in cta.copies.due(object) {
        end_arrival(cta, &arrival);
    }
}

fn end_arrival(cta: &mut Cta, arrival: &Arrival) {
    copy::end_before(cta, arrival);
    let mut o = Object::unpack(memory::shared_get(cta, arrival.object, 8));
    let before = o.phase;
    (0..arrival.lanes.count_ones()).for_each(|_| o.arrive(1));
    memory::shared_put(cta, arrival.object, 8, o.pack());
    if let Some(races) = &mut cta.races
        && o.phase != before
    {
        races.publish(clocks::Object::Word((arrival.object / 4) as u32));
    }
}
