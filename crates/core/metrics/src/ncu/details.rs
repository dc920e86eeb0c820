//! Parses the details page: it has a record for each metric in each section of each kernel, and
//! records of rules.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::csv::{Columns, NcuCsvError};
use super::expected::expected;
use super::kernel::{NcuKernel, NcuRule, Put};
use crate::text::{Cell, Convention, Notes, Record};

/// Labels of metrics by section, with NVIDIA's name of each unambiguous label. Some labels occur in
/// several sections with different meanings. With `--print-metric-name name` the page contains the
/// names themselves.
const LABELS: [(&str, &str, &str); 43] = [
    (SOL, "Elapsed Cycles", "gpc__cycles_elapsed.max"),
    (SOL, "Duration", "gpu__time_duration.sum"),
    (SOL, "Memory Throughput", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
    (SOL, "DRAM Throughput", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"),
    (SOL, "L1/TEX Cache Throughput", "l1tex__throughput.avg.pct_of_peak_sustained_active"),
    (SOL, "L2 Cache Throughput", "lts__throughput.avg.pct_of_peak_sustained_elapsed"),
    (SOL, "Compute (SM) Throughput", "sm__throughput.avg.pct_of_peak_sustained_elapsed"),
    // Some versions print it with `--print-details all`.
    (SOL, "Waves Per SM", "launch__waves_per_multiprocessor"),
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
/// Name of the first section in versions before 2021.
const COMMAND: &str = "GPU Speed Of Light";

pub(super) fn kernels(
    columns: &Columns<'_>,
    rows: &[Record<'_>],
    notes: &mut Notes,
) -> Result<Vec<NcuKernel>, NcuCsvError> {
    let convention = Convention::of(rows.iter().flat_map(|row| cells(columns, row)))?;
    let mut kernels: Vec<NcuKernel> = Vec::new();
    let mut places = BTreeMap::new();
    for row in rows {
        let field = |name: &str| columns.field(row, name);
        let key = (field("Host Name"), field("Process ID"), field("ID"), field("Kernel Name"));
        let place = *places.entry(key).or_insert_with(|| {
            kernels.push(NcuKernel::of(columns, row));
            kernels.len() - 1
        });
        let kernel = &mut kernels[place];
        match is_metric(columns, row) {
            true => put_metric(kernel, columns, row, convention, notes)?,
            false => kernel.rules.extend(rule(columns, row)),
        }
    }
    for kernel in &mut kernels {
        for (name, why) in kernel.contradictions() {
            notes.add(format!("ID {}, {name}", kernel.id), format!("{why}; it has no value"));
        }
    }
    Ok(kernels)
}

fn is_metric(columns: &Columns<'_>, row: &Record<'_>) -> bool {
    columns.field(row, "Metric Name").is_some_and(|name| !name.is_empty())
}

/// Returns the cells from which the locale may be inferred.
fn cells<'a>(columns: &'a Columns<'_>, row: &'a Record<'_>) -> impl Iterator<Item = Cell<'a>> {
    let cell = |column: &'a str, text: &'a str, whole| Cell { text, whole, line: row.line, column };
    let process = columns.field(row, "Process ID");
    let process = process.map(|text| cell("Process ID", text, true));
    let metric = columns.field(row, "Metric Value").filter(|_| is_metric(columns, row));
    let metric = metric.map(|text| {
        let unit = columns.field(row, "Metric Unit").unwrap_or_default();
        let whole = expected(&name(columns, row)).whole && unit.find(['K', 'M', 'G']).is_none();
        cell(columns.field(row, "Metric Name").unwrap_or_default(), text, whole)
    });
    process.into_iter().chain(metric)
}

/// Returns NVIDIA's name of the metric in a row, or else its section and label.
fn name<'r>(columns: &Columns<'_>, row: &'r Record<'_>) -> Cow<'r, str> {
    let field = |name: &str| columns.field(row, name).unwrap_or_default();
    let (section, label) = (field("Section Name"), field("Metric Name"));
    if let Some(name) = named(label) {
        return Cow::Borrowed(name);
    }
    // With `--print-details all` charts and tables use the same labels with other meanings.
    let item = field("Body Item Label");
    if !item.is_empty() {
        let other = || Cow::Owned(format!("{section} / {item} / {label}"));
        return of_item(item, label).unwrap_or_else(other);
    }
    match LABELS.iter().find(|known| (known.0, known.1) == (section, label)) {
        Some((_, _, name)) => Cow::Borrowed(name),
        // No metric name has a slash with spaces, so labels and names stay distinct.
        None => Cow::Owned(format!("{section} / {label}")),
    }
}

/// Returns NVIDIA's name of a metric in one of the tables that `--print-details` prints.
fn of_item(item: &str, label: &str) -> Option<Cow<'static, str>> {
    match (item, label) {
        ("GPU Throughput", "Compute (SM) [%]") => {
            Some("sm__throughput.avg.pct_of_peak_sustained_elapsed".into())
        }
        ("GPU Throughput", "Memory [%]") => {
            Some("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed".into())
        }
        // The labels are the names of the reasons in other letters.
        ("Warp State (All Cycles)", _) => {
            let reason = label.strip_prefix("Stall ").unwrap_or(label);
            let reason = reason.to_lowercase().replace(' ', "_");
            let name = format!("smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio");
            Some(name.into())
        }
        _ => None,
    }
}

/// Returns NVIDIA's name in `gpu__time_duration.sum` or `Duration (gpu__time_duration.sum)`, which
/// `--print-metric-name` selects.
fn named(label: &str) -> Option<&str> {
    let inner = label.strip_suffix(')').and_then(|label| label.rsplit_once('('));
    let name = inner.map_or(label, |(_, name)| name);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':');
    (name.contains("__") && name.chars().all(plain)).then_some(name)
}

