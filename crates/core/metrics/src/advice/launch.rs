//! Advice about the launch: how well the grid fills the GPU.

use super::{Advice, AdviceCode, Launched, ShareOf, field, percent};
use crate::roofline::LAUNCH_FACTOR;

/// Minimum share of idle multiprocessor time. An almost empty last wave reaches it if there are at
/// most nine waves.
const TAIL_FROM: f64 = 0.1;

/// Theoretical occupancy below which it is reported. Below half, a scheduler has 8 warps or fewer
/// to choose from, and needs 4 to 6 to hide the latency of arithmetic alone.
const OCCUPANCY_BELOW: f64 = 0.5;

/// Minimum ratio of achieved to theoretical occupancy. Below it, blocks end at very different
/// times.
const UNEVEN_BELOW: f64 = 0.7;

/// Detects a launch that takes hardly more time than that of an empty kernel.
pub(super) fn launch_bound(launched: &Launched<'_>) -> Option<Advice> {
    let timed = launched.facts.timed;
    let (median, empty) = (timed.median_s?, timed.empty_launch_s?);
    if median <= 0.0 || median >= LAUNCH_FACTOR * empty {
        return None;
    }
    Some(Advice {
        code: AdviceCode::LaunchBound,
        message: format!(
            "a launch takes {:.2} µs, and that of an empty kernel {:.2} µs; do more work per \
             launch, fuse kernels, or launch them as a graph",
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

/// Detects grids with fewer blocks than the GPU has multiprocessors.
pub(super) fn small_grid(launched: &Launched<'_>) -> Option<Advice> {
    let blocks = launched.get("grid_size")?;
    let multiprocessors = f64::from(launched.facts.device.multiprocessors);
    // The emulated device does not have the number of multiprocessors of a real GPU.
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
             of them are idle; split the work into more blocks",
            percent(idle)
        ),
        share: idle,
        share_of: ShareOf::Capacity,
        threshold: "fewer blocks than multiprocessors".to_owned(),
        evidence,
    })
}

/// Detects a last wave that fills only a part of the GPU, and a single wave that gives some
/// multiprocessors more blocks than others.
pub(super) fn tail_effect(launched: &Launched<'_>) -> Option<Advice> {
    let waves = launched.get("waves_per_sm")?;
    let full = waves.ceil();
    if launched.is_emulated() {
        return None;
    }
    if waves <= 1.0 {
        return uneven_blocks(launched);
    }
    let idle = (full - waves) / full;
    if idle < TAIL_FROM {
        return None;
    }
    Some(Advice {
        code: AdviceCode::TailEffect,
        message: format!(
            "the grid takes {waves:.2} waves: while the last one runs, {} of the slots for blocks \
             are empty; make blocks smaller, choose a number of blocks that fills whole waves, or \
             let a grid of fixed size loop over the work",
            percent(full - waves)
        ),
        share: idle,
        share_of: ShareOf::Capacity,
        threshold: format!(
            "at least {} of the slots of all waves are empty: with many waves, the last one \
             matters little",
            percent(TAIL_FROM)
        ),
        evidence: launched.evidence(&["waves_per_sm", "grid_size"])?,
    })
}

/// Detects a grid of one wave whose blocks do not divide evenly among the multiprocessors.
fn uneven_blocks(launched: &Launched<'_>) -> Option<Advice> {
    let blocks = launched.get("grid_size")?;
    let multiprocessors = f64::from(launched.facts.device.multiprocessors);
    if multiprocessors < 1.0 || blocks <= multiprocessors {
        return None;
    }
    let most = (blocks / multiprocessors).ceil();
    let idle = 1.0 - blocks / (most * multiprocessors);
    if idle < TAIL_FROM {
        return None;
    }
    let mut evidence = launched.evidence(&["grid_size", "waves_per_sm"])?;
    evidence.push(field("device.multiprocessors", multiprocessors, "multiprocessors"));
    Some(Advice {
        code: AdviceCode::TailEffect,
        message: format!(
            "the grid has {blocks:.0} blocks for {multiprocessors:.0} multiprocessors: some run \
             {most:.0} blocks and others fewer, so up to {} of the GPU is idle until the last one \
             ends; make blocks smaller, or choose a multiple of {multiprocessors:.0} blocks",
            percent(idle)
        ),
        share: idle,
        share_of: ShareOf::Capacity,
        threshold: format!(
            "at least {} of the multiprocessors' time is idle, if all blocks take equally long",
            percent(TAIL_FROM)
        ),
        evidence,
    })
}

/// Detects low theoretical occupancy, and finds the resource that limits it.
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
             {what} ({blocks:.0} blocks fit); if latency limits the kernel, {remedy}",
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
            "{} of a multiprocessor's warps are resident on average, although {} fit; blocks end \
             at different times, or the work is uneven",
            percent(achieved),
            percent(fits)
        ),
        share: (1.0 - reached) * launched.idle_issue().unwrap_or(0.5),
        share_of: ShareOf::Capacity,
        threshold: format!("below {} of the theoretical occupancy", percent(UNEVEN_BELOW)),
        evidence: launched.evidence(&["achieved_occupancy", "theoretical_occupancy"])?,
    })
}
