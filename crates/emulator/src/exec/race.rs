//! Races on shared memory: accesses of different warps to one byte, at least one a write, with no
//! barrier of the block between them.
//!
//! Lanes of one warp are not compared: what orders them (`__syncwarp`, shuffles, convergence) is
//! not recorded. Atomics do not race with each other.

use super::memory::Kind;

/// The last accesses to one byte: thread + 1 (0 for none) and barrier epoch.
#[derive(Clone, Copy, Default)]
struct Last {
    write: (u32, u32),
    atomic: bool,
    read: (u32, u32),
    /// Another reader of the same epoch, of another warp than `read`.
    second: (u32, u32),
}

/// The shared memory of one block.
pub(super) struct Races {
    bytes: Vec<Last>,
}

impl Races {
    pub(super) fn new(bytes: u32) -> Self {
        Self { bytes: vec![Last::default(); bytes as usize] }
    }

    /// Notes an access; if it races, the other thread and whether that one wrote.
    pub(super) fn access(
        &mut self,
        at: u64,
        len: u32,
        warp: u32,
        lane: u32,
        epoch: u32,
        kind: Kind,
    ) -> Option<(u32, bool)> {
        let me = warp * 32 + lane + 1;
        let other =
            |(thread, when): (u32, u32)| thread != 0 && when == epoch && (thread - 1) / 32 != warp;
        let from = at as usize;
        let mut hit = None;
        for last in self.bytes.get_mut(from..from + len as usize)? {
            let both_atomic = kind == Kind::Atomic && last.atomic;
            if other(last.write) && !both_atomic {
                hit = hit.or(Some((last.write.0 - 1, true)));
            }
            if kind == Kind::Read {
                if last.read.1 == epoch && other(last.read) {
                    last.second = last.read;
                }
                last.read = (me, epoch);
                continue;
            }
            if let Some(r) = [last.read, last.second].into_iter().find(|r| other(*r)) {
                hit = hit.or(Some((r.0 - 1, false)));
            }
            last.write = (me, epoch);
            last.atomic = kind == Kind::Atomic;
        }
        hit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unordered_conflicts_of_different_warps() {
        let mut r = Races::new(64);
        assert_eq!(r.access(0, 4, 0, 3, 0, Kind::Write), None);
        assert_eq!(r.access(0, 4, 0, 4, 0, Kind::Read), None);
        assert_eq!(r.access(2, 4, 1, 0, 0, Kind::Read), Some((3, true)));
        assert_eq!(r.access(0, 4, 1, 0, 1, Kind::Read), None);
        assert_eq!(r.access(0, 4, 2, 1, 1, Kind::Read), None);
        assert_eq!(r.access(0, 4, 2, 0, 1, Kind::Write), Some((32, false)));
        assert_eq!(r.access(8, 4, 2, 0, 1, Kind::Atomic), None);
        assert_eq!(r.access(8, 4, 3, 0, 1, Kind::Atomic), None);
        assert_eq!(r.access(8, 4, 1, 0, 1, Kind::Read), Some((96, true)));
    }
}
