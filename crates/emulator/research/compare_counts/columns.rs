//! The compared numbers: counts of the emulator, and the metrics of Nsight Compute that correspond
//! to them.

/// A number that is compared for each launch.
pub struct Column {
    /// Heading of the table's column in which the number appears. Several numbers can share a
    /// heading.
    pub group: &'static str,
    pub name: &'static str,
    /// The emulator's counts whose sum is the emulator's value of the number.
    pub counts: &'static [&'static str],
    /// Metrics of Nsight Compute whose sum is the GPU's value of the number.
    pub metrics: &'static [&'static str],
}

const fn column(
    group: &'static str,
    name: &'static str,
    counts: &'static [&'static str],
    metrics: &'static [&'static str],
) -> Column {
    Column { group, name, counts, metrics }
}

pub const COLUMNS: &[Column] = &[
    column(
        "global requests",
        "loads",
        &["global_load_requests"],
        &["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"],
    ),
    column(
        "global requests",
        "stores",
        &["global_store_requests"],
        &["l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"],
    ),
    column(
        "global sectors",
        "loads",
        &["global_load_sectors"],
        &["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"],
    ),
    column(
        "global sectors",
        "stores",
        &["global_store_sectors"],
        &["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"],
    ),
    column("f32", "fadd", &["fadd"], &["smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"]),
    column("f32", "fmul", &["fmul"], &["smsp__sass_thread_inst_executed_op_fmul_pred_on.sum"]),
    column("f32", "ffma", &["ffma"], &["smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"]),
    column("f64", "dadd", &["dadd"], &["smsp__sass_thread_inst_executed_op_dadd_pred_on.sum"]),
    column("f64", "dmul", &["dmul"], &["smsp__sass_thread_inst_executed_op_dmul_pred_on.sum"]),
    column("f64", "dfma", &["dfma"], &["smsp__sass_thread_inst_executed_op_dfma_pred_on.sum"]),
    column("f16", "hadd", &["hadd"], &["smsp__sass_thread_inst_executed_op_hadd_pred_on.sum"]),
    column("f16", "hmul", &["hmul"], &["smsp__sass_thread_inst_executed_op_hmul_pred_on.sum"]),
    column("f16", "hfma", &["hfma"], &["smsp__sass_thread_inst_executed_op_hfma_pred_on.sum"]),
    column(
        "shared requests",
        "loads",
        &["shared_load_requests"],
        &["smsp__sass_inst_executed_op_shared_ld.sum", "smsp__inst_executed_op_ldsm.sum"],
    ),
    column(
        "shared requests",
        "stores",
        &["shared_store_requests"],
        &["smsp__sass_inst_executed_op_shared_st.sum", "smsp__inst_executed_op_ldgsts.sum"],
    ),
    column(
        "shared wavefronts",
        "loads",
        &["shared_load_wavefronts"],
        &["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"],
    ),
    column(
        "shared wavefronts",
        "stores",
        &["shared_store_wavefronts"],
        &["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"],
    ),
    column(
        "shared conflicts",
        "loads",
        &["shared_load_conflicts"],
        &["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"],
    ),
    column(
        "shared conflicts",
        "stores",
        &["shared_store_conflicts"],
        &[
            "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
            "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
        ],
    ),
    other(
        "tensor operations",
        &["tensor_half_ops"],
        &["sm__ops_path_tensor_src_fp16.sum", "sm__ops_path_tensor_src_bf16_dst_fp32.sum"],
    ),
    other(
        "shared atomics",
        &["shared_atomic_requests"],
        &["smsp__inst_executed_op_shared_atom.sum"],
    ),
    other(
        "atomics",
        &["global_atomic_requests"],
        &["l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum"],
    ),
    other(
        "sectors of atomics",
        &["global_atomic_sectors"],
        &["l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum"],
    ),
    other(
        "reductions",
        &["global_reduction_requests"],
        &["l1tex__t_requests_pipe_lsu_mem_global_op_red.sum"],
    ),
    other(
        "sectors of reductions",
        &["global_reduction_sectors"],
        &["l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum"],
    ),
    other(
        "local loads",
        &["local_load_requests"],
        &["l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum"],
    ),
    other(
        "local stores",
        &["local_store_requests"],
        &["l1tex__t_requests_pipe_lsu_mem_local_op_st.sum"],
    ),
    column(
        "sectors by addresses",
        "touched",
        &["global_load_sectors", "global_store_sectors", "global_atomic_touched_sectors"],
        &["memory_l2_theoretical_sectors_global"],
    ),
    column(
        "sectors by addresses",
        "ideal",
        &["global_load_ideal_sectors", "global_store_ideal_sectors", "global_atomic_ideal_sectors"],
        &["memory_l2_theoretical_sectors_global_ideal"],
    ),
];

const fn other(
    name: &'static str,
    counts: &'static [&'static str],
    metrics: &'static [&'static str],
) -> Column {
    column("other", name, counts, metrics)
}

/// Counters that explain differences between counts. The table does not show them. Instructions are
/// not compared, because the PTX and the machine code have different instructions.
const MORE: &[&str] = &[
    "smsp__inst_executed.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
    "smsp__sass_inst_executed_op_global_ld.sum",
    "smsp__sass_inst_executed_op_global_st.sum",
    "smsp__sass_inst_executed_op_local_ld.sum",
    "smsp__sass_inst_executed_op_local_st.sum",
    "smsp__inst_executed_op_branch.sum",
    "smsp__sass_branch_targets_threads_divergent.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
];

/// Returns all metrics without repetitions.
pub fn metrics() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().flat_map(|column| column.metrics).chain(MORE).copied()
}

/// Returns the names of the metrics in the form that Nsight Compute's `--metrics` requires.
pub fn requested() -> String {
    // `--section SourceCounters` supplies the source metrics.
    metrics().filter(|name| !name.starts_with("memory_")).collect::<Vec<_>>().join(",")
}
