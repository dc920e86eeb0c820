//! The details page: a record per kernel, section and metric, and records of rules.

use std::collections::BTreeMap;

use super::csv::{Columns, NcuCsvError};
use super::kernel::{NcuKernel, NcuRule};
use crate::profile::text::{Convention, Record};

/// Labels of metrics by section, and NVIDIA's names of those that a label tells for certain. Some
/// labels stand in several sections with other meanings. With `--print-metric-name name` the page
/// has the names themselves.
const LABELS: [(&str, &str, &str); 42] = [
    (SOL, "Elapsed Cycles", "gpc__cycles_elapsed.max"),
    (SOL, "Duration", "gpu__time_duration.sum"),
    (SOL, "Memory Throughput", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
    (SOL, "DRAM Throughput", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"),
    (SOL, "L1/TEX Cache Throughput", "l1tex__throughput.avg.pct_of_peak_sustained_active"),
    (SOL, "L2 Cache Throughput", "lts__throughput.avg.pct_of_peak_sustained_elapsed"),
    (SOL, "Compute (SM) Throughput", "sm__throughput.avg.pct_of_peak_sustained_elapsed"),
    (SOL, "DRAM Frequency", "dram__cycles_elapsed.avg.per_second"),
    (COMPUTE, "Executed Ipc Active", "sm__inst_executed.avg.per_cycle_active"),
    (MEMORY, "Memory Throughput", "dram__bytes.sum.per_second"),
    (MEMORY, "L1/TEX Hit Rate", "l1tex__t_sector_hit_rate.pct"),
    (MEMORY, "L2 Hit Rate", "lts__t_sector_hit_rate.pct"),
    (MEMORY, "Local Memory Spilling Requests", "derived__local_spilling_requests"),
    (SCHEDULER, "One or More Eligible", "smsp__issue_active.avg.pct_of_peak_sustained_active"),
    (SCHEDULER, "Active Warps Per Scheduler", "smsp__warps_active.avg.per_cycle_active"),
    (SCHEDULER, "Eligible Warps Per Scheduler", "smsp__warps_eligible.avg.per_cycle_active"),
    (
        WARPS,
        "Warp Cycles Per Issued Instruction",
        "smsp__average_warp_latency_per_inst_issued.ratio",
    ),
    (WARPS, "Avg. Active Threads Per Warp", "smsp__thread_inst_executed_per_inst_executed.ratio"),
    (INSTRUCTIONS, "Executed Instructions", "smsp__inst_executed.sum"),
    (INSTRUCTIONS, "Issued Instructions", "smsp__inst_issued.sum"),
    (LAUNCH, "Block Size", "launch__block_size"),
    (LAUNCH, "Grid Size", "launch__grid_size"),
    (LAUNCH, "Cluster Size", "launch__cluster_size"),
    (LAUNCH, "Registers Per Thread", "launch__registers_per_thread"),
    (LAUNCH, "Shared Memory Configuration Size", "launch__shared_mem_config_size"),
    (LAUNCH, "Driver Shared Memory Per Block", "launch__shared_mem_per_block_driver"),
    (LAUNCH, "Dynamic Shared Memory Per Block", "launch__shared_mem_per_block_dynamic"),
    (LAUNCH, "Static Shared Memory Per Block", "launch__shared_mem_per_block_static"),
    (LAUNCH, "Threads", "launch__thread_count"),
    (LAUNCH, "Waves Per SM", "launch__waves_per_multiprocessor"),
    (OCCUPANCY, "Block Limit Barriers", "launch__occupancy_limit_barriers"),
    (OCCUPANCY, "Block Limit SM", "launch__occupancy_limit_blocks"),
    (OCCUPANCY, "Block Limit Registers", "launch__occupancy_limit_registers"),
    (OCCUPANCY, "Block Limit Shared Mem", "launch__occupancy_limit_shared_mem"),
    (OCCUPANCY, "Block Limit Warps", "launch__occupancy_limit_warps"),
    (OCCUPANCY, "Theoretical Occupancy", "sm__maximum_warps_per_active_cycle_pct"),
    (OCCUPANCY, "Achieved Occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active"),
    (OCCUPANCY, "Achieved Active Warps Per SM", "sm__warps_active.avg.per_cycle_active"),
    (SOURCE, "Branch Instructions", "smsp__inst_executed_op_branch.sum"),
    (SOURCE, "Branch Efficiency", "smsp__sass_average_branch_targets_threads_uniform.pct"),
    (COMMAND, "Duration", "gpu__time_duration.sum"),
    (COMMAND, "Elapsed Cycles", "gpc__cycles_elapsed.max"),
];

const SOL: &str = "GPU Speed Of Light Throughput";
const COMPUTE: &str = "Compute Workload Analysis";
const MEMORY: &str = "Memory Workload Analysis";
const SCHEDULER: &str = "Scheduler Statistics";
const WARPS: &str = "Warp State Statistics";
const INSTRUCTIONS: &str = "Instruction Statistics";
const LAUNCH: &str = "Launch Statistics";
const OCCUPANCY: &str = "Occupancy";
const SOURCE: &str = "Source Counters";
/// What versions before 2021 call the first.
const COMMAND: &str = "GPU Speed Of Light";

pub(super) fn kernels(
    columns: &Columns<'_>,
    rows: &[Record<'_>],
) -> Result<Vec<NcuKernel>, NcuCsvError> {
    let metric =
        |row: &Record<'_>| columns.field(row, "Metric Name").is_some_and(|name| !name.is_empty());
    let cells = rows.iter().filter(|row| metric(row));
    let cells = cells.filter_map(|row| {
        let index = columns.index("Metric Value")?;
        row.fields.get(index).map(AsRef::as_ref)
    });
    let convention = Convention::of(cells)?;
    let mut kernels: Vec<NcuKernel> = Vec::new();
    let mut places = BTreeMap::new();
    for row in rows {
        let key = (columns.field(row, "Process ID"), columns.field(row, "ID"));
        let place = *places.entry(key).or_insert_with(|| {
            kernels.push(NcuKernel::of(columns, row));
            kernels.len() - 1
        });
        let kernel = &mut kernels[place];
        match metric(row) {
            true => put_metric(kernel, columns, row, convention)?,
            false => kernel.rules.extend(rule(columns, row)),
        }
    }
    Ok(kernels)
}

fn put_metric(
    kernel: &mut NcuKernel,
    columns: &Columns<'_>,
    row: &Record<'_>,
    convention: Convention,
) -> Result<(), NcuCsvError> {
    let field = |name: &str| columns.field(row, name).unwrap_or_default();
    let (section, label) = (field("Section Name"), field("Metric Name"));
    let known = LABELS.iter().find(|known| (known.0, known.1) == (section, label));
    let name = match known {
        Some((_, _, name)) => (*name).to_owned(),
        None if label.contains("__") => label.to_owned(),
        // No metric's name has a slash with spaces, so that labels stay apart from names.
        None => format!("{section} / {label}"),
    };
    // Sections repeat metrics; the first says it.
    if kernel.values.contains_key(&name) || kernel.texts.contains_key(&name) {
        return Ok(());
    }
    match kernel.put(&name, field("Metric Value"), field("Metric Unit"), convention) {
        true => Ok(()),
        false => Err(NcuCsvError::Ambiguous {
            line: row.line,
            column: name,
            cell: field("Metric Value").to_owned(),
        }),
    }
}

fn rule(columns: &Columns<'_>, row: &Record<'_>) -> Option<NcuRule> {
    let field = |name: &str| columns.field(row, name).unwrap_or_default().to_owned();
    let rule = NcuRule {
        section: field("Section Name"),
        name: field("Rule Name"),
        kind: field("Rule Type"),
        description: field("Rule Description"),
    };
    (!rule.name.is_empty()).then_some(rule)
}
