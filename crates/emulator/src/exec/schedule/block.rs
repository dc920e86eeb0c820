//! Blocks, and the scheduling of their warps.

use crate::check::Finding;
use crate::exec::state::{
    Barrier, Copies, Cta, FaultKind, Grid, LaunchFault, Races, Stack, State, Warp, Where, Worker,
    fault, found,
};
use crate::exec::step::{Turn, run, settle};

/// Number of instructions that a block may execute before another block gets its worker.
const SLICE: u64 = 1 << 20;

/// A block whose warps are all between two instructions, so that it can be suspended.
pub(super) struct Block {
    pub(super) cta: Cta,
    warps: Vec<Warp>,
    next: usize,
}

/// Reason why a block gave up its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slice {
    Done,
    /// The block waits for another block, or has been in a loop for a long time.
    Spinning,
    /// The time slice of the block has ended.
    Expired,
    /// The block has read data that other blocks may change before this block continues.
    Held,
}

/// Returns the lanes of warp `w` of a block.
fn lanes(threads: u32, w: u32) -> u32 {
    let count = (threads - w * 32).min(32);
    if count == 32 { u32::MAX } else { (1 << count) - 1 }
}

/// Patterns that successive blocks find in their shared memory: NaN or −1, a large number, and a
/// large negative number. On a GPU, shared memory contains data of earlier blocks, so a kernel that
/// assumes zeros is wrong.
const LEFT: [u32; 3] = [0xffff_ffff, 0x5a5a_5a5a, 0xdada_dada];

impl Block {
    /// Creates block number `index` of the grid.
    pub(super) fn new(grid: &Grid<'_>, index: u64) -> Self {
        let [bx, by, bz] = grid.cfg.block;
        let threads = bx * by * bz;
        let warps = (0..threads.div_ceil(32)).map(|w| {
            let thread = |l: usize| w * 32 + l as u32;
            let tid = [
                std::array::from_fn(|l| thread(l) % bx),
                std::array::from_fn(|l| thread(l) / bx % by),
                std::array::from_fn(|l| thread(l) / bx / by),
            ];
            Warp::new(w, lanes(threads, w), tid, grid.code)
        });
        let bytes = grid.shared_room();
        let cta = Cta {
            id: grid.place(index),
            index,
            shared: Vec::new(),
            shared_bytes: bytes,
            barriers: [Barrier::default(); 16],
            alive: threads,
            races: grid.opts.sanitize.then(|| Races::new(bytes, warps.len())),
            copies: Copies::default(),
            known: 0,
            loads: 0,
            hold: 0,
        };
        let mut block = Self { warps: warps.collect(), cta, next: 0 };
        block.cta.shared = vec![0; bytes.div_ceil(4) as usize];
        block.fill_shared(grid);
        block
    }

    /// Fills shared memory, whose content is undefined when a block begins. The part that the
    /// system reserves after it is 0.
    fn fill_shared(&mut self, grid: &Grid<'_>) {
        let left = LEFT[((grid.id + self.cta.index) % LEFT.len() as u64) as usize];
        let own = grid.shared_bytes.div_ceil(4) as usize;
        let (own, reserved) = self.cta.shared.split_at_mut(own);
        own.fill(left);
        reserved.fill(0);
    }

    /// Sets the number of the plain load from global memory after which the block lets other blocks
    /// run. 0 means never.
    pub(super) fn hold(&mut self, hold: u32) {
        self.cta.hold = hold;
    }

    /// Returns the number of plain loads from global memory that the block has executed.
    pub(super) fn loads(&self) -> u32 {
        self.cta.loads
    }

    /// Returns the memory that the calls of the block's threads use.
    pub(super) fn stack(&self) -> Stack {
        self.warps.iter().map(|w| w.stack).sum()
    }

    /// Returns the number of pages of the block's race records on global memory.
    pub(super) fn pages(&self) -> usize {
        self.cta.races.as_ref().map_or(0, Races::pages)
    }

    /// Reuses the memory of a completed block for block `index`.
    pub(super) fn renew(&mut self, grid: &Grid<'_>, index: u64) {
        let threads = grid.cfg.block.iter().product();
        let warps = self.warps.len();
        let cta = &mut self.cta;
        (cta.id, cta.index, cta.alive) = (grid.place(index), index, threads);
        cta.barriers = [Barrier::default(); 16];
        grid.room.give_back(cta.races.take().map_or(0, |races| races.pages()));
        cta.races = grid.opts.sanitize.then(|| Races::new(cta.shared_bytes, warps));
        cta.copies.clear();
        (cta.known, cta.loads, cta.hold) = (0, 0, 0);
        self.fill_shared(grid);
        for (w, warp) in self.warps.iter_mut().enumerate() {
            warp.begin(lanes(threads, w as u32), grid.code);
        }
        self.next = 0;
    }

    /// Runs until the block ends, waits for another block or has used up its time slice.
    pub(super) fn run(&mut self, worker: &mut Worker<'_>) -> Result<Slice, Box<LaunchFault>> {
        let end = worker.executed + SLICE;
        let mut idle = 0;
        let mut spinning = false;
        loop {
            if self.warps.iter().all(|w| w.alive == 0) {
                return Ok(Slice::Done);
            }
            let n = self.warps.len();
            let warp = &mut self.warps[self.next];
            self.next = (self.next + 1) % n;
            let before = worker.executed;
            let turn = if warp.alive == 0 { Turn::Done } else { run(worker, &mut self.cta, warp)? };
            worker.grid.check_time()?;
            if turn == Turn::Held {
                self.next = (self.next + n - 1) % n;
                return Ok(Slice::Held);
            }
            match turn {
                Turn::Expired | Turn::Held => (idle, spinning) = (0, false),
                Turn::Spinning => {
                    spinning = true;
                    idle += 1;
                }
                Turn::Blocked | Turn::Done if worker.executed == before => idle += 1,
                Turn::Blocked | Turn::Done => (idle, spinning) = (0, false),
            }
            if idle >= 2 * n {
                if spinning {
                    // Time passes, so copies complete even if no instruction waits for them.
                    settle(&mut self.cta);
                    return Ok(Slice::Spinning);
                }
                return Err(self.deadlock(worker.grid));
            }
            if worker.executed >= end {
                return Ok(Slice::Expired);
            }
        }
    }

    /// Returns the fault for a block in which every thread waits at a barrier for threads that
    /// cannot arrive.
    fn deadlock(&self, grid: &Grid<'_>) -> Box<LaunchFault> {
        let mut all = self.warps.iter().flat_map(|w| w.groups.iter().map(move |g| (w, g)));
        let at = all.find(|(_, g)| matches!(g.state, State::Barrier { .. }));
        let Some((warp, group)) = at else {
            return fault(FaultKind::DivergentBarrierDeadlock, "no warp can continue".into());
        };
        let who = Where::new(grid, self.cta.id, warp, group.mask.trailing_zeros(), group.pc);
        let id = if let State::Barrier { id, .. } = group.state { id } else { 0 };
        let b = &self.cta.barriers[id as usize];
        let want = if b.expected == 0 { self.cta.alive } else { b.expected };
        let message = format!(
            "deadlock: barrier {id} has {} of {want} threads, and no other thread can arrive; \
             waiting {}{}",
            b.arrived,
            who.who(),
            who.place()
        );
        found(
            FaultKind::DivergentBarrierDeadlock,
            Finding {
                check: "divergent_barrier",
                kernel: grid.kernel.to_string(),
                block: who.block,
                thread: who.thread,
                address: 0,
                bytes: 0,
                source: who.source,
                message,
                count: 1,
            },
        )
    }
}
