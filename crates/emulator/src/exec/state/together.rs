//! Races on shared memory between lanes of one warp: a lane accesses bytes that another lane wrote
//! in an instruction which the first lane did not execute, and no instruction in between
//! synchronises the two.
//!
//! Lanes that executed the writing instruction together are not compared with each other: code that
//! relies on that is common, and works if the lanes do not diverge. Writes after reads are not
//! checked. Anything that orders warps counts as ordering all lanes of a warp. For instructions
//! that synchronise lanes (`bar.warp.sync`, shuffles, votes, …) it is enough that each of the two
//! lanes has executed one since the write. Therefore some races are missed.

/// Size of the record for one byte of shared memory, bytes.
pub(super) const BYTES_PER_BYTE: usize = size_of::<Wrote>();

/// The last plain write to a byte.
#[derive(Clone, Copy, Default)]
struct Wrote {
    /// Thread + 1; 0 means no write.
    thread: u32,
    /// Lanes of the thread's warp that executed the write together with it.
    lanes: u32,
    /// Number of synchronisations of the thread's warp before the write.
    epoch: u32,
}

/// Record of when the lanes of a warp synchronised with each other.
#[derive(Clone, Copy)]
struct Synced {
    epoch: u32,
    /// For each lane, the number of the last synchronisation in which the lane took part.
    last: [u32; 32],
}

/// The plain writes of a block to its shared memory.
pub(super) struct Together {
    bytes: Vec<Wrote>,
    warps: Vec<Synced>,
}

impl Together {
    pub(super) fn new(bytes: u32, warps: usize) -> Self {
        Self {
            bytes: vec![Wrote::default(); bytes as usize],
            warps: vec![Synced { epoch: 0, last: [0; 32] }; warps],
        }
    }

    /// Records that lanes of a warp synchronise with each other.
    pub(super) fn synchronise(&mut self, warp: u32, lanes: u32) {
        let Some(synced) = self.warps.get_mut(warp as usize) else { return };
        synced.epoch += 1;
        for lane in (0..32).filter(|lane| lanes >> lane & 1 == 1) {
            synced.last[lane] = synced.epoch;
        }
    }

    /// Returns the thread whose write races with a plain access to these bytes.
    pub(super) fn rival(&self, at: u64, len: u32, warp: u32, lane: u32) -> Option<u32> {
        let synced = self.warps.get(warp as usize)?;
        let bytes = self.bytes.get(at as usize..at as usize + len as usize)?;
        let races = |wrote: &&Wrote| {
            let writer = wrote.thread.wrapping_sub(1);
            let since = |lane: u32| synced.last[lane as usize % 32] > wrote.epoch;
            wrote.thread != 0
                && writer / 32 == warp
                && wrote.lanes >> lane & 1 == 0
                && !(since(writer) && since(lane))
        };
        bytes.iter().find(races).map(|wrote| wrote.thread - 1)
    }

    /// Records a plain write by a lane that `lanes` of its warp execute together.
    pub(super) fn wrote(&mut self, at: u64, len: u32, warp: u32, lane: u32, lanes: u32) {
        let Some(synced) = self.warps.get(warp as usize) else { return };
        let own = Wrote { thread: warp * 32 + lane + 1, lanes, epoch: synced.epoch };
        if let Some(bytes) = self.bytes.get_mut(at as usize..at as usize + len as usize) {
            bytes.fill(own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST_HALF: u32 = 0xffff;

    #[test]
    fn only_lanes_that_were_elsewhere_race() {
        let mut together = Together::new(64, 2);
        together.wrote(0, 4, 0, 3, FIRST_HALF);
        assert_eq!(together.rival(0, 4, 0, 15), None);
        assert_eq!(together.rival(2, 4, 0, 16), Some(3));
        assert_eq!(together.rival(4, 4, 0, 16), None);
        // Warps are compared elsewhere.
        assert_eq!(together.rival(0, 4, 1, 16), None);
    }

    #[test]
    fn a_synchronisation_of_both_lanes_orders_them() {
        let mut together = Together::new(64, 1);
        together.synchronise(0, u32::MAX);
        together.wrote(0, 4, 0, 3, FIRST_HALF);
        together.synchronise(0, FIRST_HALF);
        assert_eq!(together.rival(0, 4, 0, 16), Some(3));
        together.synchronise(0, u32::MAX);
        assert_eq!(together.rival(0, 4, 0, 16), None);
    }
}
