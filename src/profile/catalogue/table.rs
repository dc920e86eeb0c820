//! The table: id, unit, group, description, NVIDIA's metrics, the CUDA Evaluation Server's fields.

use super::FieldGroup as F;
use super::Formula::{Difference, Metric, Ratio, Sum, Weighted};
use super::Group::{
    AccessPattern, Compute, Detailed, Instructions, Memory, Occupancy, Pipeline, Roofline,
    Scheduler, SpeedOfLight, Stall, Timing,
};
use super::{Field, Formula, MetricInfo, Source, Unit};

/// Every chip from Volta on.
const ALL: (u32, u32) = (70, u32::MAX);

const fn at(group: F, name: &'static str) -> Field {
    Field { group, name, scale: 1.0 }
}

const fn scaled(group: F, name: &'static str, scale: f64) -> Field {
    Field { group, name, scale }
}

macro_rules! metrics {
    ($($id:ident, $unit:ident, $group:ident, $description:literal,
       [$($formula:expr $(; $chips:expr)?),*], [$($field:expr),*];)*) => {
        /// Every metric.
        pub const CATALOGUE: &[MetricInfo] = &[$(MetricInfo {
            id: stringify!($id),
            unit: Unit::$unit,
            group: $group,
            description: $description,
            sources: &[$(Source { chips: chips!($($chips)?), formula: $formula }),*],
            fields: &[$($field),*],
        }),*];
    };
}

/// A formula is for every chip unless it says `; (first, last)`.
macro_rules! chips {
    () => {
        ALL
    };
    ($chips:expr) => {
        $chips
    };
}

const GLOBAL_LOAD_REQUESTS: &str = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum";
const GLOBAL_LOAD_SECTORS: &str = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum";
const GLOBAL_STORE_REQUESTS: &str = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum";
const GLOBAL_STORE_SECTORS: &str = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum";
const L2_SECTORS: &str = "memory_l2_theoretical_sectors_global";
const L2_IDEAL: &str = "memory_l2_theoretical_sectors_global_ideal";
const FADD: &str = "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum";
const FMUL: &str = "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum";
const FFMA: &str = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum";
const DADD: &str = "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum";
const DMUL: &str = "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum";
const DFMA: &str = "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum";
const HADD: &str = "smsp__sass_thread_inst_executed_op_hadd_pred_on.sum";
const HMUL: &str = "smsp__sass_thread_inst_executed_op_hmul_pred_on.sum";
const HFMA: &str = "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum";

/// Operations outside the tensor cores. The counters do not tell single instructions on f16 from
/// packed ones, which most are.
const FLOPS: Formula = Weighted(&[
    (FADD, 1.0),
    (FMUL, 1.0),
    (FFMA, 2.0),
    (DADD, 1.0),
    (DMUL, 1.0),
    (DFMA, 2.0),
    (HADD, 2.0),
    (HMUL, 2.0),
    (HFMA, 4.0),
]);

