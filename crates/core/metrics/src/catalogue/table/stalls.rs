//! Metrics of the reasons for stalls, and of the schedulers.

use super::source::{at, metric, stalled};
use crate::catalogue::MetricGroup::{Scheduler, Stall};
use crate::catalogue::{FieldGroup as F, MetricInfo, MetricUnit};

/// Defines rows of stall reasons: the percentage of all warps that wait for each. Nsight Compute's
/// own sections compute it from the numbers of warps per issued instruction.
macro_rules! stalls {
    ($($id:ident, $reason:literal, $description:literal,
       [$($chips:ident($($chip:literal),*))?], [$($field:expr),*];)*) => {
        metrics! {
            $($id, Percent, Stall, $description,
                [metric(concat!("smsp__warp_issue_stalled_", $reason, "_per_warp_active.pct"))
                     $(.$chips($($chip),*))?,
                 stalled(concat!(
                     "smsp__average_warps_issue_stalled_", $reason, "_per_issue_active.ratio"
                 ))
                 $(.$chips($($chip),*))?],
                [$($field),*];)*
            warps_eligible, Warps, Scheduler,
                "Warps that could issue, per active cycle of a scheduler.",
                [metric("smsp__warps_eligible.avg.per_cycle_active")],
                [at(F::Scheduler, "warps_eligible_per_cycle")];
            instructions_issued, InstructionsPerCycle, Scheduler,
                "Instructions issued per active cycle of a scheduler.",
                [metric("smsp__inst_issued.avg.per_cycle_active")],
                [at(F::Scheduler, "inst_issued_per_cycle")];
            issue_active, Percent, Scheduler,
                "Active cycles in which a scheduler issued an instruction.",
                [metric("smsp__issue_active.avg.pct_of_peak_sustained_active")],
                [at(F::Scheduler, "issue_active_pct")];
            scheduler_warps_active, Warps, Scheduler,
                "Warps resident per active cycle of a scheduler.",
                [metric("smsp__warps_active.avg.per_cycle_active")], [];
        }
    };
}

stalls! {
    stall_long_scoreboard, "long_scoreboard", "Warps that waited for global or local memory.",
        [], [at(F::Stall, "stall_long_scoreboard_pct")];
    stall_short_scoreboard, "short_scoreboard",
        "Warps that waited for shared memory or special functions.",
        [], [at(F::Stall, "stall_short_scoreboard_pct")];
    stall_barrier, "barrier", "Warps that waited at a barrier.",
        [], [at(F::Stall, "stall_barrier_pct")];
    stall_not_selected, "not_selected", "Warps that could have issued, while the scheduler chose \
                                         another one.",
        [], [at(F::Stall, "stall_not_selected_pct")];
    stall_selected, "selected", "Warps that issued an instruction.",
        [], [];
    stall_wait, "wait", "Warps that waited for an instruction of fixed latency.",
        [], [];
    stall_membar, "membar", "Warps that waited at a memory fence.",
        [], [];
    stall_math_pipe_throttle, "math_pipe_throttle", "Warps that waited for an arithmetic pipeline.",
        [], [];
    stall_mio_throttle, "mio_throttle",
        "Warps that waited for the queue of shared memory and special functions.",
        [], [];
    stall_lg_throttle, "lg_throttle", "Warps that waited for the queue of global and local memory.",
        [], [];
    stall_tex_throttle, "tex_throttle", "Warps that waited for the queue of textures.",
        [], [];
    stall_dispatch_stall, "dispatch_stall", "Warps that the dispatch unit held back.",
        [], [];
    stall_drain, "drain", "Warps that had exited and waited for their stores to complete.",
        [], [];
    stall_branch_resolving, "branch_resolving", "Warps that waited for the target of a branch.",
        [], [];
    stall_no_instruction, "no_instruction",
        "Warps that waited for the instruction cache, or after a branch.",
        [], [];
    stall_imc_miss, "imc_miss", "Warps that waited for constants.",
        [until(90)], [];
    stall_gmma, "gmma", "Warps that waited for a tensor instruction of their warp group.",
        [on(90, 90)], [];
    stall_sleeping, "sleeping", "Warps of which all threads were blocked, had yielded or slept.",
        [], [];
    stall_misc, "misc", "Warps that waited for another reason.",
        [], [];
}
