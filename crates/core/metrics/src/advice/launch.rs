//! Advice about the launch: how well the grid fills the GPU.

use super::{Advice, AdviceCode, Launched, ShareOf, field, percent};
use crate::roofline::LAUNCH_FACTOR;

/// Least share of idle multiprocessor time: one more wave of eleven.
const TAIL_FROM: f64 = 0.1;

/// Least share of resident warps. Below half, a scheduler has 8 warps or fewer to choose from; the
/// latency of arithmetic alone takes 4 to 6.
const OCCUPANCY_BELOW: f64 = 0.5;

/// Least ratio of achieved to theoretical occupancy. Below it, blocks end at very different times.
const UNEVEN_BELOW: f64 = 0.7;

/// Detects a launch that takes little more time than an empty kernel.
pub(super) fn launch_bound(launched: &Launched<'_>) -> Option<Advice> {
    let timed = launched.facts.timed;
    let (median, empty) = (timed.median_s?, timed.empty_launch_s?);
    if median <= 0.0 || median >= LAUNCH_FACTOR * empty {
        return None;
    }
    Some(Advice {
        code: AdviceCode::LaunchBound,
        message: format!(
            "a launch takes {:.2} µs, and one of a kernel that does nothing {:.2} µs; give one \
             launch more work, join kernels, or launch a graph of them",
            median * 1e6,
            empty * 1e6
        ),
        share: (empty / median).min(1.0),
        share_of: ShareOf::Time,
        threshold: format!("a median below {LAUNCH_FACTOR} × that of an empty kernel"),
        evidence: vec![
            field("kernel_exec_result.runtime_stats.median", median * 1e3, "ms"),
            field("measurement.empty_launch_ms", empty * 1e3, "ms"),
        ],
    })
}

/// Detects multiprocessors without any block.
pub(super) fn small_grid(launched: &Launched<'_>) -> Option<Advice> {
    let blocks = launched.get("grid_size")?;
    let multiprocessors = f64::from(launched.facts.device.multiprocessors);
    // The multiprocessors of the emulated device are those of no GPU.
    if launched.is_emulated() || multiprocessors < 1.0 || blocks >= multiprocessors {
        return None;
    }
    let idle = 1.0 - blocks / multiprocessors;
    let mut evidence = launched.evidence(&["grid_size"])?;
    evidence.push(field("device.multiprocessors", multiprocessors, "multiprocessors"));
    Some(Advice {
        code: AdviceCode::SmallGrid,
        message: format!(
            "the grid has {blocks:.0} blocks and the GPU {multiprocessors:.0} multiprocessors: {} \
             of them have nothing to do; split the work into more blocks",
            percent(idle)
        ),
        share: idle,
        share_of: ShareOf::Capacity,
        threshold: "fewer blocks than multiprocessors".to_owned(),
        evidence,
    })
}

/// Detects a last wave that fills only a part of the GPU.
pub(super) fn tail_effect(launched: &Launched<'_>) -> Option<Advice> {
    let waves = launched.get("waves_per_sm")?;
    let full = waves.ceil();
    // Below one wave there is no tail: the grid is small.
    if launched.is_emulated() || waves <= 1.0 {
        return None;
    }
    let idle = (full - waves) / full;
    if idle < TAIL_FROM {
        return None;
    }
    Some(Advice {
        code: AdviceCode::TailEffect,
        message: format!(
            "the grid takes {waves:.2} waves: while the last one runs, {} of the places for blocks \
             are empty; make blocks smaller, or as many as fill whole waves, or let a fixed grid \
             loop over the work",
            percent(full - waves)
        ),
        share: idle,
        share_of: ShareOf::Capacity,
        threshold: format!(
            "{} of all places over all waves empty or more: of many waves the last one weighs \
             little",
            percent(TAIL_FROM)
        ),
        evidence: launched.evidence(&["waves_per_sm", "grid_size"])?,
    })
}

/// Detects low theoretical occupancy, and names its limit.
pub(super) fn low_occupancy(launched: &Launched<'_>) -> Option<Advice> {
    let part = launched.values.part("theoretical_occupancy")?;
    if part >= OCCUPANCY_BELOW {
        return None;
    }
    let limits = [
        ("occupancy_limit_registers", "registers", "use fewer registers per thread"),
        ("occupancy_limit_shared_memory", "shared memory", "use less shared memory per block"),
        ("occupancy_limit_warps", "warps", "choose another block size"),
        ("occupancy_limit_blocks", "blocks", "make blocks larger"),
    ];
    let known = limits.iter().filter_map(|limit| Some((launched.get(limit.0)?, limit)));
    let (blocks, (id, what, remedy)) = known.min_by(|a, b| a.0.total_cmp(&b.0))?;
    let mut ids = vec!["theoretical_occupancy", *id];
    let detail = match *what {
        "registers" => Some("registers_per_thread"),
        "shared memory" => Some("shared_memory_per_block"),
        _ => Some("block_size"),
    };
    ids.extend(detail.filter(|id| launched.get(id).is_some()));
    // Schedulers that can always issue do not need more warps.
    let waiting = launched.idle_issue();
    let missing = 1.0 - part;
    let (share, share_of) = match waiting {
        Some(idle) => (missing * idle, ShareOf::Time),
        None => (missing * 0.5, ShareOf::Capacity),
    };
    Some(Advice {
        code: AdviceCode::LowOccupancy,
        message: format!(
            "at most {} of the warps that a multiprocessor holds can be resident, limited by \
             {what} ({blocks:.0} blocks fit); {remedy}, if waiting is what costs",
            percent(part)
        ),
        share,
        share_of,
        threshold: format!(
            "below {}: a scheduler then has 8 warps or fewer to hide latency with",
            percent(OCCUPANCY_BELOW)
        ),
        evidence: launched.evidence(&ids)?,
    })
}

/// Detects occupancy far below the theoretical one, due to uneven blocks or a tail.
pub(super) fn uneven_occupancy(launched: &Launched<'_>) -> Option<Advice> {
    let (achieved, fits) = (
        launched.values.part("achieved_occupancy")?,
        launched.values.part("theoretical_occupancy").filter(|part| *part > 0.0)?,
    );
    let reached = achieved / fits;
    // A grid that does not fill the GPU once cannot reach the theoretical occupancy.
    if reached >= UNEVEN_BELOW || launched.get("waves_per_sm").is_none_or(|waves| waves < 1.0) {
        return None;
    }
    Some(Advice {
        code: AdviceCode::UnevenOccupancy,
        message: format!(
            "{} of the warps are resident on average where {} fit; blocks end at different times, \
             or the work is uneven",
            percent(achieved),
            percent(fits)
        ),
        share: (1.0 - reached) * launched.idle_issue().unwrap_or(0.5),
        share_of: ShareOf::Capacity,
        threshold: format!("below {} of what fits", percent(UNEVEN_BELOW)),
        evidence: launched.evidence(&["achieved_occupancy", "theoretical_occupancy"])?,
    })
}
