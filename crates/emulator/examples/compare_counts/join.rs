//! Joins the emulator's counts with the output of Nsight Compute.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

use super::Failure;
use super::device::Counts;

/// A launch on the emulator.
pub struct Run {
    pub label: &'static str,
    pub kernel: &'static str,
    pub counts: Counts,
}

/// A launch that Nsight Compute profiled.
pub struct Profiled {
    kernel: String,
    values: HashMap<String, f64>,
}

/// A column of the table: what it is called, the emulator's counts that add up to it, and the
/// metrics of Nsight Compute that do.
struct Column {
    name: &'static str,
    counts: &'static [&'static str],
    metrics: &'static [&'static str],
}

const fn column(
    name: &'static str,
    counts: &'static [&'static str],
    metrics: &'static [&'static str],
) -> Column {
    Column { name, counts, metrics }
}

const COLUMNS: &[Column] = &[
    column(
        "global load requests",
        &["global_load_requests"],
        &["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"],
    ),
    column(
        "global load sectors",
        &["global_load_sectors"],
        &["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"],
    ),
    column(
        "global store requests",
        &["global_store_requests"],
        &["l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"],
    ),
    column(
        "global store sectors",
        &["global_store_sectors"],
        &["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"],
    ),
    column(
        "global sectors (theoretical)",
        &["global_load_sectors", "global_store_sectors"],
        &["memory_l2_theoretical_sectors_global"],
    ),
    column(
        "global sectors (ideal)",
        &["global_load_ideal_sectors", "global_store_ideal_sectors"],
        &["memory_l2_theoretical_sectors_global_ideal"],
    ),
    column("fadd", &["fadd"], &["smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"]),
    column("fmul", &["fmul"], &["smsp__sass_thread_inst_executed_op_fmul_pred_on.sum"]),
    column("ffma", &["ffma"], &["smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"]),
    column("dadd", &["dadd"], &["smsp__sass_thread_inst_executed_op_dadd_pred_on.sum"]),
    column("dmul", &["dmul"], &["smsp__sass_thread_inst_executed_op_dmul_pred_on.sum"]),
    column("dfma", &["dfma"], &["smsp__sass_thread_inst_executed_op_dfma_pred_on.sum"]),
    column("hadd", &["hadd"], &["smsp__sass_thread_inst_executed_op_hadd_pred_on.sum"]),
    column("hmul", &["hmul"], &["smsp__sass_thread_inst_executed_op_hmul_pred_on.sum"]),
    column("hfma", &["hfma"], &["smsp__sass_thread_inst_executed_op_hfma_pred_on.sum"]),
    column(
        "tensor operations, half",
        &["tensor_half_ops"],
        &["sm__ops_path_tensor_src_fp16.sum", "sm__ops_path_tensor_src_bf16_dst_fp32.sum"],
    ),
    column(
        "shared load requests",
        &["shared_load_requests"],
        &["smsp__sass_inst_executed_op_shared_ld.sum"],
    ),
    column(
        "shared load wavefronts",
        &["shared_load_wavefronts"],
        &["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"],
    ),
    column(
        "shared load conflicts",
        &["shared_load_conflicts"],
        &["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"],
    ),
    column(
        "shared store requests",
        &["shared_store_requests"],
        &["smsp__sass_inst_executed_op_shared_st.sum"],
    ),
    column(
        "shared store wavefronts",
        &["shared_store_wavefronts"],
        &["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"],
    ),
    column(
        "shared store conflicts",
        &["shared_store_conflicts"],
        &["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"],
    ),
    column(
        "shared atomic requests",
        &["shared_atomic_requests"],
        &["smsp__inst_executed_op_shared_atom.sum"],
    ),
    column(
        "global atomic requests",
        &["global_atomic_requests"],
        &["l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum"],
    ),
    column(
        "global atomic sectors",
        &["global_atomic_sectors"],
        &["l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum"],
    ),
    column(
        "global reduction requests",
        &["global_reduction_requests"],
        &["l1tex__t_requests_pipe_lsu_mem_global_op_red.sum"],
    ),
    column(
        "global reduction sectors",
        &["global_reduction_sectors"],
        &["l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum"],
    ),
    column(
        "local load requests",
        &["local_load_requests"],
        &["l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum"],
    ),
    column(
        "local store requests",
        &["local_store_requests"],
        &["l1tex__t_requests_pipe_lsu_mem_local_op_st.sum"],
    ),
    column("warp instructions", &["warp_instructions"], &["smsp__inst_executed.sum"]),
];

