//! Comparison of kernels by exact counts, for devices without meaningful times. The main type is
//! [`Counted`].
//!
//! Two counts represent the work. *Warp instructions* are what the schedulers of a multiprocessor
//! issue, regardless of the number of active lanes; thread instructions would not show divergence.
//! *Sectors of global memory* (32 bytes each, of loads, stores, atomics and reductions) are what
//! caches and memory transfer; bytes would not show scattered accesses. Most kernels are bound by
//! one of the two counts, but the counts do not show by which. A kernel therefore does less work
//! than another only if one count is lower and the other is not higher. If one count is lower and
//! the other is higher, there is no verdict.
//!
//! Both counts are the same in every run, so a difference of one is a real difference. Neither is a
//! time.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Names of the emulator's counts of sectors of global memory.
const SECTORS: [&str; 4] = [
    "global_load_sectors",
    "global_store_sectors",
    "global_atomic_sectors",
    "global_reduction_sectors",
];

/// Names of the emulator's counts by which kernels are compared: instructions and memory accesses.
pub const COMPARED_COUNTS: [&str; 8] = [
    "warp_instructions",
    "thread_instructions",
    "global_load_sectors",
    "global_store_sectors",
    "global_atomic_operations",
    "shared_load_wavefronts",
    "shared_store_wavefronts",
    "barriers",
];

/// Exact counts of one launch, on the emulated device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counted {
    /// Number of PTX instructions that warps execute. The number of machine instructions may
    /// differ.
    pub warp_instructions: u64,
    /// Number of sectors of 32 bytes of global memory that loads, stores, atomics and reductions access.
    pub global_sectors: u64,
}

/// Verdict on a kernel's counted work, compared with the reference's. Counts say nothing about
/// times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CountedVerdict {
    /// One count is lower, and the other is not higher.
    LessWork,
    /// One count is higher, and the other is not lower.
    MoreWork,
    /// Both counts are equal.
    SameWork,
    /// One count is lower and the other is higher, so counts do not decide.
    Mixed,
}

/// Counts of a kernel, compared with the reference's. Counts say nothing about times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountedComparison {
    /// Verdict on the kernel.
    pub verdict: CountedVerdict,
    /// Warp instructions of the kernel divided by those of the reference. Absent if the reference executes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warp_instructions: Option<f64>,
    /// Sectors of global memory that the kernel accesses divided by those of the reference. Absent if the
    /// reference accesses none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global_sectors: Option<f64>,
}

/// Rank of a kernel by its counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CountedRank {
    /// Index of the kernel: 0 for the reference, from 1 for the candidates.
    pub index: u32,
    /// 1 + the number of kernels that do less work. Kernels of which neither does less work than the other may
    /// share a rank.
    pub rank: u32,
    /// Exact counts of one launch.
    pub counted: Counted,
}

impl Counted {
    /// Creates the counts from the emulator's counts for one launch. Returns `None` if one of them is missing.
    pub fn of(counts: &BTreeMap<String, u64>) -> Option<Self> {
        let warp_instructions = *counts.get("warp_instructions")?;
        let sectors = SECTORS.iter().map(|name| counts.get(*name).copied());
        // A missing count gives no result, because an incomplete sum could rank kernels
        // incorrectly.
        let global_sectors = sectors.sum::<Option<u64>>()?;
        Some(Self { warp_instructions, global_sectors })
    }

    /// Compares these counts with those of a reference.
    pub fn beside(self, reference: Counted) -> CountedComparison {
        let ratio =
            |own: u64, reference: u64| (reference > 0).then(|| own as f64 / reference as f64);
        CountedComparison {
            verdict: self.verdict(reference),
            warp_instructions: ratio(self.warp_instructions, reference.warp_instructions),
            global_sectors: ratio(self.global_sectors, reference.global_sectors),
        }
    }

    fn verdict(self, reference: Counted) -> CountedVerdict {
        use std::cmp::Ordering::{Equal, Greater, Less};
        let instructions = self.warp_instructions.cmp(&reference.warp_instructions);
        match (instructions, self.global_sectors.cmp(&reference.global_sectors)) {
            (Equal, Equal) => CountedVerdict::SameWork,
            (Less | Equal, Less | Equal) => CountedVerdict::LessWork,
            (Greater | Equal, Greater | Equal) => CountedVerdict::MoreWork,
            (Less, Greater) | (Greater, Less) => CountedVerdict::Mixed,
        }
    }
}

/// Ranks the kernels that have counts, by rank and then by index. Every kernel is compared with
/// every other, so callers should limit their number.
pub fn rank_counted(kernels: &[Option<Counted>]) -> Vec<CountedRank> {
    let counted = || kernels.iter().copied().flatten();
    let places = kernels.iter().enumerate().filter_map(|(index, kernel)| {
        let own = (*kernel)?;
        let less = |other: &Counted| other.verdict(own) == CountedVerdict::LessWork;
        let rank = 1 + counted().filter(less).count() as u32;
        Some(CountedRank { index: index as u32, rank, counted: own })
    });
    let mut places = places.collect::<Vec<_>>();
    places.sort_by_key(|place| place.rank);
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(warp_instructions: u64, global_sectors: u64) -> Counted {
        Counted { warp_instructions, global_sectors }
    }

    #[test]
    fn one_count_decides_where_the_other_does_not_object() {
        let reference = counted(100, 40);
        for (own, verdict) in [
            (counted(100, 40), CountedVerdict::SameWork),
            (counted(99, 40), CountedVerdict::LessWork),
            (counted(100, 39), CountedVerdict::LessWork),
            (counted(99, 39), CountedVerdict::LessWork),
            (counted(101, 40), CountedVerdict::MoreWork),
            (counted(100, 41), CountedVerdict::MoreWork),
            (counted(99, 41), CountedVerdict::Mixed),
            (counted(101, 39), CountedVerdict::Mixed),
        ] {
            assert_eq!(own.beside(reference).verdict, verdict, "{own:?}");
        }
        let beside = counted(150, 10).beside(reference);
        assert_eq!((beside.warp_instructions, beside.global_sectors), (Some(1.5), Some(0.25)));
        assert_eq!(counted(1, 1).beside(counted(1, 0)).global_sectors, None);
    }

    #[test]
    fn sectors_are_those_of_all_accesses_and_none_may_be_missing() {
        let mut counts = BTreeMap::from([("warp_instructions".to_owned(), 7)]);
        for (name, count) in SECTORS.into_iter().zip([1, 20, 300, 4000]) {
            assert_eq!(Counted::of(&counts), None);
            counts.insert(name.to_owned(), count);
        }
        assert_eq!(Counted::of(&counts), Some(counted(7, 4321)));
    }

    #[test]
    fn ranks_count_those_that_do_less() {
        let kernels = [
            Some(counted(100, 40)),
            None,
            Some(counted(50, 40)),
            // A trade of counts against the kernel before; neither is ahead of the other.
            Some(counted(60, 20)),
            Some(counted(100, 40)),
            Some(counted(200, 80)),
        ];
        let ranks: Vec<_> =
            rank_counted(&kernels).iter().map(|place| (place.index, place.rank)).collect();
        assert_eq!(ranks, [(2, 1), (3, 1), (0, 3), (4, 3), (5, 5)]);
    }
}
