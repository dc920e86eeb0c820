//! Advice about stalls. Waiting costs time only while schedulers have nothing else to issue.

use super::{Advice, AdviceCode, Launched, ShareOf, percent};

/// Minimum shares of waiting warps.
const BARRIER_FROM: f64 = 0.2;
const MEMORY_FROM: f64 = 0.4;
const SHARED_FROM: f64 = 0.25;

/// Share of cycles with an issued instruction above which other warps hide the waiting.
const HIDDEN_FROM: f64 = 0.6;

/// Detects warps that wait at barriers.
pub(super) fn barrier(launched: &Launched<'_>) -> Option<Advice> {
    waiting(
        launched,
        "stall_barrier",
        BARRIER_FROM,
        AdviceCode::BarrierStalls,
        "wait at a barrier; balance the work of a block's warps, or use smaller blocks or fewer \
         barriers",
    )
}

/// Detects warps that wait for global or local memory.
pub(super) fn memory(launched: &Launched<'_>) -> Option<Advice> {
    waiting(
        launched,
        "stall_long_scoreboard",
        MEMORY_FROM,
        AdviceCode::MemoryLatency,
        "wait for global or local memory; load earlier, load more per thread at once, or increase \
         the occupancy",
    )
}

/// Detects warps that wait for shared memory or special functions.
pub(super) fn shared_memory(launched: &Launched<'_>) -> Option<Advice> {
    waiting(
        launched,
        "stall_short_scoreboard",
        SHARED_FROM,
        AdviceCode::SharedMemoryLatency,
        "wait for shared memory or special functions; keep more in registers, or use wider \
         accesses",
    )
}

fn waiting(
    launched: &Launched<'_>,
    id: &str,
    from: f64,
    code: AdviceCode,
    text: &str,
) -> Option<Advice> {
    let part = launched.values.part(id)?;
    let idle = launched.idle_issue()?;
    if part < from || 1.0 - idle > HIDDEN_FROM {
        return None;
    }
    Some(Advice {
        code,
        message: format!(
            "{} of the resident warps {text}; schedulers issue in {} of their cycles",
            percent(part),
            percent(1.0 - idle)
        ),
        share: (part * idle).min(1.0),
        share_of: ShareOf::Time,
        threshold: format!(
            "at least {} of the warps, while schedulers issue in at most {} of their cycles: \
             otherwise other warps hide the wait",
            percent(from),
            percent(HIDDEN_FROM)
        ),
        evidence: launched.evidence(&[id, "issue_active"])?,
    })
}
