//! Counts the memory traffic of an access.

use super::access::{Kind, Target};
use crate::counts::{Accesses, distinct, turns, wavefronts};
use crate::exec::state::Worker;
use crate::ir::Access;
use crate::ptx::Space;

/// Size of a cache sector and of a cache line, bytes.
const SECTOR: u64 = 32;
const LINE: u64 = 128;

/// The addresses of a warp that accesses consecutive elements, which is the usual case.
struct Row {
    sectors: u64,
    lines: u64,
    /// One address in each sector.
    list: [u64; 32],
}

impl Row {
    fn addresses(&self) -> &[u64] {
        &self.list[..self.sectors as usize]
    }
}

/// Returns the row for addresses of consecutive elements of `bytes` bytes. Returns `None` if the
/// elements are not consecutive.
fn row(addresses: &[u64], bytes: u64) -> Option<Row> {
    let (first, last) = (*addresses.first()?, *addresses.last()?);
    let aligned = first % bytes.max(1) == 0;
    if bytes > SECTOR || !aligned || addresses.windows(2).any(|w| w[0].wrapping_add(bytes) != w[1])
    {
        return None;
    }
    let parts = |size: u64| last / size - first / size + 1;
    let mut row = Row { sectors: parts(SECTOR), lines: parts(LINE), list: [last; 32] };
    let inner = row.sectors as usize - 1;
    row.list[..inner].iter_mut().enumerate().for_each(|(n, va)| *va = first + SECTOR * n as u64);
    Some(row)
}

impl Worker<'_> {
    /// Counts an access of the lanes in a mask, if counting is on.
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

    /// Adds to the counts of the instruction that runs, if instructions are counted separately.
    #[inline]
    fn of_instruction(&mut self, add: impl FnOnce(&mut Accesses)) {
        if let Some(own) = self.accesses.get_mut(self.pc as usize) {
            add(own);
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
        let mut list = *a;
        let mut n = 32;
        if mask != u32::MAX {
            n = 0;
            for l in (0..32).filter(|l| mask >> l & 1 == 1) {
                list[n] = a[l];
                n += 1;
            }
        }
        let list = &list[..n];
        let c = &mut self.counts;
        match target {
            Target::Global if access.space == Space::Const => c.constant_requests += 1,
            Target::Global => self.count_global(list, bytes, kind),
            Target::Shared if matches!(kind, Kind::Atomic | Kind::Reduction) => {
                c.shared_atomic_requests += 1;
                self.of_instruction(|own| own.shared_requests += 1);
            }
            Target::Shared => {
                let (low, high, _) = (self.grid.span)(a);
                // An access within one word of every bank has no conflict, in any order.
                let (passes, least) = if bytes <= 4 && high - (low & !3) + bytes <= 128 {
                    (1, 1)
                } else {
                    let mut pairs = [(0u32, 0u64); 32];
                    let lanes = (0..32u32).filter(|l| mask >> l & 1 == 1);
                    lanes.enumerate().for_each(|(i, l)| pairs[i] = (l, a[l as usize]));
                    wavefronts(&pairs[..n], bytes)
                };
                if kind == Kind::Read {
                    c.shared_load_requests += 1;
                    c.shared_load_wavefronts += passes;
                    c.shared_load_conflicts += passes - least;
                } else {
                    c.shared_store_requests += 1;
                    c.shared_store_wavefronts += passes;
                    c.shared_store_conflicts += passes - least;
                }
                self.of_instruction(|own| {
                    own.shared_requests += 1;
                    own.shared_wavefronts += passes;
                    own.shared_conflicts += passes - least;
                });
            }
            // A GPU passes the arguments of calls in registers.
            Target::Local if access.space == Space::Param => {}
            Target::Local => {
                c.local_bytes += bytes * n as u64;
                // The words of a thread are not adjacent: each is followed by the same word of the
                // next thread.
                let words = bytes.div_ceil(4);
                if kind == Kind::Read {
                    c.local_load_requests += words;
                } else {
                    c.local_store_requests += words;
                }
                self.of_instruction(|own| own.local_requests += words);
            }
            Target::Param => {}
        }
    }

    fn count_global(&mut self, list: &[u64], bytes: u64, kind: Kind) {
        let c = &mut self.counts;
        let row = row(list, bytes);
        let (sectors, lines) = match &row {
            Some(row) => (row.sectors, row.lines),
            None => (distinct(list, 5), distinct(list, 7)),
        };
        let touched = row.as_ref().map_or(list, Row::addresses);
        let (threads, total) = (list.len() as u64, bytes * list.len() as u64);
        // Threads that share an address may need fewer sectors than that.
        let ideal = sectors.min(total.div_ceil(SECTOR));
        let atomic = matches!(kind, Kind::Atomic | Kind::Reduction);
        let turns = if atomic && row.is_none() { turns(list) } else { sectors };
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
                c.global_atomic_operations += threads;
                c.global_atomic_sectors += turns;
            }
            Kind::Reduction => {
                c.global_reduction_requests += 1;
                c.global_reduction_operations += threads;
                c.global_reduction_sectors += turns;
            }
        }
        self.grid.traffic.touch(touched, kind != Kind::Read);
        if atomic {
            c.global_atomic_touched_sectors += sectors;
            c.global_atomic_ideal_sectors += ideal;
            self.grid.traffic.touch(touched, false);
        }
        self.of_instruction(|own| {
            own.global_requests += 1;
            own.global_sectors += sectors;
            own.global_ideal_sectors += ideal;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_as_any_other_accesses() {
        for bytes in [1, 2, 4, 8, 16, 32] {
            for count in [1, 2, 31, 32] {
                for first in [0x1000, 0x1000 + bytes, 0x1060, 0x1080 - bytes] {
                    let list: Vec<u64> = (0..count).map(|l| first + bytes * l).collect();
                    let row = row(&list, bytes).unwrap();
                    assert_eq!((row.sectors, row.lines), (distinct(&list, 5), distinct(&list, 7)));
                    let sectors = |list: &[u64]| {
                        let mut keys: Vec<u64> = list.iter().map(|va| va >> 5).collect();
                        keys.dedup();
                        keys
                    };
                    assert_eq!(sectors(row.addresses()), sectors(&list));
                    assert!(
                        row.addresses()
                            .iter()
                            .all(|va| (first..=list[list.len() - 1]).contains(va))
                    );
                }
            }
        }
        assert!(row(&[0, 4, 12], 4).is_none() && row(&[4, 4], 4).is_none());
        assert!(row(&[], 4).is_none());
    }
}