metrics! {
    compute_memory_throughput, Percent, SpeedOfLight,
        "Busiest part of the GPU, compute or memory, in percent of its peak.",
        [Metric("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed")],
        [at(F::SpeedOfLight, "compute_memory_throughput_pct"),
         at(F::SpeedOfLight, "compute_throughput_pct")];
    sm_throughput, Percent, SpeedOfLight,
        "Busiest part of the multiprocessors, in percent of its peak.",
        [Metric("sm__throughput.avg.pct_of_peak_sustained_elapsed")],
        [at(F::SpeedOfLight, "sm_throughput_pct")];
    gpu_dram_throughput, Percent, SpeedOfLight,
        "Device memory as the GPU sees it, in percent of its peak.",
        [Metric("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed")],
        [at(F::SpeedOfLight, "gpu_dram_throughput_pct"),
         at(F::SpeedOfLight, "memory_throughput_pct")];
    dram_throughput, Percent, SpeedOfLight,
        "Device memory, in percent of its peak.",
        [Metric("dram__throughput.avg.pct_of_peak_sustained_elapsed")],
        [at(F::SpeedOfLight, "dram_throughput_pct")];

    l1_hit_rate, Percent, Detailed, "Sectors found in L1.",
        [Metric("l1tex__t_sector_hit_rate.pct")], [at(F::Detailed, "l1_hit_rate_pct")];
    l2_hit_rate, Percent, Detailed, "Sectors found in L2.",
        [Metric("lts__t_sector_hit_rate.pct")], [at(F::Detailed, "l2_hit_rate_pct")];
    achieved_occupancy, Percent, Detailed,
        "Warps resident on average, in percent of what a multiprocessor holds.",
        [Metric("sm__warps_active.avg.pct_of_peak_sustained_active")],
        [at(F::Detailed, "warp_occupancy_pct")];
    sm_active_cycles, Percent, Detailed, "Cycles in which a multiprocessor had work.",
        [Metric("sm__cycles_active.avg.pct_of_peak_sustained_elapsed")],
        [at(F::Detailed, "sm_active_cycles_pct")];
    instructions_per_cycle, InstructionsPerCycle, Detailed,
        "Warp instructions per active cycle of a multiprocessor.",
        [Metric("sm__inst_executed.avg.per_cycle_active")],
        [at(F::Detailed, "instructions_per_cycle"), at(F::Compute, "instructions_per_cycle")];
    waves_per_sm, Waves, Occupancy,
        "Times that the multiprocessors must be filled with blocks to run the grid.",
        [Metric("launch__waves_per_multiprocessor")],
        [at(F::Detailed, "waves_per_sm"), at(F::Occupancy, "waves_per_sm")];

    dram_average_bandwidth, BytesPerSecond, Memory,
        "Device memory bandwidth of one channel, on average.",
        [Metric("dram__bytes.avg.per_second")],
        [scaled(F::Memory, "dram_avg_bandwidth_gb_s", 1e-9)];
    dram_bandwidth, BytesPerSecond, Memory, "Device memory bandwidth.",
        [Metric("dram__bytes.sum.per_second")],
        [scaled(F::Memory, "dram_total_bandwidth_gb_s", 1e-9)];
    dram_active_cycles, Percent, Memory, "Cycles in which device memory transferred data.",
        [Metric("dram__cycles_active.avg.pct_of_peak_sustained_elapsed")],
        [at(F::Memory, "dram_active_cycles_pct")];
    l1_writeback_active, Percent, Memory, "Cycles in which L1 returned data to registers.",
        [Metric("l1tex__lsu_writeback_active.avg.pct_of_peak_sustained_elapsed")],
        [at(F::Memory, "l1_writeback_active_pct")];
    l1_read_sectors, Percent, Memory, "Sectors that L1 read from L2, in percent of the peak.",
        [Metric("l1tex__m_xbar2l1tex_read_sectors.avg.pct_of_peak_sustained_elapsed")],
        [at(F::Memory, "l1_read_sectors_pct")];
    l2_throughput, Percent, Memory, "Busiest part of L2, in percent of its peak.",
        [Metric("lts__throughput.avg.pct_of_peak_sustained_elapsed")],
        [at(F::Memory, "l2_throughput_pct")];

    fma_pipe_utilization, Percent, Compute, "Instructions of the FMA pipeline, of its peak.",
        [Metric("sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active")],
        [at(F::Compute, "fma_pipe_utilization_pct")];
    fp64_pipe_utilization, Percent, Compute, "Instructions of the FP64 pipeline, of its peak.",
        [Metric("sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active")],
        [at(F::Compute, "fp64_pipe_utilization_pct")];
    alu_pipe_utilization, Percent, Compute, "Instructions of the ALU pipeline, of its peak.",
        [Metric("sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active")],
        [at(F::Compute, "alu_pipe_utilization_pct")];
    xu_pipe_utilization, Percent, Compute,
        "Instructions of the pipeline for special functions, of its peak.",
        [Metric("sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active")],
        [at(F::Compute, "xu_pipe_utilization_pct")];
    tensor_pipe_utilization, Percent, Compute,
        "Instructions of the half-precision tensor pipeline, of its peak.",
        [Metric("sm__inst_executed_pipe_tensor_op_hmma.avg.pct_of_peak_sustained_active")],
        [at(F::Compute, "tensor_pipe_utilization_pct")];

    fma_pipe_active, Percent, Pipeline, "Cycles in which the FMA pipeline was active.",
        [Metric("sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed")],
        [at(F::Pipeline, "fma_pipe_active_pct")];
    alu_pipe_active, Percent, Pipeline, "Cycles in which the ALU pipeline was active.",
        [Metric("sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed")],
        [at(F::Pipeline, "alu_pipe_active_pct")];
    tensor_pipe_active, Percent, Pipeline, "Cycles in which the tensor pipeline was active.",
        [Metric("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed")],
        [at(F::Pipeline, "tensor_pipe_active_pct")];
    shared_pipe_active, Percent, Pipeline,
        "Cycles in which the pipeline shared by FP64 and tensor instructions was active.",
        [Metric("sm__pipe_shared_cycles_active.avg.pct_of_peak_sustained_elapsed")],
        [at(F::Pipeline, "shared_pipe_active_pct")];
    fp64_pipe_active, Percent, Pipeline, "Cycles in which the FP64 pipeline was active.",
        [Metric("sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_elapsed")],
        [at(F::Pipeline, "fp64_pipe_active_pct")];
    sm_issue_active, Percent, Pipeline, "Cycles in which a multiprocessor issued an instruction.",
        [Metric("sm__issue_active.avg.pct_of_peak_sustained_elapsed")],
        [at(F::Pipeline, "sm_issue_active_pct")];

    occupancy_limit_registers, Blocks, Occupancy,
        "Blocks per multiprocessor that registers allow.",
        [Metric("launch__occupancy_limit_registers")],
        [at(F::Occupancy, "occupancy_limit_registers"),
         at(F::Compute, "occupancy_limit_registers")];
    occupancy_limit_shared_memory, Blocks, Occupancy,
        "Blocks per multiprocessor that shared memory allows.",
        [Metric("launch__occupancy_limit_shared_mem")],
        [at(F::Occupancy, "occupancy_limit_shared_mem"),
         at(F::Compute, "occupancy_limit_shared_mem")];
    occupancy_limit_warps, Blocks, Occupancy, "Blocks per multiprocessor that warps allow.",
        [Metric("launch__occupancy_limit_warps")],
        [at(F::Occupancy, "occupancy_limit_warps"), at(F::Compute, "occupancy_limit_warps")];
    occupancy_limit_blocks, Blocks, Occupancy, "Blocks per multiprocessor that there can be.",
        [Metric("launch__occupancy_limit_blocks")],
        [at(F::Occupancy, "occupancy_limit_blocks"), at(F::Compute, "occupancy_limit_blocks")];
    theoretical_occupancy, Percent, Occupancy,
        "Warps that may be resident, in percent of what a multiprocessor holds.",
        [Metric("sm__maximum_warps_per_active_cycle_pct")], [];
    registers_per_thread, Registers, Occupancy, "Registers of a thread.",
        [Metric("launch__registers_per_thread")], [at(F::Compute, "registers_per_thread")];
    block_size, Threads, Occupancy, "Threads of a block.",
        [Metric("launch__block_size")], [at(F::Occupancy, "block_size")];
    grid_size, Blocks, Occupancy, "Blocks of the grid.",
        [Metric("launch__grid_size")], [at(F::Occupancy, "grid_size")];
    shared_memory_per_block, Bytes, Occupancy,
        "Shared memory that a block occupies, with what the system keeps.",
        [Metric("launch__shared_mem_per_block")], [at(F::Occupancy, "shared_mem_per_block")];

    stall_long_scoreboard, Percent, Stall, "Warps that waited for global or local memory.",
        [Metric("smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct")],
        [at(F::Stall, "stall_long_scoreboard_pct")];
    stall_short_scoreboard, Percent, Stall,
        "Warps that waited for shared memory or special functions.",
        [Metric("smsp__warp_issue_stalled_short_scoreboard_per_warp_active.pct")],
        [at(F::Stall, "stall_short_scoreboard_pct")];
    stall_barrier, Percent, Stall, "Warps that waited at a barrier.",
        [Metric("smsp__warp_issue_stalled_barrier_per_warp_active.pct")],
        [at(F::Stall, "stall_barrier_pct")];
    stall_not_selected, Percent, Stall, "Warps that could have issued, but another one did.",
        [Metric("smsp__warp_issue_stalled_not_selected_per_warp_active.pct")],
        [at(F::Stall, "stall_not_selected_pct")];

    warps_eligible, Warps, Scheduler, "Warps that could issue, per active cycle of a scheduler.",
        [Metric("smsp__warps_eligible.avg.per_cycle_active")],
        [at(F::Scheduler, "warps_eligible_per_cycle")];
    instructions_issued, InstructionsPerCycle, Scheduler,
        "Instructions issued per active cycle of a scheduler.",
        [Metric("smsp__inst_issued.avg.per_cycle_active")],
        [at(F::Scheduler, "inst_issued_per_cycle")];
    issue_active, Percent, Scheduler, "Active cycles in which a scheduler issued an instruction.",
        [Metric("smsp__issue_active.avg.pct_of_peak_sustained_active")],
        [at(F::Scheduler, "issue_active_pct")];

    sectors_per_global_load, SectorsPerRequest, AccessPattern,
        "Sectors of 32 bytes that a warp's load from global memory touches, on average.",
        [Ratio(GLOBAL_LOAD_SECTORS, GLOBAL_LOAD_REQUESTS)],
        [at(F::AccessPattern, "l1_load_sectors_per_req")];
    sectors_per_global_store, SectorsPerRequest, AccessPattern,
        "Sectors of 32 bytes that a warp's store to global memory touches, on average.",
        [Ratio(GLOBAL_STORE_SECTORS, GLOBAL_STORE_REQUESTS)],
        [at(F::AccessPattern, "l1_store_sectors_per_req")];
    l2_sectors_global, Sectors, AccessPattern,
        "Sectors that loads from and stores to global memory touch, each once per request.",
        [Metric(L2_SECTORS)], [at(F::AccessPattern, "l2_theoretical_sectors_global")];
    l2_sectors_global_ideal, Sectors, AccessPattern,
        "The same if the threads of each request used adjacent addresses.",
        [Metric(L2_IDEAL)], [at(F::AccessPattern, "l2_theoretical_sectors_global_ideal")];
    l2_sectors_global_excessive, Sectors, AccessPattern, "Sectors beyond the ideal.",
        [Difference(L2_SECTORS, L2_IDEAL)],
        [at(F::AccessPattern, "l2_theoretical_sectors_global_excessive")];
    l2_sectors_global_excess, Ratio, AccessPattern,
        "Part of the sectors that is beyond the ideal.",
        [], [at(F::AccessPattern, "l2_excess_frac")];
    shared_load_conflicts, Conflicts, AccessPattern,
        "Passes that loads from shared memory take because of bank conflicts.",
        [Metric("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum")],
        [at(F::AccessPattern, "shared_bank_conflicts_load_sum")];
    shared_store_conflicts, Conflicts, AccessPattern,
        "Passes that stores to shared memory take because of bank conflicts.",
        [Metric("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum")],
        [at(F::AccessPattern, "shared_bank_conflicts_store_sum")];
    global_load_requests, Requests, AccessPattern, "Loads from global memory by warps.",
        [Metric(GLOBAL_LOAD_REQUESTS)], [];
    global_load_sectors, Sectors, AccessPattern, "Sectors that those loads touch.",
        [Metric(GLOBAL_LOAD_SECTORS)], [];
    global_store_requests, Requests, AccessPattern, "Stores to global memory by warps.",
        [Metric(GLOBAL_STORE_REQUESTS)], [];
    global_store_sectors, Sectors, AccessPattern, "Sectors that those stores touch.",
        [Metric(GLOBAL_STORE_SECTORS)], [];
    global_atomic_requests, Requests, AccessPattern,
        "Atomics on global memory by warps that return the old value.",
        [Metric("l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum")], [];
    global_reduction_requests, Requests, AccessPattern,
        "Atomics on global memory by warps that return nothing.",
        [Metric("l1tex__t_requests_pipe_lsu_mem_global_op_red.sum")], [];
    shared_load_requests, Requests, AccessPattern, "Loads from shared memory by warps.",
        [Metric("smsp__sass_inst_executed_op_shared_ld.sum")], [];
    shared_load_wavefronts, Wavefronts, AccessPattern, "Passes that those loads take.",
        [Metric("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum")], [];
    shared_store_requests, Requests, AccessPattern, "Stores to shared memory by warps.",
        [Metric("smsp__sass_inst_executed_op_shared_st.sum")], [];
    shared_store_wavefronts, Wavefronts, AccessPattern, "Passes that those stores take.",
        [Metric("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum")], [];
    shared_atomic_requests, Requests, AccessPattern, "Atomics on shared memory by warps.",
        [Metric("smsp__inst_executed_op_shared_atom.sum")], [];
    local_load_requests, Requests, AccessPattern, "Loads from local memory by warps.",
        [Metric("l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum")], [];
    local_store_requests, Requests, AccessPattern, "Stores to local memory by warps.",
        [Metric("l1tex__t_requests_pipe_lsu_mem_local_op_st.sum")], [];
    constant_requests, Requests, AccessPattern, "Loads from constant memory by warps.", [], [];
    local_bytes, Bytes, AccessPattern, "Bytes that threads read from and wrote to local memory.",
        [], [];

    flop_count, Operations, Roofline,
        "Floating-point operations: a fused multiply-add is two, a packed one twice as many.",
        [FLOPS], [at(F::Roofline, "flop_count_total")];
    flop_count_single, Operations, Roofline, "Operations on f32.",
        [Weighted(&[(FADD, 1.0), (FMUL, 1.0), (FFMA, 2.0)])], [];
    flop_count_double, Operations, Roofline, "Operations on f64.",
        [Weighted(&[(DADD, 1.0), (DMUL, 1.0), (DFMA, 2.0)])], [];
    flop_count_half, Operations, Roofline, "Operations on f16 and bf16 outside tensor cores.",
        [Weighted(&[(HADD, 2.0), (HMUL, 2.0), (HFMA, 4.0)])], [];
    flop_count_tensor, Operations, Roofline, "Floating-point operations of tensor cores.",
        [Sum(&["sm__ops_path_tensor_src_fp16.sum", "sm__ops_path_tensor_src_bf16_dst_fp32.sum",
               "sm__ops_path_tensor_src_tf32_dst_fp32.sum", "sm__ops_path_tensor_src_fp64.sum",
               "sm__ops_path_tensor_src_fp8_sparsity_off.sum"])], [];
    tensor_integer_ops, Operations, Roofline, "Integer operations of tensor cores.",
        [Sum(&["sm__ops_path_tensor_src_int8.sum", "sm__ops_path_tensor_src_int1.sum"])], [];
    dram_bytes, Bytes, Roofline, "Bytes that device memory transferred.",
        [Metric("dram__bytes.sum")], [at(F::Roofline, "dram_bytes_sum")];
    arithmetic_intensity, OperationsPerByte, Roofline,
        "Floating-point operations per byte of device memory.",
        [], [at(F::Roofline, "arithmetic_intensity")];
    flop_rate, OperationsPerSecond, Roofline, "Floating-point operations per second.",
        [], [scaled(F::Roofline, "gflops", 1e-9)];
    ideal_read_bytes, Bytes, Roofline,
        "Bytes of the different sectors that the kernel reads: what a perfect cache would fetch.",
        [], [];
    ideal_write_bytes, Bytes, Roofline, "Bytes of the different sectors that the kernel writes.",
        [], [];

    duration, Seconds, Timing, "Duration of the profiled launch.",
        [Metric("gpu__time_duration.sum")],
        [scaled(F::Timing, "gpu_time_duration_sum", 1e9),
         at(F::Timing, "gpu_time_duration_seconds")];
    elapsed_cycles, Cycles, Timing, "Cycles of the profiled launch.",
        [Metric("gpc__cycles_elapsed.max")], [at(F::Timing, "gpc_cycles_elapsed_max")];

    warp_instructions, Instructions, Instructions, "Instructions executed by warps.",
        [Metric("smsp__inst_executed.sum")], [];
    thread_instructions, Instructions, Instructions,
        "Instructions executed by threads whose predicate held.",
        [Metric("smsp__thread_inst_executed_pred_on.sum")], [];
    threads_per_instruction, Threads, Instructions,
        "Threads that were at an instruction, on average, of the 32 of a warp.",
        [Metric("smsp__thread_inst_executed_per_inst_executed.ratio")], [];
    branches, Instructions, Instructions, "Branches of warps.",
        [Metric("smsp__inst_executed_op_branch.sum")], [];
    divergent_branches, Instructions, Instructions,
        "Branches at which the threads of a warp parted.",
        [Metric("smsp__sass_branch_targets_threads_divergent.sum")], [];
    barriers, Instructions, Instructions, "Barrier instructions of warps.", [], [];
    fadd_instructions, Instructions, Instructions, "f32 additions of threads.",
        [Metric(FADD)], [];
    fmul_instructions, Instructions, Instructions, "f32 multiplications of threads.",
        [Metric(FMUL)], [];
    ffma_instructions, Instructions, Instructions, "f32 fused multiply-adds of threads.",
        [Metric(FFMA)], [];
    dadd_instructions, Instructions, Instructions, "f64 additions of threads.",
        [Metric(DADD)], [];
    dmul_instructions, Instructions, Instructions, "f64 multiplications of threads.",
        [Metric(DMUL)], [];
    dfma_instructions, Instructions, Instructions, "f64 fused multiply-adds of threads.",
        [Metric(DFMA)], [];
    hadd_instructions, Instructions, Instructions,
        "f16 and bf16 additions of threads, single or packed.", [Metric(HADD)], [];
    hmul_instructions, Instructions, Instructions,
        "f16 and bf16 multiplications of threads, single or packed.", [Metric(HMUL)], [];
    hfma_instructions, Instructions, Instructions,
        "f16 and bf16 fused multiply-adds of threads, single or packed.", [Metric(HFMA)], [];
    thread_integer, Instructions, Instructions, "Integer instructions of threads.",
        [Metric("smsp__sass_thread_inst_executed_op_integer_pred_on.sum")], [];
    thread_fp16, Instructions, Instructions, "f16 and bf16 instructions of threads.",
        [Metric("smsp__sass_thread_inst_executed_op_fp16_pred_on.sum")], [];
    thread_fp32, Instructions, Instructions, "f32 instructions of threads.",
        [Metric("smsp__sass_thread_inst_executed_op_fp32_pred_on.sum")], [];
    thread_fp64, Instructions, Instructions, "f64 instructions of threads.",
        [Metric("smsp__sass_thread_inst_executed_op_fp64_pred_on.sum")], [];
    thread_conversion, Instructions, Instructions, "Conversions of threads.",
        [Metric("smsp__sass_thread_inst_executed_op_conversion_pred_on.sum")], [];
    thread_control, Instructions, Instructions, "Branches, calls, returns and exits of threads.",
        [Metric("smsp__sass_thread_inst_executed_op_control_pred_on.sum")], [];
    thread_memory, Instructions, Instructions, "Loads and stores of threads.",
        [Metric("smsp__sass_thread_inst_executed_op_memory_pred_on.sum")], [];
    thread_exchange, Instructions, Instructions, "Shuffles, votes and matches of threads.",
        [Metric("smsp__sass_thread_inst_executed_op_inter_thread_communication_pred_on.sum")], [];
    thread_special, Instructions, Instructions, "Approximated functions of threads.", [], [];
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
    warp_special, Instructions, Instructions, "Approximated functions of warps.", [], [];
    warp_move, Instructions, Instructions, "Moves and selections of warps.", [], [];
    warp_atomic, Instructions, Instructions, "Atomics of warps.", [], [];
    warp_synchronisation, Instructions, Instructions, "Barriers and fences of warps.", [], [];
    warp_tensor, Instructions, Instructions, "Matrix instructions of warps.", [], [];

    l1_throughput, Percent, Memory, "Busiest part of L1 and shared memory, while active.",
        [Metric("l1tex__throughput.avg.pct_of_peak_sustained_active")], [];
    global_load_efficiency, Percent, AccessPattern,
        "Bytes used of those that loads from global memory fetch.",
        [Metric("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct")], [];
    global_store_efficiency, Percent, AccessPattern,
        "Bytes used of those that stores to global memory touch.",
        [Metric("smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct")], [];
    l1_bytes, Bytes, Roofline,
        "Bytes that L1 and shared memory returned to threads, 128 for each cycle it did.",
        [Weighted(&[("l1tex__lsu_writeback_active.sum", 128.0)]); (70, 72),
         Weighted(&[("l1tex__lsu_writeback_active_mem_lg.sum", 128.0)]); (75, 89),
         Weighted(&[("l1tex__lsu_writeback_active_mem_lgds.sum", 128.0)]); (90, u32::MAX)], [];
    l2_bytes, Bytes, Roofline,
        "Bytes that L2 sent to the multiprocessors, 32 for each cycle it did.",
        [Weighted(&[("lts__lts2xbar_cycles_active.sum", 32.0)])], [];
    flop_count_tensor_fp64, Operations, Roofline, "Operations of tensor cores on f64.",
        [Metric("sm__ops_path_tensor_src_fp64.sum"); (80, u32::MAX)], [];
    flop_count_tensor_tf32, Operations, Roofline, "Operations of tensor cores on tf32.",
        [Metric("sm__ops_path_tensor_src_tf32_dst_fp32.sum"); (80, u32::MAX)], [];
    flop_count_tensor_fp16, Operations, Roofline, "Operations of tensor cores on f16.",
        [Metric("sm__ops_path_tensor_src_fp16.sum"); (90, 90),
         Sum(&["sm__ops_path_tensor_src_fp16_dst_fp16.sum",
               "sm__ops_path_tensor_src_fp16_dst_fp32.sum"])], [];
    flop_count_tensor_bf16, Operations, Roofline, "Operations of tensor cores on bf16.",
        [Metric("sm__ops_path_tensor_src_bf16_dst_fp32.sum"); (80, u32::MAX)], [];
    flop_count_tensor_fp8, Operations, Roofline, "Operations of tensor cores on 8-bit floats.",
        [Metric("sm__ops_path_tensor_src_fp8_sparsity_off.sum"); (90, 90)], [];
    peak_flops_double, OperationsPerCycle, Roofline,
        "Most operations on f64 per cycle of the multiprocessors, a multiply-add being two.",
        [Weighted(&[("sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained", 2.0)])],
        [];
    peak_flops_single, OperationsPerCycle, Roofline,
        "Most operations on f32 per cycle of the multiprocessors, a multiply-add being two.",
        [Weighted(&[("sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained", 2.0)])],
        [];
    peak_flops_half, OperationsPerCycle, Roofline,
        "Most operations on f16 per cycle, outside tensor cores, packed.",
        [Weighted(&[("sm__sass_thread_inst_executed_op_hfma_pred_on.sum.peak_sustained", 4.0)])],
        [];
    peak_flops_tensor_fp64, OperationsPerCycle, Roofline,
        "Most operations of tensor cores on f64 per cycle.",
        [Metric("sm__ops_path_tensor_src_fp64.sum.peak_sustained"); (80, u32::MAX)], [];
    peak_flops_tensor_tf32, OperationsPerCycle, Roofline,
        "Most operations of tensor cores on tf32 per cycle.",
        [Metric("sm__ops_path_tensor_src_tf32_dst_fp32.sum.peak_sustained"); (80, u32::MAX)], [];
    peak_flops_tensor_fp16, OperationsPerCycle, Roofline,
        "Most operations of tensor cores on f16 per cycle.",
        [Metric("sm__ops_path_tensor_src_fp16.sum.peak_sustained"); (90, 90),
         Metric("sm__ops_path_tensor_src_fp16_dst_fp16.sum.peak_sustained")], [];
    peak_flops_tensor_bf16, OperationsPerCycle, Roofline,
        "Most operations of tensor cores on bf16 per cycle.",
        [Metric("sm__ops_path_tensor_src_bf16_dst_fp32.sum.peak_sustained"); (80, u32::MAX)], [];
    peak_flops_tensor_fp8, OperationsPerCycle, Roofline,
        "Most operations of tensor cores on 8-bit floats per cycle.",
        [Metric("sm__ops_path_tensor_src_fp8_sparsity_off.sum.peak_sustained"); (90, 90)], [];
    peak_l1_bytes, BytesPerCycle, Roofline, "Most bytes per cycle of what `l1_bytes` counts.",
        [Weighted(&[("l1tex__lsu_writeback_active.sum.peak_sustained", 128.0)]); (70, 72),
         Weighted(&[("l1tex__lsu_writeback_active_mem_lg.sum.peak_sustained", 128.0)]); (75, 89),
         Weighted(&[("l1tex__lsu_writeback_active_mem_lgds.sum.peak_sustained", 128.0)]);
         (90, u32::MAX)], [];
    peak_l2_bytes, BytesPerCycle, Roofline, "Most bytes per cycle of what `l2_bytes` counts.",
        [Weighted(&[("lts__lts2xbar_cycles_active.sum.peak_sustained", 32.0)])], [];
    peak_dram_bytes, BytesPerCycle, Roofline, "Most bytes of device memory per cycle.",
        [Metric("dram__bytes.sum.peak_sustained")], [];
    sm_clock, Hertz, Timing, "Clock of the multiprocessors during the profiled launch.",
        [Metric("sm__cycles_elapsed.avg.per_second"), Metric("smsp__cycles_elapsed.avg.per_second")],
        [];
    l1_clock, Hertz, Timing, "Clock of L1 during the profiled launch.",
        [Metric("l1tex__cycles_elapsed.avg.per_second")], [];
    l2_clock, Hertz, Timing, "Clock of L2 during the profiled launch.",
        [Metric("lts__cycles_elapsed.avg.per_second")], [];
    dram_clock, Hertz, Timing, "Clock of device memory during the profiled launch.",
        [Metric("dram__cycles_elapsed.avg.per_second")], [];
}
