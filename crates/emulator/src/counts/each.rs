//! Counts of each PTX instruction of a launch.

use super::Executed;
use crate::ir::Code;

/// Memory accesses of an instruction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Accesses {
    /// Accesses to global memory, counted once per warp.
    pub(crate) global_requests: u64,
    /// Number of 32-byte sectors that the accesses touch.
    pub(crate) global_sectors: u64,
    /// Number of sectors that the accesses would touch if their threads used adjacent addresses.
    pub(crate) global_ideal_sectors: u64,
    /// Accesses to shared memory, counted once per warp.
    pub(crate) shared_requests: u64,
    /// Number of passes of loads from and stores to shared memory.
    pub(crate) shared_wavefronts: u64,
    /// Number of passes beyond those that the access width requires.
    pub(crate) shared_conflicts: u64,
    /// Accesses to local memory, counted once per warp and word.
    pub(crate) local_requests: u64,
}

impl Accesses {
    pub(crate) fn add(&mut self, other: &Self) {
        self.global_requests += other.global_requests;
        self.global_sectors += other.global_sectors;
        self.global_ideal_sectors += other.global_ideal_sectors;
        self.shared_requests += other.shared_requests;
        self.shared_wavefronts += other.shared_wavefronts;
        self.shared_conflicts += other.shared_conflicts;
        self.local_requests += other.local_requests;
    }
}

/// Number of values of [`InstructionCounts::values`].
pub const INSTRUCTION_VALUES: usize = 10;

/// Counts of one PTX instruction that was executed.
#[derive(Debug, Clone, Copy, Default)]
pub struct InstructionCounts {
    /// Byte offset of the instruction in the text of the module.
    pub at: u32,
    pub(crate) executed: Executed,
    pub(crate) accesses: Accesses,
}

impl InstructionCounts {
    /// Returns the counts: warp instructions, active threads, thread instructions; requests, sectors
    /// and ideal sectors of global memory; requests, wavefronts and conflicts of shared memory;
    /// requests of local memory.
    pub fn values(&self) -> [u64; INSTRUCTION_VALUES] {
        let Executed { warps, active, threads } = self.executed;
        let Accesses {
            global_requests,
            global_sectors,
            global_ideal_sectors,
            shared_requests,
            shared_wavefronts,
            shared_conflicts,
            local_requests,
        } = self.accesses;
        [
            warps,
            active,
            threads,
            global_requests,
            global_sectors,
            global_ideal_sectors,
            shared_requests,
            shared_wavefronts,
            shared_conflicts,
            local_requests,
        ]
    }
}

/// Returns the counts of each PTX instruction that was executed, in the order of the code.
/// `profile` and `accesses` have an element for each instruction of `code`. Without `accesses`
/// there are no counts.
pub(crate) fn of_instructions(
    code: &Code,
    profile: &[Executed],
    accesses: &[Accesses],
) -> Vec<InstructionCounts> {
    let mut rows: Vec<InstructionCounts> = Vec::new();
    for ((line, ran), own) in code.lines.iter().zip(profile).zip(accesses) {
        match line.2 {
            Some(at) => rows.push(InstructionCounts { at, executed: *ran, accesses: *own }),
            // The access belongs to the PTX instruction that this instruction completes.
            None => {
                if let Some(row) = rows.last_mut() {
                    row.accesses.add(own);
                }
            }
        }
    }
    rows.retain(|row| row.executed.warps > 0);
    rows
}
