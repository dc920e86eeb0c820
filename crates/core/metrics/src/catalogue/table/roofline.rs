//! Metrics of operations, bytes, clocks, peaks and time.

use super::names::{
    BF16, FP4, FP8, FP8_DENSE, FP8_SPARSE, FP8_TO_16, FP8_TO_32, FP16, FP16_TO_16, FP16_TO_32,
    FP46_TO_16, FP46_TO_32, FP64, INT1, INT4, INT8, NARROW_TO_16, NARROW_TO_32, TF32, TIME, TURING,
};
use super::source::{at, metric, quotient, scaled, sum, weighted};
use super::terms::{
    DOUBLE, DRAM_BYTES, DRAM_READ_AND_WRITTEN, DURATION, FLOPS_60, FLOPS_70, FLOPS_75, FLOPS_80,
    FLOPS_89, FLOPS_90, FLOPS_90_BY_SPARSITY, FLOPS_100, FLOPS_110, FLOPS_120, HALF, SINGLE,
    SINGLE_PAIRS, TENSOR_70, TENSOR_75, TENSOR_80, TENSOR_89, TENSOR_90, TENSOR_90_BY_SPARSITY,
    TENSOR_100, TENSOR_120,
};
use crate::catalogue::MetricGroup::{Roofline, Timing};
use crate::catalogue::{FieldGroup as F, MetricInfo, MetricUnit};

