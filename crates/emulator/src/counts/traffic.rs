//! Memory traffic: sectors, lines and bank conflicts of an access.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Counts;
use crate::memory::Table;

/// Bytes of a sector.
const SECTOR: u64 = 32;

/// A bit for each sector of a region.
type Bits = OnceLock<Box<[AtomicU64]>>;

/// Which sectors of memory a launch has touched.
pub(crate) struct Traffic {
    enabled: bool,
    /// Begin and size of each region, and its sectors read and written.
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

    /// Notes the sectors at the addresses of an access.
    pub(crate) fn touch(&self, addresses: &[u64], write: bool) {
        let mut last: Option<&(u64, u64, Bits, Bits)> = None;
        for va in addresses {
            let within = |r: &(u64, u64, Bits, Bits)| va.wrapping_sub(r.0) < r.1;
            if !last.is_some_and(within) {
                let after = self.regions.partition_point(|r| r.0 <= *va);
                last = after.checked_sub(1).map(|i| &self.regions[i]).filter(|r| within(r));
            }
            if let Some((base, bytes, reads, writes)) = last {
                // Regions begin at multiples of the sector, or are the host's: count from there.
                let sector = (va - (base & !(SECTOR - 1))) / SECTOR;
                mark(if write { writes } else { reads }, *bytes, sector);
            }
        }
    }
}

/// Different values of `address >> shift`.
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

/// Passes that an access to shared memory takes, and those that its width alone takes.
///
/// Wide accesses are made by parts of the warp: halves for 8 bytes, quarters for 16. In a part,
/// each of the 32 banks of 4 bytes gives one word a pass, to as many lanes as want it.
pub(crate) fn wavefronts(offsets: &[(u32, u64)], bytes: u64) -> (u64, u64) {
    let parts = (bytes / 4).clamp(1, 4) as u32;
    let lanes = 32 / parts;
    let (mut passes, mut least) = (0, 0);
    for part in 0..parts {
        // One word or none in every bank: nearly always, and found without sorting.
        let mut banks = [u64::MAX; 32];
        let own = offsets.iter().filter(|(lane, _)| lane / lanes == part);
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
    /// Adds what only the whole launch knows.
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
}
