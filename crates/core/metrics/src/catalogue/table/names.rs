//! NVIDIA's metrics that several rows use.

pub(super) const GLOBAL_LOAD_REQUESTS: &str = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum";
pub(super) const GLOBAL_LOAD_SECTORS: &str = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum";
pub(super) const GLOBAL_STORE_REQUESTS: &str = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum";
pub(super) const GLOBAL_STORE_SECTORS: &str = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum";
pub(super) const L2_SECTORS: &str = "memory_l2_theoretical_sectors_global";
pub(super) const L2_IDEAL: &str = "memory_l2_theoretical_sectors_global_ideal";
pub(super) const FADD: &str = "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum";
pub(super) const FMUL: &str = "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum";
pub(super) const FFMA: &str = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum";
pub(super) const DADD: &str = "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum";
pub(super) const DMUL: &str = "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum";
pub(super) const DFMA: &str = "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum";
pub(super) const HADD: &str = "smsp__sass_thread_inst_executed_op_hadd_pred_on.sum";
pub(super) const HMUL: &str = "smsp__sass_thread_inst_executed_op_hmul_pred_on.sum";
pub(super) const HFMA: &str = "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum";

pub(super) const FADD2: &str = "smsp__sass_thread_inst_executed_op_fadd2_pred_on.sum";
pub(super) const FMUL2: &str = "smsp__sass_thread_inst_executed_op_fmul2_pred_on.sum";
pub(super) const FFMA2: &str = "smsp__sass_thread_inst_executed_op_ffma2_pred_on.sum";

pub(super) const TIME: &str = "gpu__time_duration.sum";

// Operations of tensor cores by the type of the operands: a multiply-add counts as two, and with
// sparsity the skipped zeros count, too.
pub(super) const FP16: &str = "sm__ops_path_tensor_src_fp16.sum";
pub(super) const FP16_TO_16: &str = "sm__ops_path_tensor_src_fp16_dst_fp16.sum";
pub(super) const FP16_TO_32: &str = "sm__ops_path_tensor_src_fp16_dst_fp32.sum";
/// Turing's counter of all operations that accumulate in f32.
pub(super) const TURING: &str = "sm__ops_path_tensor_src_fp16_bf16_tf32_dst_fp32.sum";
pub(super) const BF16: &str = "sm__ops_path_tensor_src_bf16_dst_fp32.sum";
pub(super) const TF32: &str = "sm__ops_path_tensor_src_tf32_dst_fp32.sum";
pub(super) const FP64: &str = "sm__ops_path_tensor_src_fp64.sum";
pub(super) const FP8: &str = "sm__ops_path_tensor_src_fp8.sum";
pub(super) const FP8_DENSE: &str = "sm__ops_path_tensor_src_fp8_sparsity_off.sum";
pub(super) const FP8_SPARSE: &str = "sm__ops_path_tensor_src_fp8_sparsity_on.sum";
pub(super) const FP8_TO_16: &str = "sm__ops_path_tensor_src_fp8_dst_fp16.sum";
pub(super) const FP8_TO_32: &str = "sm__ops_path_tensor_src_fp8_dst_fp32.sum";
pub(super) const FP46_TO_16: &str = "sm__ops_path_tensor_src_fp4_fp6_dst_fp16.sum";
pub(super) const FP46_TO_32: &str = "sm__ops_path_tensor_src_fp4_fp6_dst_fp32.sum";
pub(super) const NARROW_TO_16: &str = "sm__ops_path_tensor_src_fp4_fp6_fp8_dst_fp16.sum";
pub(super) const NARROW_TO_32: &str = "sm__ops_path_tensor_src_fp4_fp6_fp8_dst_fp32.sum";
pub(super) const FP4: &str = "sm__ops_path_tensor_src_fp4_dst_fp32.sum";
pub(super) const INT8: &str = "sm__ops_path_tensor_src_int8.sum";
pub(super) const INT4: &str = "sm__ops_path_tensor_src_int4.sum";
pub(super) const INT1: &str = "sm__ops_path_tensor_src_int1.sum";