/// Relative difference above which two values of a launch cannot be two roundings of one value.
const ROUNDED: f64 = 0.01;

fn put_metric(
    kernel: &mut NcuKernel,
    columns: &Columns<'_>,
    row: &Record<'_>,
    convention: Convention,
    notes: &mut Notes,
) -> Result<(), NcuCsvError> {
    let field = |name: &str| columns.field(row, name).unwrap_or_default();
    let (name, cell) = (name(columns, row), field("Metric Value"));
    let expected = expected(&name);
    let first = kernel.values.get(name.as_ref()).copied();
    // Sections repeat metrics; the first occurrence is used.
    if kernel.texts.contains_key(name.as_ref()) {
        return Ok(());
    }
    let missing = kernel.missing.get(name.as_ref()).cloned();
    let put = kernel.put(&name, cell, field("Metric Unit"), convention, expected);
    let tell = |notes: &mut Notes, why: String| {
        notes.add(format!("line {}, {name}", row.line), format!("{why}; it has no value"));
    };
    match (put, first) {
        (Put::Ambiguous, _) => {
            return Err(NcuCsvError::Ambiguous {
                line: row.line,
                column: name.into_owned(),
                cell: cell.to_owned(),
            });
        }
        (Put::Refused(why), _) if expected.used => tell(notes, why),
        (Put::Refused(_), _) => {}
        (Put::Done, Some(first)) => {
            let again = kernel.values.get(name.as_ref()).copied();
            let apart = again.is_some_and(|again| {
                (again - first).abs() > ROUNDED * first.abs().max(again.abs()).max(1e-12)
            });
            kernel.missing.remove(name.as_ref());
            kernel.texts.remove(name.as_ref());
            kernel.values.insert(name.clone().into_owned(), first);
            if apart {
                let why =
                    format!("the page gives its value twice for ID {}, and differently", kernel.id);
                kernel.refuse(&name, why.clone());
                if expected.used {
                    tell(notes, why);
                }
            }
        }
        // A third row does not resolve the contradiction between two rows.
        (Put::Done, None) => {
            if let Some(reason) = missing.filter(|reason| reason.contains("differently")) {
                kernel.refuse(&name, reason);
            }
        }
    }
    Ok(())
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
