//! Metrics of instructions by kind.

use super::names::{DADD, DFMA, DMUL, FADD, FFMA, FMUL, HADD, HFMA, HMUL};
use super::source::{metric, ratio};
use crate::catalogue::MetricGroup::Instructions;
use crate::catalogue::{MetricInfo, MetricUnit};

metrics! {
    warp_instructions, Instructions, Instructions, "Instructions executed by warps.",
        [metric("smsp__inst_executed.sum")], [];
    thread_instructions, Instructions, Instructions,
        "Instructions executed by threads whose predicate was true.",
        [metric("smsp__thread_inst_executed_pred_on.sum")], [];
    threads_per_instruction, Threads, Instructions,
        "Active threads of a warp per instruction, on average, of 32.",
        [metric("smsp__thread_inst_executed_per_inst_executed.ratio"),
         ratio("smsp__thread_inst_executed.sum", "smsp__inst_executed.sum")], [];
    branches, Instructions, Instructions, "Branch instructions of warps.",
        [metric("smsp__inst_executed_op_branch.sum")], [];
    divergent_branches, Instructions, Instructions,
        "Branches at which the threads of a warp diverged.",
        [metric("smsp__sass_branch_targets_threads_divergent.sum")], [];
    barriers, Instructions, Instructions, "Barrier instructions of warps.", [], [];
    fadd_instructions, Instructions, Instructions, "f32 additions of threads.",
        [metric(FADD)], [];
    fmul_instructions, Instructions, Instructions, "f32 multiplications of threads.",
        [metric(FMUL)], [];
    ffma_instructions, Instructions, Instructions, "f32 fused multiply-adds of threads.",
        [metric(FFMA)], [];
    dadd_instructions, Instructions, Instructions, "f64 additions of threads.",
        [metric(DADD)], [];
    dmul_instructions, Instructions, Instructions, "f64 multiplications of threads.",
        [metric(DMUL)], [];
    dfma_instructions, Instructions, Instructions, "f64 fused multiply-adds of threads.",
        [metric(DFMA)], [];
    hadd_instructions, Instructions, Instructions,
        "f16 and bf16 additions of threads, single or packed.", [metric(HADD)], [];
    hmul_instructions, Instructions, Instructions,
        "f16 and bf16 multiplications of threads, single or packed.", [metric(HMUL)], [];
    hfma_instructions, Instructions, Instructions,
        "f16 and bf16 fused multiply-adds of threads, single or packed.", [metric(HFMA)], [];
    thread_integer, Instructions, Instructions, "Integer instructions of threads.",
        [metric("smsp__sass_thread_inst_executed_op_integer_pred_on.sum")], [];
    thread_fp16, Instructions, Instructions, "f16 and bf16 instructions of threads.",
        [metric("smsp__sass_thread_inst_executed_op_fp16_pred_on.sum")], [];
    thread_fp32, Instructions, Instructions, "f32 instructions of threads.",
        [metric("smsp__sass_thread_inst_executed_op_fp32_pred_on.sum")], [];
    thread_fp64, Instructions, Instructions, "f64 instructions of threads.",
        [metric("smsp__sass_thread_inst_executed_op_fp64_pred_on.sum")], [];
    thread_conversion, Instructions, Instructions, "Conversions of threads.",
        [metric("smsp__sass_thread_inst_executed_op_conversion_pred_on.sum")], [];
    thread_control, Instructions, Instructions, "Branches, calls, returns and exits of threads.",
        [metric("smsp__sass_thread_inst_executed_op_control_pred_on.sum")], [];
    thread_memory, Instructions, Instructions, "Loads and stores of threads.",
        [metric("smsp__sass_thread_inst_executed_op_memory_pred_on.sum")], [];
    thread_exchange, Instructions, Instructions, "Shuffles, votes and matches of threads.",
        [metric("smsp__sass_thread_inst_executed_op_inter_thread_communication_pred_on.sum")], [];
    thread_special, Instructions, Instructions, "Approximate special functions of threads.", [], [];
    thread_move, Instructions, Instructions, "Moves and selections of threads.", [], [];
    thread_atomic, Instructions, Instructions, "Atomics of threads.", [], [];
    thread_synchronisation, Instructions, Instructions, "Barriers and fences of threads.", [], [];
    thread_tensor, Instructions, Instructions, "Matrix instructions of threads.", [], [];
    warp_integer, Instructions, Instructions, "Integer instructions of warps.", [], [];
    warp_fp16, Instructions, Instructions, "f16 and bf16 instructions of warps.", [], [];
    warp_fp32, Instructions, Instructions, "f32 instructions of warps.", [], [];
    warp_fp64, Instructions, Instructions, "f64 instructions of warps.", [], [];
    warp_conversion, Instructions, Instructions, "Conversions of warps.", [], [];
    warp_control, Instructions, Instructions, "Branches, calls, returns and exits of warps.",
        [], [];
    warp_memory, Instructions, Instructions, "Loads and stores of warps.", [], [];
    warp_exchange, Instructions, Instructions, "Shuffles, votes and matches of warps.", [], [];
    warp_special, Instructions, Instructions, "Approximate special functions of warps.", [], [];
    warp_move, Instructions, Instructions, "Moves and selections of warps.", [], [];
    warp_atomic, Instructions, Instructions, "Atomics of warps.", [], [];
    warp_synchronisation, Instructions, Instructions, "Barriers and fences of warps.", [], [];
    warp_tensor, Instructions, Instructions, "Matrix instructions of warps.", [], [];
    branch_uniformity, Percent, Instructions,
        "Branches at which all threads of the warp took the same path.",
        [metric("smsp__sass_average_branch_targets_threads_uniform.pct")], [];
    tensor_instructions, Instructions, Instructions, "Instructions of tensor pipelines by warps.",
        [metric("sm__inst_executed_pipe_tensor.sum")], [];
}
