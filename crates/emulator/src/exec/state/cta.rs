//! State that the warps of a block share: shared memory and barriers.

use super::clocks::Object;
use super::copies::Copies;
use super::race::Races;

/// One of the 16 barriers of a block.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::exec) struct Barrier {
    pub(in crate::exec) arrived: u32,
    /// Number of threads that the barrier waits for, if an instruction sets it; 0 means all threads
    /// of the block.
    pub(in crate::exec) expected: u32,
    pub(in crate::exec) generation: u32,
    popc: u32,
    all: bool,
    any: bool,
    /// Results of the completed generation: the number of true predicates, whether all were true,
    /// and whether any was.
    pub(in crate::exec) result: (u32, bool, bool),
}

/// State that the warps of a block share.
pub(in crate::exec) struct Cta {
    pub(in crate::exec) id: [u32; 3],
    pub(in crate::exec) index: u64,
    /// Shared memory, in words of 4 bytes.
    pub(in crate::exec) shared: Vec<u32>,
    pub(in crate::exec) shared_bytes: u32,
    pub(in crate::exec) barriers: [Barrier; 16],
    /// Number of threads of the block that have not exited.
    pub(in crate::exec) alive: u32,
    /// Last accesses to shared and global memory, if races are detected.
    pub(in crate::exec) races: Option<Races>,
    /// Pending copies to shared memory.
    pub(in crate::exec) copies: Copies,
    /// Time on the launch's clock. Accesses of other blocks before it are ordered before this
    /// block's. Used only if races between blocks are detected.
    pub(in crate::exec) known: u32,
    /// Number of plain loads from global memory so far, counted once per warp.
    pub(in crate::exec) loads: u32,
    /// Number of the plain load after which the block lets other blocks run once; 0 means never.
    pub(in crate::exec) hold: u32,
}

/// Value of `hold` in a block that must let other blocks run now.
pub(in crate::exec) const HELD: u32 = u32::MAX;

impl Cta {
    /// Counts a plain load from global memory.
    #[inline]
    pub(in crate::exec) fn loaded(&mut self) {
        self.loads = self.loads.saturating_add(1);
        if self.loads == self.hold {
            self.hold = HELD;
        }
    }

    /// Returns whether the block must let other blocks run now, and clears that request.
    pub(in crate::exec) fn held(&mut self) -> bool {
        let held = self.hold == HELD;
        self.hold = if held { 0 } else { self.hold };
        held
    }

    /// Records that `threads` threads arrive at barrier `id`. Of the `lanes` lanes that execute it,
    /// `yes` have a true predicate.
    pub(in crate::exec) fn arrive(
        &mut self,
        id: u8,
        threads: u32,
        lanes: u32,
        yes: u32,
        expected: u32,
    ) {
        let b = &mut self.barriers[id as usize];
        if b.arrived == 0 {
            (b.popc, b.all, b.any) = (0, true, false);
        }
        b.arrived += threads;
        b.expected = expected;
        b.popc += yes;
        b.all &= yes == lanes;
        b.any |= yes != 0;
        self.complete(id);
    }

    fn complete(&mut self, id: u8) {
        let b = &mut self.barriers[id as usize];
        let want = if b.expected == 0 { self.alive } else { b.expected };
        if b.arrived != 0 && b.arrived >= want {
            b.arrived = 0;
            b.generation = b.generation.wrapping_add(1);
            b.result = (b.popc, b.all, b.any);
            if let Some(races) = &mut self.races {
                races.publish(Object::Barrier(id));
            }
        }
    }

    /// Records that `threads` threads of a warp exit. Barriers do not wait for them.
    pub(in crate::exec) fn exit(&mut self, warp: u32, threads: u32) {
        self.alive -= threads;
        if let Some(races) = &mut self.races {
            // Waiting warps may continue because these threads have ended.
            (0..16).for_each(|id| races.release(Object::Barrier(id), warp));
        }
        (0..16).for_each(|id| self.complete(id));
    }
}
