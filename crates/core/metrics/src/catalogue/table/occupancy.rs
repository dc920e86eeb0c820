//! Metrics of the launch, and of the number of blocks that fit on a multiprocessor.

use super::source::{at, metric};
use crate::catalogue::MetricGroup::Occupancy;
use crate::catalogue::{FieldGroup as F, MetricInfo, MetricUnit};

metrics! {
    waves_per_sm, Waves, Occupancy,
        "Number of times that all multiprocessors must be filled with blocks to run the grid.",
        [metric("launch__waves_per_multiprocessor")],
        [at(F::Detailed, "waves_per_sm"), at(F::Occupancy, "waves_per_sm")];
    occupancy_limit_registers, Blocks, Occupancy,
        "Blocks per multiprocessor that registers allow.",
        [metric("launch__occupancy_limit_registers")],
        [at(F::Occupancy, "occupancy_limit_registers"),
         at(F::Compute, "occupancy_limit_registers")];
    occupancy_limit_shared_memory, Blocks, Occupancy,
        "Blocks per multiprocessor that shared memory allows.",
        [metric("launch__occupancy_limit_shared_mem")],
        [at(F::Occupancy, "occupancy_limit_shared_mem"),
         at(F::Compute, "occupancy_limit_shared_mem")];
    occupancy_limit_warps, Blocks, Occupancy, "Blocks per multiprocessor that warps allow.",
        [metric("launch__occupancy_limit_warps")],
        [at(F::Occupancy, "occupancy_limit_warps"), at(F::Compute, "occupancy_limit_warps")];
    occupancy_limit_blocks, Blocks, Occupancy, "Maximum number of blocks per multiprocessor, \
                                                whatever their size.",
        [metric("launch__occupancy_limit_blocks")],
        [at(F::Occupancy, "occupancy_limit_blocks"), at(F::Compute, "occupancy_limit_blocks")];
    theoretical_occupancy, Percent, Occupancy,
        "Warps that can be resident, in percent of the multiprocessor's maximum.",
        [metric("sm__maximum_warps_per_active_cycle_pct")], [];
    registers_per_thread, Registers, Occupancy, "Registers of a thread.",
        [metric("launch__registers_per_thread")], [at(F::Compute, "registers_per_thread")];
    block_size, Threads, Occupancy, "Threads of a block.",
        [metric("launch__block_size")], [at(F::Occupancy, "block_size")];
    grid_size, Blocks, Occupancy, "Blocks of the grid.",
        [metric("launch__grid_size")], [at(F::Occupancy, "grid_size")];
    shared_memory_per_block, Bytes, Occupancy,
        "Shared memory that a block occupies, including the system's part.",
        [metric("launch__shared_mem_per_block")], [at(F::Occupancy, "shared_mem_per_block")];
    registers_allocated_per_thread, Registers, Occupancy,
        "Registers of a thread, rounded up to the hardware's allocation unit.",
        [metric("launch__registers_per_thread_allocated")], [];
    local_memory_per_thread, Bytes, Occupancy,
        "Local memory of a thread: spilled registers, and arrays that are not in registers.",
        [], [];
    static_shared_memory_per_block, Bytes, Occupancy,
        "Shared memory of a block that the kernel declares (static).",
        [metric("launch__shared_mem_per_block_static")], [];
    dynamic_shared_memory_per_block, Bytes, Occupancy,
        "Shared memory of a block that the launch requests (dynamic).",
        [metric("launch__shared_mem_per_block_dynamic")], [];
    driver_shared_memory_per_block, Bytes, Occupancy,
        "Shared memory of a block that the system reserves.",
        [metric("launch__shared_mem_per_block_driver")], [];
    shared_memory_configured, Bytes, Occupancy,
        "Shared memory of a multiprocessor, as the driver configured it; the rest is L1.",
        [metric("launch__shared_mem_config_size")], [];
    occupancy_limit_barriers, Blocks, Occupancy,
        "Blocks per multiprocessor that named barriers allow.",
        [metric("launch__occupancy_limit_barriers")], [];
    cluster_size, Blocks, Occupancy, "Blocks of a cluster; 0 if the launch has none.",
        [metric("launch__cluster_size")], [];
}
