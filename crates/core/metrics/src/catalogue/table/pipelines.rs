//! Metrics of the multiprocessors' pipelines.

use super::source::{at, metric};
use crate::catalogue::MetricGroup::{Compute, Pipeline};
use crate::catalogue::{FieldGroup as F, MetricInfo, MetricUnit};

metrics! {
    fma_pipe_utilization, Percent, Compute, "Instructions of the FMA pipeline, in percent of its \
                                             peak.",
        [metric("sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active")],
        [at(F::Compute, "fma_pipe_utilization_pct")];
    fp64_pipe_utilization, Percent, Compute, "Instructions of the FP64 pipeline, in percent of \
                                              its peak.",
        [metric("sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active")],
        [at(F::Compute, "fp64_pipe_utilization_pct")];
    alu_pipe_utilization, Percent, Compute, "Instructions of the ALU pipeline, in percent of its \
                                             peak.",
        [metric("sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active")],
        [at(F::Compute, "alu_pipe_utilization_pct")];
    xu_pipe_utilization, Percent, Compute,
        "Instructions of the pipeline for special functions, in percent of its peak.",
        [metric("sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active")],
        [at(F::Compute, "xu_pipe_utilization_pct")];
    tensor_pipe_utilization, Percent, Compute,
        "Instructions of the half-precision tensor pipeline, in percent of its peak.",
        [metric("sm__inst_executed_pipe_tensor_op_hmma.avg.pct_of_peak_sustained_active").until(90),
         metric("sm__inst_executed_pipe_tensor_subpipe_hmma.avg.pct_of_peak_sustained_active")
             .since(100)],
        [at(F::Compute, "tensor_pipe_utilization_pct")];
    fma_pipe_active, Percent, Pipeline, "Cycles in which the FMA pipeline was active.",
        [metric("sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed")],
        [at(F::Pipeline, "fma_pipe_active_pct")];
    alu_pipe_active, Percent, Pipeline, "Cycles in which the ALU pipeline was active.",
        [metric("sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed")],
        [at(F::Pipeline, "alu_pipe_active_pct")];
    tensor_pipe_active, Percent, Pipeline, "Cycles in which the tensor pipeline was active.",
        [metric("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed")],
        [at(F::Pipeline, "tensor_pipe_active_pct")];
    shared_pipe_active, Percent, Pipeline,
        "Cycles in which the pipeline shared by FP64 and tensor instructions was active.",
        [metric("sm__pipe_shared_cycles_active.avg.pct_of_peak_sustained_elapsed").on(70, 80),
         metric("sm__pipe_shared_cycles_active.avg.pct_of_peak_sustained_elapsed").on(90, 109)],
        [at(F::Pipeline, "shared_pipe_active_pct")];
    fp64_pipe_active, Percent, Pipeline, "Cycles in which the FP64 pipeline was active.",
        [metric("sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_elapsed")],
        [at(F::Pipeline, "fp64_pipe_active_pct")];
    sm_issue_active, Percent, Pipeline, "Cycles in which a multiprocessor issued an instruction.",
        [metric("sm__issue_active.avg.pct_of_peak_sustained_elapsed")],
        [at(F::Pipeline, "sm_issue_active_pct")];
    lsu_pipe_utilization, Percent, Compute,
        "Instructions of the pipeline for loads and stores, in percent of its peak.",
        [metric("sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active")], [];
    uniform_pipe_utilization, Percent, Compute,
        "Instructions of the uniform pipeline, in percent of its peak.",
        [metric("sm__inst_executed_pipe_uniform.avg.pct_of_peak_sustained_active").since(75)], [];
    fp16_pipe_utilization, Percent, Compute,
        "Instructions on f16 outside tensor cores, in percent of the peak.",
        [metric("sm__inst_executed_pipe_fp16.avg.pct_of_peak_sustained_active").until(80),
         metric("sm__inst_executed_pipe_fma_type_fp16.avg.pct_of_peak_sustained_active").since(86)],
        [];
    tensor_integer_pipe_utilization, Percent, Compute,
        "Instructions of the integer tensor pipeline, in percent of its peak.",
        [metric("sm__inst_executed_pipe_tensor_op_imma.avg.pct_of_peak_sustained_active")
             .on(75, 90),
         metric("sm__inst_executed_pipe_tensor_subpipe_imma.avg.pct_of_peak_sustained_active")
             .since(100)], [];
    tensor_double_pipe_utilization, Percent, Compute,
        "Instructions of the FP64 tensor pipeline, in percent of its peak.",
        [metric("sm__inst_executed_pipe_tensor_op_dmma.avg.pct_of_peak_sustained_active")
             .on(80, 80),
         metric("sm__inst_executed_pipe_tensor_op_dmma.avg.pct_of_peak_sustained_active")
             .on(90, 90),
         metric("sm__inst_executed_pipe_tensor_subpipe_dmma.avg.pct_of_peak_sustained_active")
             .on(100, 109)], [];
    tensor_group_pipe_utilization, Percent, Compute,
        "Tensor instructions of warp groups, in percent of their peak.",
        [metric("sm__inst_executed_pipe_tensor_op_gmma.avg.pct_of_peak_sustained_active")
             .on(90, 90),
         metric("sm__inst_executed_pipe_tc.avg.pct_of_peak_sustained_active").on(100, 119)], [];
    tensor_half_pipe_active, Percent, Pipeline,
        "Cycles in which the half-precision tensor pipeline was active.",
        [metric("sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_elapsed")
             .until(90),
         metric("sm__pipe_tensor_subpipe_hmma_cycles_active.avg.pct_of_peak_sustained_elapsed")
             .since(100)], [];
    tensor_integer_pipe_active, Percent, Pipeline,
        "Cycles in which the integer tensor pipeline was active.",
        [metric("sm__pipe_tensor_op_imma_cycles_active.avg.pct_of_peak_sustained_elapsed")
             .on(75, 90),
         metric("sm__pipe_tensor_subpipe_imma_cycles_active.avg.pct_of_peak_sustained_elapsed")
             .since(100)], [];
    tensor_double_pipe_active, Percent, Pipeline,
        "Cycles in which the FP64 tensor pipeline was active.",
        [metric("sm__pipe_tensor_op_dmma_cycles_active.avg.pct_of_peak_sustained_elapsed")
             .on(80, 80),
         metric("sm__pipe_tensor_op_dmma_cycles_active.avg.pct_of_peak_sustained_elapsed")
             .on(90, 90),
         metric("sm__pipe_tensor_subpipe_dmma_cycles_active.avg.pct_of_peak_sustained_elapsed")
             .on(100, 109)], [];
    tensor_group_pipe_active, Percent, Pipeline,
        "Cycles in which the tensor pipeline of groups of blocks was active.",
        [metric("sm__pipe_tc_cycles_active.avg.pct_of_peak_sustained_elapsed").on(100, 119)], [];
    tma_pipe_active, Percent, Pipeline,
        "Cycles in which the tensor memory accelerator (TMA) was active.",
        [metric("sm__pipe_tma_cycles_active.avg.pct_of_peak_sustained_elapsed").since(90)], [];
}
