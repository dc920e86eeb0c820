//! Memory traffic: sectors, lines and bank conflicts of an access.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Counts;
use crate::memory::Table;

/// Size of a sector of global memory, bytes.
const SECTOR: u64 = 32;

/// One bit for each sector of a region, allocated on first use.
type Bits = OnceLock<Box<[AtomicU64]>>;

/// The sectors of memory that a launch has read and written.
pub(crate) struct Traffic {
    enabled: bool,
    /// For each region: its start and size, and the sectors that were read and written.
    regions: Vec<(u64, u64, Bits, Bits)>,
}

fn mark(bits: &Bits, bytes: u64, sector: u64) {
    let words = bytes.div_ceil(SECTOR * 64) + 1;
    let bits = bits.get_or_init(|| (0..words).map(|_| AtomicU64::new(0)).collect());
    let Some(word) = bits.get((sector / 64) as usize) else {
        return;
    };
    let bit = 1 << (sector % 64);
    if word.load(Relaxed) & bit == 0 {
        word.fetch_or(bit, Relaxed);
    }
}

fn marked(bits: &Bits) -> u64 {
    let words = bits.get().map_or(&[][..], |b| b);
    words.iter().map(|w| u64::from(w.load(Relaxed).count_ones())).sum()
}

impl Traffic {
    pub(crate) fn new(enabled: bool, table: &Table) -> Self {
        let region = |r: &std::sync::Arc<crate::memory::Region>| {
            (r.base, r.bytes, OnceLock::new(), OnceLock::new())
        };
        let regions = if enabled { table.regions.iter().map(region).collect() } else { Vec::new() };
        Self { enabled, regions }
    }

    pub(crate) fn enabled(&self) -> bool {
        self.enabled
    }

    /// Records the sectors at the addresses of an access.
    pub(crate) fn touch(&self, addresses: &[u64], write: bool) {
        let mut last: Option<&(u64, u64, Bits, Bits)> = None;
        for va in addresses {
            let within = |r: &(u64, u64, Bits, Bits)| va.wrapping_sub(r.0) < r.1;
            if !last.is_some_and(within) {
                let after = self.regions.partition_point(|r| r.0 <= *va);
                last = after.checked_sub(1).map(|i| &self.regions[i]).filter(|r| within(r));
            }
            if let Some((base, bytes, reads, writes)) = last {
                // Sectors are counted from a multiple of the sector size. Regions of host memory
                // may begin at any address.
                let sector = (va - (base & !(SECTOR - 1))) / SECTOR;
                mark(if write { writes } else { reads }, *bytes, sector);
            }
        }
    }
}

/// Returns the number of distinct values of `address >> shift`.
pub(crate) fn distinct(addresses: &[u64], shift: u32) -> u64 {
    let mut keys = [0u64; 32];
    let keys = &mut keys[..addresses.len()];
    let mut sorted = true;
    for (i, va) in addresses.iter().enumerate() {
        keys[i] = va >> shift;
        sorted &= i == 0 || keys[i - 1] <= keys[i];
    }
    if !sorted {
        keys.sort_unstable();
    }
    keys.chunk_by(|a, b| a == b).count() as u64
}

/// Returns the number of sector accesses of an atomic. Threads with the same address access it one after
/// another, so a sector is accessed as often as its most frequent address.
pub(crate) fn turns(addresses: &[u64]) -> u64 {
    let mut sorted = [0u64; 32];
    let sorted = &mut sorted[..addresses.len()];
    sorted.copy_from_slice(addresses);
    sorted.sort_unstable();
    let sectors = sorted.chunk_by(|a, b| a / SECTOR == b / SECTOR);
    let most = |sector: &[u64]| sector.chunk_by(|a, b| a == b).map(<[u64]>::len).max();
    sectors.filter_map(most).sum::<usize>() as u64
}

/// Returns the part of a wide access that each lane belongs to, and the number of parts.
///
/// An 8-byte access is split into halves of the warp, a 16-byte access into quarters. Two adjacent
/// parts are merged in two cases: each lane has the address of lane `lane ^ 1`, or each lane has
/// the address of lane `lane ^ 2`. Inactive lanes match any address. The merged part accesses at
/// most 128 bytes.
fn parts(offsets: &[(u32, u64)], bytes: u64) -> ([u32; 32], u32) {
    let parts = (bytes / 4).clamp(1, 4) as u32;
    let lanes = 32 / parts;
    let mut of = [0u32; 32];
    of.iter_mut().zip(0..).for_each(|(part, lane)| *part = lane / lanes);
    if parts == 1 {
        return (of, 1);
    }
    let mut at = [None; 32];
    offsets.iter().for_each(|(lane, offset)| at[*lane as usize] = Some(*offset));
    let lanes = 2 * lanes as usize;
    for first in (0..32).step_by(lanes) {
        let same = |distance: usize| {
            (first..first + lanes).all(|lane| {
                let (own, other) = (at[lane], at[lane ^ distance]);
                own.is_none() || other.is_none() || own == other
            })
        };
        if same(1) || same(2) {
            let part = of[first];
            of[first..first + lanes].fill(part);
        }
    }
    (of, parts)
}

