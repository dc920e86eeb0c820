//! Counts of single instructions in a launch on the emulated device.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of instructions whose counts are kept for one kernel.
pub const MAX_COUNTED_INSTRUCTIONS: usize = 16_384;

/// Number of counts of an instruction.
const COUNTS: usize = 10;

/// Names of the counts, and of the emulator's counts of the whole launch that each is the sum of.
const SUMS: [&[&str]; COUNTS] = [
    &["warp_instructions"],
    &["active_threads"],
    &["thread_instructions"],
    &[
        "global_load_requests",
        "global_store_requests",
        "global_atomic_requests",
        "global_reduction_requests",
    ],
    &["global_load_sectors", "global_store_sectors", "global_atomic_touched_sectors"],
    &["global_load_ideal_sectors", "global_store_ideal_sectors", "global_atomic_ideal_sectors"],
    &["shared_load_requests", "shared_store_requests", "shared_atomic_requests"],
    &["shared_load_wavefronts", "shared_store_wavefronts"],
    &["shared_load_conflicts", "shared_store_conflicts"],
    &["local_load_requests", "local_store_requests"],
];

/// Counts of instructions in one launch. Counts of memory that are absent are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstructionCounts {
    /// Instructions issued, counted once per warp.
    pub warp_instructions: u64,
    /// Active threads at the issued instructions, whether or not their guard was true. Divided by
    /// `warp_instructions`, it is the average number of the 32 threads of a warp.
    pub active_threads: u64,
    /// Instructions executed, counted once per thread whose guard was true.
    pub thread_instructions: u64,
    /// Accesses to global memory, counted once per warp.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub global_requests: u64,
    /// 32-byte sectors of global memory that the accesses touch, each counted once per access.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub global_sectors: u64,
    /// Sectors that the accesses would touch if their threads used adjacent addresses.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub global_ideal_sectors: u64,
    /// Accesses to shared memory, counted once per warp.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shared_requests: u64,
    /// Passes of loads from and stores to shared memory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shared_wavefronts: u64,
    /// Passes of loads from and stores to shared memory beyond those that the access width requires:
    /// bank conflicts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shared_conflicts: u64,
    /// Accesses to local memory, counted once per warp and word of 4 bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub local_requests: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl InstructionCounts {
    /// Returns the counts of a whole launch from the emulator's counts by name.
    pub fn of_launch(counts: &BTreeMap<String, u64>) -> Self {
        let sum = |names: &[&str]| {
            names
                .iter()
                .filter_map(|name| counts.get(*name))
                .fold(0, |sum: u64, count| sum.saturating_add(*count))
        };
        Self::from(SUMS.map(sum))
    }

    /// Adds the counts of other instructions.
    pub fn add(&mut self, other: &Self) {
        let mut sums = self.values();
        for (sum, own) in sums.iter_mut().zip(other.values()) {
            *sum = sum.saturating_add(own);
        }
        *self = Self::from(sums);
    }

    /// Returns the counts of these instructions without those of others, which are a part of them.
    pub fn without(&self, others: &Self) -> Self {
        let mut rest = self.values();
        for (left, other) in rest.iter_mut().zip(others.values()) {
            *left = left.saturating_sub(other);
        }
        Self::from(rest)
    }

    /// Returns the number of sectors beyond those that adjacent addresses would touch.
    pub fn excess_sectors(&self) -> u64 {
        self.global_sectors.saturating_sub(self.global_ideal_sectors)
    }

    /// Returns the average number of active threads; `None` if no instruction was executed.
    pub fn average_threads(&self) -> Option<f64> {
        (self.warp_instructions > 0)
            .then(|| self.active_threads as f64 / self.warp_instructions as f64)
    }

    fn values(&self) -> [u64; COUNTS] {
        [
            self.warp_instructions,
            self.active_threads,
            self.thread_instructions,
            self.global_requests,
            self.global_sectors,
            self.global_ideal_sectors,
            self.shared_requests,
            self.shared_wavefronts,
            self.shared_conflicts,
            self.local_requests,
        ]
    }
}

