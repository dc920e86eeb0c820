//! Metrics of the utilisation of the GPU's units and of its memory.

use super::source::{at, metric, quotient, scaled};
use super::terms::{DRAM_BYTES, DRAM_READ_AND_WRITTEN, DURATION};
use crate::catalogue::MetricGroup::{Detailed, Memory, SpeedOfLight};
use crate::catalogue::{FieldGroup as F, MetricInfo, MetricUnit};

metrics! {
    compute_memory_throughput, Percent, SpeedOfLight,
        "Throughput of the GPU's busiest unit, compute or memory, in percent of its peak.",
        [metric("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed").until(120)],
        [at(F::SpeedOfLight, "compute_memory_throughput_pct"),
         at(F::SpeedOfLight, "compute_throughput_pct")];
    sm_throughput, Percent, SpeedOfLight,
        "Throughput of the multiprocessors' busiest unit, in percent of its peak.",
        [metric("sm__throughput.avg.pct_of_peak_sustained_elapsed")],
        [at(F::SpeedOfLight, "sm_throughput_pct")];
    gpu_dram_throughput, Percent, SpeedOfLight,
        "Throughput of the path from the GPU to device memory, in percent of its peak.",
        [metric("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed").discrete()],
        [at(F::SpeedOfLight, "gpu_dram_throughput_pct"),
         at(F::SpeedOfLight, "memory_throughput_pct")];
    dram_throughput, Percent, SpeedOfLight,
        "Throughput of device memory, in percent of its peak.",
        [metric("dram__throughput.avg.pct_of_peak_sustained_elapsed").discrete()],
        [at(F::SpeedOfLight, "dram_throughput_pct")];
    l1_hit_rate, Percent, Detailed, "Sectors that accesses find in L1, in percent.",
        [metric("l1tex__t_sector_hit_rate.pct")], [at(F::Detailed, "l1_hit_rate_pct")];
    l2_hit_rate, Percent, Detailed, "Sectors that accesses find in L2, in percent.",
        [metric("lts__t_sector_hit_rate.pct").until(120)], [at(F::Detailed, "l2_hit_rate_pct")];
    achieved_occupancy, Percent, Detailed,
        "Warps resident on average, in percent of the multiprocessor's maximum.",
        [metric("sm__warps_active.avg.pct_of_peak_sustained_active")],
        [at(F::Detailed, "warp_occupancy_pct")];
    sm_active_cycles, Percent, Detailed, "Cycles in which a multiprocessor had work.",
        [metric("sm__cycles_active.avg.pct_of_peak_sustained_elapsed")],
        [at(F::Detailed, "sm_active_cycles_pct")];
    instructions_per_cycle, InstructionsPerCycle, Detailed,
        "Warp instructions per active cycle of a multiprocessor.",
        [metric("sm__inst_executed.avg.per_cycle_active")],
        [at(F::Detailed, "instructions_per_cycle"), at(F::Compute, "instructions_per_cycle")];
    dram_average_bandwidth, BytesPerSecond, Memory,
        "Device memory bandwidth of one channel, on average.",
        [metric("dram__bytes.avg.per_second").discrete()],
        [scaled(F::Memory, "dram_avg_bandwidth_gb_s", 1e-9)];
    dram_bandwidth, BytesPerSecond, Memory, "Device memory bandwidth.",
        [metric("dram__bytes.sum.per_second").discrete(),
         quotient(DRAM_BYTES, DURATION).discrete(),
         quotient(DRAM_READ_AND_WRITTEN, DURATION).discrete().until(119)],
        [scaled(F::Memory, "dram_total_bandwidth_gb_s", 1e-9)];
    dram_active_cycles, Percent, Memory, "Cycles in which device memory transferred data.",
        [metric("dram__cycles_active.avg.pct_of_peak_sustained_elapsed").discrete()],
        [at(F::Memory, "dram_active_cycles_pct")];
    l1_writeback_active, Percent, Memory, "Cycles in which L1 returned data to registers.",
        [metric("l1tex__lsu_writeback_active.avg.pct_of_peak_sustained_elapsed")],
        [at(F::Memory, "l1_writeback_active_pct")];
    l1_read_sectors, Percent, Memory, "Sectors that L1 read from L2, in percent of the peak.",
        [metric("l1tex__m_xbar2l1tex_read_sectors.avg.pct_of_peak_sustained_elapsed")],
        [at(F::Memory, "l1_read_sectors_pct")];
    l2_throughput, Percent, Memory, "Throughput of L2's busiest unit, in percent of its peak.",
        [metric("lts__throughput.avg.pct_of_peak_sustained_elapsed").until(120)],
        [at(F::Memory, "l2_throughput_pct")];
    l1_throughput, Percent, SpeedOfLight,
        "Throughput of L1's busiest unit, in percent of its peak.",
        [metric("l1tex__throughput.avg.pct_of_peak_sustained_active")], [];
    achieved_warps, Warps, Detailed, "Warps resident on average in an active multiprocessor.",
        [metric("sm__warps_active.avg.per_cycle_active")], [];
    dram_read_bytes, Bytes, Memory, "Bytes read from device memory.",
        [metric("dram__bytes_read.sum").discrete().until(119),
         metric("dram__bytes_op_read.sum").discrete().since(120)], [];
    dram_write_bytes, Bytes, Memory, "Bytes written to device memory.",
        [metric("dram__bytes_write.sum").discrete().until(119),
         metric("dram__bytes_op_write.sum").discrete().since(120)], [];
}