/// Returns the number of passes of an access to shared memory, and the number of passes that its
/// width alone requires.
///
/// A wide access is executed part by part. In each pass, each of the 32 banks of 4 bytes delivers
/// one word, to any number of lanes.
pub(crate) fn wavefronts(offsets: &[(u32, u64)], bytes: u64) -> (u64, u64) {
    let (of, parts) = parts(offsets, bytes);
    let (mut passes, mut least) = (0, 0);
    for part in 0..parts {
        // In most accesses every bank has at most one word. This test finds these without sorting.
        let mut banks = [u64::MAX; 32];
        let own = offsets.iter().filter(|(lane, _)| of[*lane as usize] == part);
        let single = own.clone().all(|(_, at)| {
            (0..(bytes / 4).max(1)).all(|w| {
                let word = at / 4 + w;
                let slot = &mut banks[(word % 32) as usize];
                let good = *slot == u64::MAX || *slot == word;
                *slot = word;
                good
            })
        });
        if single {
            let some = u64::from(own.clone().next().is_some());
            (passes, least) = (passes + some, least + some);
            continue;
        }
        let mut words = [0u64; 128];
        let mut n = 0;
        for (_, at) in own {
            for w in 0..(bytes / 4).max(1) {
                words[n] = at / 4 + w;
                n += 1;
            }
        }
        let words = &mut words[..n];
        words.sort_unstable();
        let mut per_bank = [0u64; 32];
        for same in words.chunk_by(|a, b| a == b) {
            per_bank[(same[0] % 32) as usize] += 1;
        }
        let most = per_bank.into_iter().max().unwrap_or(0);
        passes += most;
        least += u64::from(most != 0);
    }
    (passes, least)
}

impl Counts {
    /// Adds the counts that are known only at the end of the launch.
    pub(crate) fn finish(&mut self, traffic: &Traffic) {
        self.ideal_read_bytes = traffic.regions.iter().map(|r| marked(&r.2)).sum::<u64>() * SECTOR;
        self.ideal_write_bytes = traffic.regions.iter().map(|r| marked(&r.3)).sum::<u64>() * SECTOR;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_and_conflicts() {
        let contiguous: Vec<u64> = (0..32).map(|l| 0x1000 + 4 * l).collect();
        assert_eq!(distinct(&contiguous, 5), 4);
        assert_eq!(distinct(&contiguous, 7), 1);
        let strided: Vec<u64> = (0..32).rev().map(|l| 0x1000 + 128 * l).collect();
        assert_eq!(distinct(&strided, 5), 32);
        let at = |f: &dyn Fn(u64) -> u64| (0..32).map(|l| (l as u32, f(l))).collect::<Vec<_>>();
        assert_eq!(wavefronts(&at(&|l| 4 * l), 4), (1, 1));
        assert_eq!(wavefronts(&at(&|_| 64), 4), (1, 1));
        assert_eq!(wavefronts(&at(&|l| 8 * l), 4), (2, 1));
        assert_eq!(wavefronts(&at(&|l| 128 * l), 4), (32, 1));
        assert_eq!(wavefronts(&at(&|l| 8 * l), 8), (2, 2));
        assert_eq!(wavefronts(&at(&|l| 16 * l), 16), (4, 4));
        assert_eq!(wavefronts(&at(&|l| l), 1), (1, 1));
    }

    #[test]
    fn lanes_that_share_wide_words_take_fewer_passes() {
        let at = |f: &dyn Fn(u64) -> u64| (0..32).map(|l| (l as u32, f(l))).collect::<Vec<_>>();
        assert_eq!(wavefronts(&at(&|_| 64), 16), (2, 2));
        assert_eq!(wavefronts(&at(&|l| l / 16 * 64), 16), (2, 2));
        assert_eq!(wavefronts(&at(&|_| 64), 8), (1, 1));
        assert_eq!(wavefronts(&at(&|l| l / 2 * 8), 8), (1, 1));
        assert_eq!(wavefronts(&at(&|l| l % 2 * 8), 8), (1, 1));
        // The lanes that share addresses are too far apart.
        assert_eq!(wavefronts(&at(&|l| l % 4 * 8), 8), (2, 2));
        assert_eq!(wavefronts(&at(&|l| l / 2 * 256), 8), (16, 1));
        let even: Vec<_> = (0..32).step_by(2).map(|l| (l as u32, 8 * l)).collect();
        assert_eq!(wavefronts(&even, 8), (2, 1));
    }

    #[test]
    fn atomics_on_one_address_take_turns() {
        assert_eq!(turns(&[0x1000; 32]), 32);
        let row: Vec<u64> = (0..32).map(|l| 0x1000 + 4 * l).collect();
        assert_eq!(turns(&row), 4);
        // Two sectors: three accesses to one, two to the other.
        assert_eq!(turns(&[0x1020, 0x1000, 0x1004, 0x1000, 0x1020, 0x1004, 0x1000]), 5);
        assert_eq!(turns(&[]), 0);
    }
}