impl From<[u64; COUNTS]> for InstructionCounts {
    fn from(values: [u64; COUNTS]) -> Self {
        let [warp_instructions, active_threads, thread_instructions, global @ .., local_requests] =
            values;
        let [
            global_requests,
            global_sectors,
            global_ideal_sectors,
            shared_requests,
            shared_wavefronts,
            shared_conflicts,
        ] = global;
        Self {
            warp_instructions,
            active_threads,
            thread_instructions,
            global_requests,
            global_sectors,
            global_ideal_sectors,
            shared_requests,
            shared_wavefronts,
            shared_conflicts,
            local_requests,
        }
    }
}

/// Counts of one PTX instruction that was executed, in a short form: the byte offset of the
/// instruction in the PTX that ran, and the counts in the order of [`InstructionCounts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedInstruction(pub u32, pub [u64; COUNTS]);

impl CountedInstruction {
    /// Returns the counts of the instruction.
    pub fn counts(&self) -> InstructionCounts {
        self.1.into()
    }
}

/// Counts of the instructions of a kernel in one launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedCode {
    /// Counts of the launch.
    pub total: InstructionCounts,
    /// Instructions that were executed, at most [`MAX_COUNTED_INSTRUCTIONS`]. The same instruction may occur
    /// several times, once for each kernel that reaches it.
    pub instructions: Vec<CountedInstruction>,
}

impl CountedCode {
    /// Returns the counts of the instructions of a launch; `None` if there are none.
    pub fn new(
        launch: &BTreeMap<String, u64>,
        instructions: &[CountedInstruction],
    ) -> Option<Self> {
        let instructions: Vec<_> =
            instructions.iter().take(MAX_COUNTED_INSTRUCTIONS).copied().collect();
        let total = InstructionCounts::of_launch(launch);
        (!instructions.is_empty()).then_some(Self { total, instructions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_a_launch_are_sums_of_kinds_of_access() {
        let names = SUMS.iter().flat_map(|names| names.iter());
        let launch = names.zip(1..).map(|(name, count)| ((*name).to_owned(), count)).collect();
        let counts = InstructionCounts::of_launch(&launch);
        let sums = [1, 2, 3, 4 + 5 + 6 + 7, 8 + 9 + 10, 11 + 12 + 13, 14 + 15 + 16, 17 + 18];
        assert_eq!(counts.values()[..8], sums);
        assert_eq!(counts.values()[8..], [19 + 20, 21 + 22]);
        assert_eq!(InstructionCounts::from(counts.values()), counts);
        let mut twice = counts;
        twice.add(&counts);
        assert_eq!(twice.without(&counts), counts);
        assert_eq!(counts.without(&twice), InstructionCounts::default());
        assert_eq!((counts.average_threads(), counts.excess_sectors()), (Some(2.0), 0));
        assert_eq!(InstructionCounts::default().average_threads(), None);
    }

    #[test]
    fn the_number_of_instructions_is_bounded() {
        let many = vec![CountedInstruction(0, [1; COUNTS]); MAX_COUNTED_INSTRUCTIONS + 1];
        let counted = CountedCode::new(&BTreeMap::new(), &many).unwrap();
        assert_eq!(counted.instructions.len(), MAX_COUNTED_INSTRUCTIONS);
        assert_eq!(CountedCode::new(&BTreeMap::new(), &[]), None);
    }

    #[test]
    fn counts_of_memory_are_absent_if_they_are_zero() {
        let counts = InstructionCounts { warp_instructions: 1, ..InstructionCounts::default() };
        let json = serde_json::to_value(counts).unwrap();
        let expected = serde_json::json!({"warp_instructions": 1, "active_threads": 0, "thread_instructions": 0});
        assert_eq!(json, expected);
        let again: InstructionCounts = serde_json::from_value(json).unwrap();
        assert_eq!(again, counts);
    }
}