/// Counters that tell why a count differs; not in the table.
const MORE: &[&str] = &[
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
    "smsp__sass_inst_executed_op_global_ld.sum",
    "smsp__sass_inst_executed_op_global_st.sum",
    "smsp__sass_inst_executed_op_local_ld.sum",
    "smsp__sass_inst_executed_op_local_st.sum",
    "smsp__inst_executed_op_ldsm.sum",
    "smsp__inst_executed_op_ldgsts.sum",
    "smsp__inst_executed_op_branch.sum",
    "smsp__sass_branch_targets_threads_divergent.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
];

/// Names of all metrics, as Nsight Compute's `--metrics` takes them.
pub fn metrics() -> String {
    // Source metrics come with `--section SourceCounters`.
    let counter = |name: &&&str| !name.starts_with("memory_");
    let ours = COLUMNS.iter().flat_map(|column| column.metrics).filter(counter);
    ours.chain(MORE).copied().collect::<Vec<_>>().join(",")
}

/// The fields of a line in which every field is quoted, or none.
fn fields(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let (mut quoted, mut chars) = (false, line.chars().peekable());
    while let Some(c) = chars.next() {
        match (c, out.last_mut()) {
            ('"', Some(field)) if quoted && chars.peek() == Some(&'"') => {
                field.push('"');
                chars.next();
            }
            ('"', _) => quoted = !quoted,
            (',', _) if !quoted => out.push(String::new()),
            (c, Some(field)) => field.push(c),
            (_, None) => {}
        }
    }
    out
}

/// Reads the raw page of Nsight Compute as CSV. Lines before the header are messages.
pub fn read(path: &Path) -> Result<Vec<Profiled>, Failure> {
    let text = std::fs::read_to_string(path)?;
    let mut lines = text.lines().skip_while(|line| !line.starts_with("\"ID\","));
    let header = lines.next().map(fields).ok_or("no header line in the CSV")?;
    lines.next().ok_or("no line of units in the CSV")?;
    let kernel = header.iter().position(|name| name == "Kernel Name").ok_or("no kernel names")?;
    let mut out = Vec::new();
    for line in lines.filter(|line| line.starts_with('"')) {
        let row = fields(line);
        let name = row.get(kernel).ok_or("a line without a kernel name")?;
        let values = header.iter().zip(&row).filter_map(|(name, value)| {
            // A group of thousands is set off by a comma in any locale that we ask for.
            value.replace(',', "").parse().ok().map(|value| (name.clone(), value))
        });
        let kernel = name.split('(').next().unwrap_or(name).to_owned();
        out.push(Profiled { kernel, values: values.collect() });
    }
    Ok(out)
}

/// The counts of a launch that are not zero.
pub fn listing(run: &Run) -> String {
    let mut out = format!("\n{}\n", run.label);
    for (name, value) in run.counts.iter().filter(|(_, value)| **value != 0) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {name:28} {value:>12}");
    }
    out
}

/// A table for each column: kernel, emulator, Nsight Compute, ratio; kernels without any are left
/// out.
pub fn table(runs: &[Run], profiled: &[Profiled]) -> Result<String, Failure> {
    if runs.len() != profiled.len() {
        let message = format!("{} launches here, {} in the CSV", runs.len(), profiled.len());
        return Err(message.into());
    }
    let mut out = String::new();
    for column in COLUMNS {
        let (mut rows, mut equal, mut near) = (String::new(), 0, 0);
        for (run, profiled) in runs.iter().zip(profiled) {
            if run.kernel != profiled.kernel {
                let message = format!("{} here is {} in the CSV", run.kernel, profiled.kernel);
                return Err(message.into());
            }
            let sum = |name: &&str| run.counts.get(*name).copied().ok_or(format!("no {name}"));
            let ours = column.counts.iter().map(sum).sum::<Result<u64, String>>()? as f64;
            let values = column.metrics.iter().map(|name| profiled.values.get(*name));
            let Some(theirs) = values.sum::<Option<f64>>() else { continue };
            if ours == 0.0 && theirs == 0.0 {
                continue;
            }
            let ratio = ours / theirs;
            equal += u32::from(ours == theirs);
            near += u32::from((ratio - 1.0).abs() <= 0.01);
            let _ = writeln!(rows, "| {} | {ours} | {theirs} | {ratio:.4} |", run.label);
        }
        if !rows.is_empty() {
            let of = rows.lines().count();
            let _ =
                writeln!(out, "\n### {}: {equal} equal, {near} within 1 %, of {of}\n", column.name);
            let _ = writeln!(out, "| kernel | emulator | ncu | ratio |\n| --- | --- | --- | --- |");
            out.push_str(&rows);
        }
    }
    Ok(out)
}
