//! Advice about arithmetic: divergence and unused tensor cores.

use super::{Advice, AdviceCode, Launched, ShareOf, field, percent};
use crate::roofline::{BoundBy, Level};
use warpgauge_tensor::Dtype;

/// Number of active threads of a warp below which divergence is reported: three quarters of the
/// warp.
const THREADS_BELOW: f64 = 24.0;

/// Minimum share of multiply-adds in the operations for the kernel to count as a matrix product.
const PRODUCTS_FROM: f64 = 0.8;

/// Maximum share of tensor core operations for tensor cores to count as unused.
const TENSOR_BELOW: f64 = 0.1;

/// Minimum number of operations per byte of device memory at which arithmetic can limit a kernel on
/// current GPUs. FP32 peak divided by memory bandwidth is 10 (A100) to 60 (RTX 4090).
const INTENSE_FROM: f64 = 10.0;

/// Detects warps in which threads are masked out or do not exist.
pub(super) fn divergence(launched: &Launched<'_>) -> Option<Advice> {
    let threads = launched.get("threads_per_instruction")?;
    if threads >= THREADS_BELOW {
        return None;
    }
    let mut evidence = launched.evidence(&["threads_per_instruction"])?;
    let part = 1.0 - threads / 32.0;
    let ragged = launched.get("block_size").filter(|size| size % 32.0 != 0.0);
    evidence.extend(launched.metric("divergent_branches"));
    evidence.extend(ragged.and_then(|_| launched.metric("block_size")));
    let what = match ragged {
        Some(size) => format!(
            "; blocks of {size:.0} threads leave part of a warp empty: use a multiple of 32"
        ),
        None => "; let the threads of a warp take the same branches".to_owned(),
    };
    let (share, share_of) = match launched.values.part("sm_issue_active") {
        Some(issue) => (part * issue.clamp(0.0, 1.0), ShareOf::Time),
        None => (part, ShareOf::Work),
    };
    Some(Advice {
        code: AdviceCode::Divergence,
        message: format!(
            "on average {threads:.1} of the 32 threads of a warp are active in an instruction{what}"
        ),
        share,
        share_of,
        threshold: format!(
            "below {THREADS_BELOW} threads: at least a quarter of each instruction is wasted"
        ),
        evidence,
    })
}

/// Detects matrix products that do not use the tensor cores.
pub(super) fn tensor_cores(launched: &Launched<'_>) -> Option<Advice> {
    let inputs = launched.facts.inputs;
    let small = |dtype: &Dtype| {
        matches!(dtype, Dtype::Float16 | Dtype::Bfloat16 | Dtype::Float8E4m3 | Dtype::Float8E5m2)
    };
    // A product has two operands, both of a type that tensor cores accept.
    if inputs.len() < 2 || inputs.iter().filter(|dtype| small(dtype)).count() < 2 {
        return None;
    }
    if launched.facts.device.target.compute_capability < (7, 0) {
        return None;
    }
    let all = launched.get("flop_count_single")? + launched.get("flop_count_half")?;
    let tensor = launched.get("flop_count_tensor")?;
    if all <= 0.0 || tensor > TENSOR_BELOW * (all + tensor) {
        return None;
    }
    // A packed instruction is two multiply-adds, and both sources count it as two.
    let products = 2.0 * launched.get("ffma_instructions")?
        + 4.0 * launched.get("hfma_instructions").unwrap_or(0.0);
    let part = (products / all).min(1.0);
    let roofline = launched.roofline?;
    let most_intense = roofline
        .points
        .iter()
        .filter(|point| point.level == Level::Dram)
        .map(|point| point.intensity)
        .max_by(f64::total_cmp)?;
    let bound_elsewhere =
        roofline.bound_by.is_some_and(|bound| matches!(bound, BoundBy::Dram | BoundBy::Launch));
    if part < PRODUCTS_FROM || most_intense < INTENSE_FROM || bound_elsewhere {
        return None;
    }
    let mut evidence = launched.evidence(&[
        "flop_count_single",
        "flop_count_half",
        "flop_count_tensor",
        "ffma_instructions",
    ])?;
    evidence.extend(launched.metric("hfma_instructions"));
    evidence.push(field("roofline.points[dram].intensity", most_intense, "operations/byte"));
    Some(Advice {
        code: AdviceCode::TensorCoresUnused,
        message: format!(
            "{} of the {all:.3e} operations are multiply-adds outside tensor cores, and the \
             inputs have types that tensor cores accept; if this is a matrix product, wmma or mma \
             instructions are several times as fast",
            percent(part)
        ),
        share: match roofline.bound_by {
            Some(BoundBy::Compute) => part,
            _ => 0.5 * part,
        },
        share_of: ShareOf::Work,
        threshold: format!(
            "at least {} of the operations are multiply-adds, at least {INTENSE_FROM} operations \
             per byte, at most {} of the operations on tensor cores",
            percent(PRODUCTS_FROM),
            percent(TENSOR_BELOW)
        ),
        evidence,
    })
}