metrics! {
    flop_count, Operations, Roofline,
        "Floating-point operations: a fused multiply-add counts as two, a packed one as four.",
        by_chip!(weighted), [at(F::Roofline, "flop_count_total")];
    flop_count_single, Operations, Roofline, "Operations on f32.",
        [weighted(SINGLE).until(90), weighted(SINGLE_PAIRS).on(100, 109),
         weighted(SINGLE).since(110)], [];
    flop_count_double, Operations, Roofline, "Operations on f64.", [weighted(DOUBLE)], [];
    flop_count_half, Operations, Roofline, "Operations on f16 and bf16 outside tensor cores.",
        [weighted(HALF)], [];
    flop_count_tensor, Operations, Roofline, "Floating-point operations of tensor cores.",
        [weighted(TENSOR_70).until(70), weighted(TENSOR_75).on(75, 75),
         weighted(TENSOR_80).on(80, 88), weighted(TENSOR_89).on(89, 89),
         weighted(TENSOR_90).on(90, 90), weighted(TENSOR_90_BY_SPARSITY).on(90, 90),
         weighted(TENSOR_100).on(100, 119), weighted(TENSOR_120).since(120)], [];
    tensor_integer_ops, Operations, Roofline, "Integer operations of tensor cores.",
        [sum(&[INT8, INT4, INT1]).on(75, 89), sum(&[INT8, INT1]).on(90, 90),
         metric(INT8).since(100)], [];
    dram_bytes, Bytes, Roofline, "Bytes that device memory transferred.",
        [metric("dram__bytes.sum").discrete(),
         weighted(DRAM_READ_AND_WRITTEN).discrete().until(119)],
        [at(F::Roofline, "dram_bytes_sum")];
    arithmetic_intensity, OperationsPerByte, Roofline,
        "Floating-point operations per byte of device memory.",
        by_chip!(quotient, DRAM_BYTES, discrete), [at(F::Roofline, "arithmetic_intensity")];
    flop_rate, OperationsPerSecond, Roofline, "Floating-point operations per second.",
        by_chip!(quotient, DURATION), [scaled(F::Roofline, "gflops", 1e-9)];
    ideal_read_bytes, Bytes, Roofline,
        "Bytes of the distinct sectors that the kernel reads, which a perfect cache would fetch.",
        [], [];
    ideal_write_bytes, Bytes, Roofline, "Bytes of the distinct sectors that the kernel writes.",
        [], [];
    duration, Seconds, Timing, "Duration of the profiled launch.",
        [metric(TIME)],
        [scaled(F::Timing, "gpu_time_duration_sum", 1e9),
         at(F::Timing, "gpu_time_duration_seconds")];
    elapsed_cycles, Cycles, Timing, "Cycles of the profiled launch.",
        [metric("gpc__cycles_elapsed.max")], [at(F::Timing, "gpc_cycles_elapsed_max")];
    flop_count_tensor_half, Operations, Roofline,
        "Operations of tensor cores on f16 and bf16.",
        [sum(&[FP16_TO_16, FP16_TO_32]).until(70), sum(&[FP16_TO_16, TURING]).on(75, 75),
         sum(&[FP16_TO_16, FP16_TO_32, BF16]).on(80, 89), sum(&[FP16, BF16]).on(90, 90),
         sum(&[FP16_TO_16, FP16_TO_32, BF16]).since(100)], [];
    flop_count_tensor_tf32, Operations, Roofline, "Operations of tensor cores on tf32.",
        [metric(TF32).since(80)], [];
    flop_count_tensor_double, Operations, Roofline, "Operations of tensor cores on f64.",
        [metric(FP64).since(80)], [];
    flop_count_tensor_narrow, Operations, Roofline,
        "Operations of tensor cores on floats of 8 bits and fewer.",
        [metric(FP8).on(89, 90), sum(&[FP8_DENSE, FP8_SPARSE]).on(89, 90),
         sum(&[FP4, NARROW_TO_16, NARROW_TO_32]).on(100, 119),
         sum(&[FP4, FP46_TO_16, FP46_TO_32, FP8_TO_16, FP8_TO_32]).since(120)], [];
    l2_bytes, Bytes, Roofline, "Bytes that L2 sent to the multiprocessors.",
        [weighted(&[("lts__lts2xbar_cycles_active.sum", 32.0)]).until(120)], [];
    l1_bytes, Bytes, Roofline, "Bytes that L1 and shared memory sent to registers.",
        [weighted(&[("l1tex__lsu_writeback_active.sum", 128.0)]).until(70),
         weighted(&[("l1tex__lsu_writeback_active_mem_lg.sum", 128.0)]).on(75, 89),
         weighted(&[("l1tex__lsu_writeback_active_mem_lgds.sum", 128.0)]).since(90)], [];
    sm_clock, Hertz, Roofline, "Clock of the multiprocessors during the profiled launch.",
        [metric("sm__cycles_elapsed.avg.per_second")], [];
    l1_clock, Hertz, Roofline, "Clock of L1 during the profiled launch.",
        [metric("l1tex__cycles_elapsed.avg.per_second")], [];
    l2_clock, Hertz, Roofline, "Clock of L2 during the profiled launch.",
        [metric("lts__cycles_elapsed.avg.per_second")], [];
    dram_clock, Hertz, Roofline, "Clock of device memory during the profiled launch.",
        [metric("dram__cycles_elapsed.avg.per_second").discrete()], [];
    peak_single, OperationsPerCycle, Roofline, "Peak operations on f32 of all multiprocessors.",
        [weighted(&[("sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained", 2.0)])],
        [];
    peak_double, OperationsPerCycle, Roofline, "Peak operations on f64 of all multiprocessors.",
        [weighted(&[("sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained", 2.0)])],
        [];
    peak_half, OperationsPerCycle, Roofline,
        "Peak operations on packed f16 of all multiprocessors outside tensor cores.",
        [weighted(&[("sm__sass_thread_inst_executed_op_hfma_pred_on.sum.peak_sustained", 4.0)])],
        [];
    peak_tensor_half, OperationsPerCycle, Roofline,
        "Peak operations of all tensor cores on f16, without sparsity.",
        [metric("sm__ops_path_tensor_src_fp16_dst_fp32.sum.peak_sustained").until(70),
         metric("sm__ops_path_tensor_src_fp16_bf16_tf32_dst_fp32.sum.peak_sustained").on(75, 75),
         metric("sm__ops_path_tensor_src_fp16_dst_fp32_sparsity_off.sum.peak_sustained")
             .on(80, 89),
         metric("sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum.peak_sustained")
             .on(90, 90),
         metric("sm__ops_path_tensor_op_utchmma_src_fp16_dst_fp32_sparsity_off.sum.peak_sustained")
             .on(100, 119),
         metric("sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32_sparsity_off.sum.peak_sustained")
             .since(120)], [];
    peak_tensor_tf32, OperationsPerCycle, Roofline,
        "Peak operations of all tensor cores on tf32, without sparsity.",
        [metric("sm__ops_path_tensor_src_tf32_dst_fp32_sparsity_off.sum.peak_sustained")
             .on(80, 89),
         metric("sm__ops_path_tensor_op_hgmma_src_tf32_dst_fp32_sparsity_off.sum.peak_sustained")
             .on(90, 90),
         metric("sm__ops_path_tensor_op_utchmma_src_tf32_dst_fp32_sparsity_off.sum.peak_sustained")
             .on(100, 119),
         metric("sm__ops_path_tensor_op_hmma_src_tf32_dst_fp32_sparsity_off.sum.peak_sustained")
             .since(120)], [];
    peak_tensor_double, OperationsPerCycle, Roofline,
        "Peak operations of all tensor cores on f64.",
        [metric("sm__ops_path_tensor_src_fp64.sum.peak_sustained").since(80)], [];
    peak_tensor_fp8, OperationsPerCycle, Roofline,
        "Peak operations of all tensor cores on floats of 8 bits, without sparsity.",
        [metric("sm__ops_path_tensor_src_fp8_sparsity_off.sum.peak_sustained").on(89, 90),
         metric(
             "sm__ops_path_tensor_op_utcqmma_src_fp4_fp6_fp8_dst_fp32_sparsity_off.sum\
              .peak_sustained",
         )
         .on(100, 119),
         metric("sm__ops_path_tensor_src_fp8_dst_fp32_sparsity_off.sum.peak_sustained")
             .since(120)], [];
    peak_dram, BytesPerCycle, Roofline, "Peak bytes of all channels of device memory.",
        [metric("dram__bytes.sum.peak_sustained").discrete()], [];
    peak_l2, BytesPerCycle, Roofline, "Peak bytes that L2 sends to the multiprocessors.",
        [weighted(&[("lts__lts2xbar_cycles_active.sum.peak_sustained", 32.0)]).until(120)], [];
    peak_l1, BytesPerCycle, Roofline,
        "Peak bytes that L1 and shared memory of all multiprocessors send to registers.",
        [weighted(&[("l1tex__lsu_writeback_active.sum.peak_sustained", 128.0)]).until(70),
         weighted(&[("l1tex__lsu_writeback_active_mem_lg.sum.peak_sustained", 128.0)]).on(75, 89),
         weighted(&[("l1tex__lsu_writeback_active_mem_lgds.sum.peak_sustained", 128.0)])
             .since(90)], [];
}
