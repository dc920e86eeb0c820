//! Metrics of access patterns in memory.

use super::names::{
    GLOBAL_LOAD_REQUESTS, GLOBAL_LOAD_SECTORS, GLOBAL_STORE_REQUESTS, GLOBAL_STORE_SECTORS,
    L2_IDEAL, L2_SECTORS,
};
use super::source::{at, difference, metric, quotient, ratio, sum};
use crate::catalogue::MetricGroup::AccessPattern;
use crate::catalogue::{FieldGroup as F, MetricInfo, MetricUnit};

metrics! {
    sectors_per_global_load, SectorsPerRequest, AccessPattern,
        "Sectors of 32 bytes that a warp's load from global memory touches, on average.",
        [ratio(GLOBAL_LOAD_SECTORS, GLOBAL_LOAD_REQUESTS)],
        [at(F::AccessPattern, "l1_load_sectors_per_req")];
    sectors_per_global_store, SectorsPerRequest, AccessPattern,
        "Sectors of 32 bytes that a warp's store to global memory touches, on average.",
        [ratio(GLOBAL_STORE_SECTORS, GLOBAL_STORE_REQUESTS)],
        [at(F::AccessPattern, "l1_store_sectors_per_req")];
    l2_sectors_global, Sectors, AccessPattern,
        "Sectors that loads from and stores to global memory touch, each once per request.",
        [metric(L2_SECTORS)], [at(F::AccessPattern, "l2_theoretical_sectors_global")];
    l2_sectors_global_ideal, Sectors, AccessPattern,
        "Sectors that loads and stores would touch if the threads of each request used adjacent \
         addresses.",
        [metric(L2_IDEAL)], [at(F::AccessPattern, "l2_theoretical_sectors_global_ideal")];
    l2_sectors_global_excessive, Sectors, AccessPattern, "Touched sectors in excess of the ideal.",
        [difference(L2_SECTORS, L2_IDEAL),
         metric("derived__memory_l2_theoretical_sectors_global_excessive")],
        [at(F::AccessPattern, "l2_theoretical_sectors_global_excessive")];
    l2_sectors_global_excess, Ratio, AccessPattern,
        "Share of the touched sectors that exceeds the ideal number.",
        [quotient(&[(L2_SECTORS, 1.0), (L2_IDEAL, -1.0)], &[(L2_SECTORS, 1.0)])],
        [at(F::AccessPattern, "l2_excess_frac")];
    shared_load_conflicts, Conflicts, AccessPattern,
        "Additional passes of loads from shared memory because of bank conflicts.",
        [metric("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum")],
        [at(F::AccessPattern, "shared_bank_conflicts_load_sum")];
    shared_store_conflicts, Conflicts, AccessPattern,
        "Additional passes of stores to shared memory because of bank conflicts.",
        [metric("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum")],
        [at(F::AccessPattern, "shared_bank_conflicts_store_sum")];
    global_load_requests, Requests, AccessPattern, "Loads from global memory by warps.",
        [metric(GLOBAL_LOAD_REQUESTS)], [];
    global_load_sectors, Sectors, AccessPattern, "Sectors that loads from global memory touch.",
        [metric(GLOBAL_LOAD_SECTORS)], [];
    global_store_requests, Requests, AccessPattern, "Stores to global memory by warps.",
        [metric(GLOBAL_STORE_REQUESTS)], [];
    global_store_sectors, Sectors, AccessPattern, "Sectors that stores to global memory touch.",
        [metric(GLOBAL_STORE_SECTORS)], [];
    global_atomic_requests, Requests, AccessPattern,
        "Atomics on global memory by warps that return the old value.",
        [metric("l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum")], [];
    global_reduction_requests, Requests, AccessPattern,
        "Atomics on global memory by warps that return nothing.",
        [metric("l1tex__t_requests_pipe_lsu_mem_global_op_red.sum")], [];
    shared_load_requests, Requests, AccessPattern, "Loads from shared memory by warps.",
        [metric("smsp__sass_inst_executed_op_shared_ld.sum")], [];
    shared_load_wavefronts, Wavefronts, AccessPattern, "Passes of loads from shared memory.",
        [metric("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum")], [];
    shared_store_requests, Requests, AccessPattern, "Stores to shared memory by warps.",
        [metric("smsp__sass_inst_executed_op_shared_st.sum")], [];
    shared_store_wavefronts, Wavefronts, AccessPattern, "Passes of stores to shared memory.",
        [metric("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum")], [];
    shared_atomic_requests, Requests, AccessPattern, "Atomics on shared memory by warps.",
        [metric("smsp__inst_executed_op_shared_atom.sum")], [];
    local_load_requests, Requests, AccessPattern, "Loads from local memory by warps.",
        [metric("l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum")], [];
    local_store_requests, Requests, AccessPattern, "Stores to local memory by warps.",
        [metric("l1tex__t_requests_pipe_lsu_mem_local_op_st.sum")], [];
    constant_requests, Requests, AccessPattern, "Loads from constant memory by warps.", [], [];
    local_bytes, Bytes, AccessPattern, "Bytes that threads read from and wrote to local memory.",
        [], [];
    global_load_efficiency, Percent, AccessPattern,
        "Bytes that threads loaded, in percent of the bytes of the touched sectors.",
        [metric("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct")], [];
    global_store_efficiency, Percent, AccessPattern,
        "Bytes that threads stored, in percent of the bytes of the touched sectors.",
        [metric("smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct")], [];
    shared_wavefronts, Wavefronts, AccessPattern, "Passes of all accesses to shared memory.",
        [metric("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum")], [];
    shared_wavefronts_excessive, Wavefronts, AccessPattern,
        "Additional passes of all accesses to shared memory because of bank conflicts.",
        [difference("memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"),
         metric("derived__memory_l1_wavefronts_shared_excessive")], [];
    local_load_instructions, Instructions, AccessPattern,
        "Warp instructions that load from local memory.",
        [metric("smsp__sass_inst_executed_op_local_ld.sum")], [];
    local_store_instructions, Instructions, AccessPattern,
        "Warp instructions that store to local memory.",
        [metric("smsp__sass_inst_executed_op_local_st.sum")], [];
    local_sector_bytes, Bytes, AccessPattern,
        "Bytes of the sectors that accesses to local memory touch in L1.",
        [sum(&["l1tex__t_bytes_pipe_lsu_mem_local_op_ld.sum",
               "l1tex__t_bytes_pipe_lsu_mem_local_op_st.sum"])], [];
    spill_instructions, Instructions, AccessPattern,
        "Warp instructions that spill or reload registers.",
        [metric("sass__inst_executed_register_spilling")], [];
    spill_requests, Requests, AccessPattern,
        "Requests of warps to local memory that spill or reload registers.",
        [metric("derived__local_spilling_requests")], [];
}
