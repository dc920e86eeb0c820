//! Counts the traffic of an access.

use super::grid::Worker;
use super::memory::{Kind, Target};
use crate::counts::{distinct, wavefronts};
use crate::ir::Access;
use crate::ptx::Space;

impl Worker<'_> {
    /// Notes an access of the lanes of a mask, if that is wanted.
    #[inline]
    pub(super) fn count_access(
        &mut self,
        target: &Target,
        access: Access,
        a: &[u64; 32],
        mask: u32,
        kind: Kind,
    ) {
        if self.grid.traffic.enabled() && mask != 0 {
            self.count_traffic(target, access, a, mask, kind);
        }
    }

    fn count_traffic(
        &mut self,
        target: &Target,
        access: Access,
        a: &[u64; 32],
        mask: u32,
        kind: Kind,
    ) {
        let bytes = u64::from(access.width) * u64::from(access.count);
        let mut list = [0u64; 32];
        let mut n = 0;
        for l in (0..32).filter(|l| mask >> l & 1 == 1) {
            list[n] = a[l];
            n += 1;
        }
        let list = &list[..n];
        let c = &mut self.counts;
        match target {
            Target::Global if access.space == Space::Const => c.constant_requests += 1,
            Target::Global => {
                let sectors = distinct(list, 5);
                let (total, lines) = (bytes * n as u64, distinct(list, 7));
                // Threads may share an address, which is better still.
                let ideal = sectors.min(total.div_ceil(32));
                match kind {
                    Kind::Read => {
                        c.global_load_requests += 1;
                        c.global_load_sectors += sectors;
                        c.global_load_ideal_sectors += ideal;
                        c.global_load_bytes += total;
                        c.global_load_lines += lines;
                    }
                    Kind::Write => {
                        c.global_store_requests += 1;
                        c.global_store_sectors += sectors;
                        c.global_store_ideal_sectors += ideal;
                        c.global_store_bytes += total;
                        c.global_store_lines += lines;
                    }
                    Kind::Atomic => {
                        c.global_atomic_requests += 1;
                        c.global_atomic_operations += n as u64;
                        c.global_atomic_sectors += sectors;
                    }
                    Kind::Reduction => {
                        c.global_reduction_requests += 1;
                        c.global_reduction_operations += n as u64;
                        c.global_reduction_sectors += sectors;
                    }
                }
                self.grid.traffic.touch(list, kind != Kind::Read);
                if matches!(kind, Kind::Atomic | Kind::Reduction) {
                    self.grid.traffic.touch(list, false);
                }
            }
            Target::Shared if matches!(kind, Kind::Atomic | Kind::Reduction) => {
                c.shared_atomic_requests += 1;
            }
            Target::Shared => {
                let mut pairs = [(0u32, 0u64); 32];
                let lanes = (0..32u32).filter(|l| mask >> l & 1 == 1);
                lanes.enumerate().for_each(|(i, l)| pairs[i] = (l, a[l as usize]));
                let (passes, least) = wavefronts(&pairs[..n], bytes);
                if kind == Kind::Read {
                    c.shared_load_requests += 1;
                    c.shared_load_wavefronts += passes;
                    c.shared_load_conflicts += passes - least;
                } else {
                    c.shared_store_requests += 1;
                    c.shared_store_wavefronts += passes;
                    c.shared_store_conflicts += passes - least;
                }
            }
            // Arguments of calls are in registers on a GPU.
            Target::Local if access.space == Space::Param => {}
            Target::Local => {
                c.local_bytes += bytes * n as u64;
                if kind == Kind::Read {
                    c.local_load_requests += 1;
                } else {
                    c.local_store_requests += 1;
                }
            }
            Target::Param => {}
        }
    }
}
