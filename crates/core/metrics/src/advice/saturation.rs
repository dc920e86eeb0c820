//! Advice about memory near its peak.

use super::{Advice, AdviceCode, Launched, ShareOf, field, percent};
use crate::roofline::{BoundBy, Level, dram_throughput};

/// Fraction of the peak beyond which little improvement is possible: switching between reads and
/// writes takes time, and so do refreshes.
const SATURATED_FROM: f64 = 0.8;

/// Detects device memory near its peak: the kernel gets faster only if it moves fewer bytes.
pub(super) fn dram(launched: &Launched<'_>) -> Option<Advice> {
    let used = dram_throughput(launched.values)?;
    if used < SATURATED_FROM {
        return None;
    }
    let of_memory = launched.metric("dram_throughput");
    let mut evidence = vec![of_memory.or_else(|| launched.metric("gpu_dram_throughput"))?];
    evidence.extend(launched.metric("dram_bytes"));
    Some(Advice {
        code: AdviceCode::DramSaturated,
        message: format!(
            "device memory is at {} of its peak: the kernel gets faster only if it moves fewer \
             bytes (smaller types, reuse in registers, shared memory or L2, fusion with adjacent \
             kernels)",
            percent(used)
        ),
        share: used.min(1.0),
        share_of: ShareOf::Time,
        threshold: format!(
            "at least {} of the peak: beyond that, little improvement is possible",
            percent(SATURATED_FROM)
        ),
        evidence,
    })
}

/// Detects a kernel bound by L2.
pub(super) fn l2(launched: &Launched<'_>) -> Option<Advice> {
    let roofline = launched.roofline.filter(|it| it.bound_by == Some(BoundBy::L2))?;
    let level = roofline.memory.iter().find(|roof| roof.level == Level::L2);
    let (used, mut evidence) = match level.and_then(|level| level.fraction) {
        Some(fraction) => {
            (fraction, vec![field("roofline.memory[l2].fraction", 100.0 * fraction, "%")])
        }
        None => (launched.values.part("l2_throughput")?, launched.evidence(&["l2_throughput"])?),
    };
    evidence.extend(launched.metric("l2_bytes"));
    evidence.extend(launched.metric("l2_hit_rate"));
    Some(Advice {
        code: AdviceCode::L2Bound,
        message: format!(
            "L2 is the busiest unit, at {} of its peak; reuse more data in L1 or shared memory, \
             and keep accesses coalesced",
            percent(used)
        ),
        share: used.min(1.0),
        share_of: ShareOf::Time,
        threshold: "the busiest unit, at 60 % of its peak or more".to_owned(),
        evidence,
    })
}
