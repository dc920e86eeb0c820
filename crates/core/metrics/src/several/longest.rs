//! Finds the kernels with the longest total time among any number of kernels. The main type is
//! [`Totals`].

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

/// Maximum number of kernels whose total times are kept. A kernel takes some 50 bytes.
const MAX_TOTALS: usize = 1 << 18;

/// Total times of kernels, by the hashes of their names, which may be very long.
pub(super) struct Totals {
    hasher: RandomState,
    by_name: HashMap<u64, Total>,
    most: usize,
    launches: u64,
    /// Whether all kernels are included.
    pub(super) complete: bool,
}

#[derive(Clone, Copy)]
struct Total {
    seconds: f64,
    /// Number of the first launch.
    first: u64,
}

impl Totals {
    pub(super) fn new() -> Self {
        Self::bounded(MAX_TOTALS)
    }

    fn bounded(most: usize) -> Self {
        let (hasher, by_name) = (RandomState::new(), HashMap::new());
        Self { hasher, by_name, most, launches: 0, complete: true }
    }

    /// Adds the duration of a launch, seconds. With too many names, those of the shortest are dropped.
    pub(super) fn add(&mut self, kernel: &str, seconds: f64) {
        let name = self.hash(kernel);
        if self.by_name.len() == self.most && !self.by_name.contains_key(&name) {
            self.complete = false;
            self.by_name = self.sorted().into_iter().take(self.most / 2).collect();
        }
        let first = self.launches;
        self.by_name.entry(name).or_insert(Total { seconds: 0.0, first }).seconds += seconds;
        self.launches += 1;
    }

    /// Returns the number of kernels. If not all are included, there are more.
    pub(super) fn kernels(&self) -> usize {
        if self.complete { self.by_name.len() } else { self.most }
    }

    /// Returns the hashes of the kernels with the longest total times. Of equal times the kernel
    /// that was launched first is chosen.
    pub(super) fn longest(&self, count: usize) -> HashSet<u64> {
        self.sorted().into_iter().take(count).map(|(name, _)| name).collect()
    }

    pub(super) fn hash(&self, kernel: &str) -> u64 {
        self.hasher.hash_one(kernel)
    }

    fn sorted(&self) -> Vec<(u64, Total)> {
        let mut all: Vec<(u64, Total)> =
            self.by_name.iter().map(|(name, total)| (*name, *total)).collect();
        all.sort_unstable_by(|(_, a), (_, b)| {
            b.seconds.total_cmp(&a.seconds).then(a.first.cmp(&b.first))
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(totals: &Totals, count: usize, names: &[&str]) -> Vec<bool> {
        let longest = totals.longest(count);
        assert!(longest.len() <= count);
        names.iter().map(|name| longest.contains(&totals.hash(name))).collect()
    }

    #[test]
    fn the_longest_total_is_chosen_wherever_its_launches_are() {
        let mut totals = Totals::bounded(100);
        for index in 0..50 {
            totals.add("often", 0.5);
            totals.add(&format!("k{index}"), 1.0);
        }
        totals.add("late", 9.0);
        assert_eq!(chosen(&totals, 2, &["often", "late", "k0"]), [true, true, false]);
        assert_eq!(chosen(&totals, 3, &["k0", "k1"]), [true, false], "the first of equals");
        assert_eq!((totals.kernels(), totals.complete), (52, true));
    }

    #[test]
    fn more_kernels_than_the_bound_displace_the_shortest() {
        let mut totals = Totals::bounded(100);
        totals.add("early", 9.0);
        for index in 0..1_000 {
            totals.add(&format!("k{index}"), 1.0);
            assert!(totals.by_name.len() <= 100);
        }
        totals.add("late", 8.0);
        assert_eq!(chosen(&totals, 2, &["early", "late"]), [true, true]);
        assert_eq!((totals.kernels(), totals.complete), (100, false));
    }
}
