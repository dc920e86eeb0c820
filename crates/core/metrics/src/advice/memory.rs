//! Advice about memory accesses.

use super::{Advice, AdviceCode, Evidence, Launched, field, percent};

/// Least share of wasted sectors; less is the cost of ragged row ends.
const WASTED_FROM: f64 = 0.1;

/// Least share of additional passes; other work hides less.
const CONFLICTS_FROM: f64 = 0.1;

/// Least share of local requests; less is a prologue that runs once.
const LOCAL_FROM: f64 = 0.01;

/// Sectors of the widest load or store of a whole warp: 32 threads × 16 bytes / 32.
const WIDEST_SECTORS: f64 = 16.0;

/// Sectors of a warp's adjacent accesses of 4, 8 and 16 bytes.
const FULL_SECTORS: [f64; 3] = [4.0, 8.0, 16.0];

/// Greatest distance from one sector more than those.
const SHIFTED_WITHIN: f64 = 0.15;

/// Detects requests to global memory that touch more sectors than adjacent accesses of the same
/// bytes would.
pub(super) fn uncoalesced(launched: &Launched<'_>) -> Option<Advice> {
    let (wasted, mut evidence, text) =
        by_sectors(launched).or_else(|| by_bytes(launched)).or_else(|| by_width(launched))?;
    if wasted < WASTED_FROM || shifted(launched).is_some() {
        return None;
    }
    for id in ["sectors_per_global_load", "sectors_per_global_store"] {
        if !evidence.iter().any(|one| one.metric == id) {
            evidence.extend(launched.metric(id));
        }
    }
    let (share, share_of) = launched.of_traffic(wasted);
    Some(Advice {
        code: AdviceCode::UncoalescedAccess,
        message: format!(
            "{text}; let the threads of a warp access adjacent addresses, or go through shared \
             memory"
        ),
        share,
        share_of,
        threshold: format!(
            "{} of the sectors wasted or more: less is what ragged ends cost",
            percent(WASTED_FROM)
        ),
        evidence,
    })
}

/// Detects requests of adjacent addresses that begin within a sector: each touches one sector more
/// than it needs.
pub(super) fn misaligned(launched: &Launched<'_>) -> Option<Advice> {
    let (id, sectors, needed) = shifted(launched)?;
    let wasted = 1.0 - needed / sectors;
    let mut evidence = launched.evidence(&[id])?;
    for id in ["l2_sectors_global", "l2_sectors_global_ideal"] {
        evidence.extend(launched.metric(id));
    }
    let (share, share_of) = launched.of_traffic(wasted);
    Some(Advice {
        code: AdviceCode::MisalignedAccess,
        message: format!(
            "a request to global memory touches {sectors:.1} sectors where {needed:.0} would do: \
             its addresses are adjacent, and the base is misaligned (it begins within a sector, for \
             instance by 4 bytes); begin each row at a multiple of 32 bytes"
        ),
        share,
        share_of,
        threshold: format!(
            "one sector more than the 4, 8 or 16 of a warp's adjacent accesses, within \
             {SHIFTED_WITHIN}"
        ),
        evidence,
    })
}

/// Returns the metric, its sectors per request, and the sectors that aligned requests would touch,
/// if requests touch one sector more than those.
fn shifted(launched: &Launched<'_>) -> Option<(&'static str, f64, f64)> {
    let kinds = [
        ("sectors_per_global_load", "global_load_sectors"),
        ("sectors_per_global_store", "global_store_sectors"),
    ];
    // The kind with most sectors decides.
    let known = kinds.iter().filter_map(|(id, count)| {
        Some((*id, launched.get(id)?, launched.get(count).unwrap_or(0.0)))
    });
    let known = known.filter(|(_, sectors, _)| *sectors > 0.0);
    let shifted = known.filter_map(|(id, sectors, count)| {
        let needed =
            FULL_SECTORS.iter().find(|full| (sectors - *full - 1.0).abs() < SHIFTED_WITHIN);
        Some((count, (id, sectors, *needed?)))
    });
    let (_, found) = shifted.max_by(|a, b| a.0.total_cmp(&b.0))?;
    // Other requests may be apart all the same.
    let others =
        kinds.iter().filter(|(id, _)| *id != found.0).filter_map(|(id, _)| launched.get(id));
    others
        .into_iter()
        .all(|sectors| sectors <= WIDEST_SECTORS + 1.0 + SHIFTED_WITHIN)
        .then_some(found)
}

type Wasted = (f64, Vec<Evidence>, String);

/// Computes the waste exactly, from the sectors that adjacent threads would touch.
fn by_sectors(launched: &Launched<'_>) -> Option<Wasted> {
    let (all, ideal) =
        (launched.get("l2_sectors_global")?, launched.get("l2_sectors_global_ideal")?);
    let wasted = if all > 0.0 { (all - ideal) / all } else { 0.0 };
    let evidence = launched.evidence(&["l2_sectors_global", "l2_sectors_global_ideal"])?;
    let text = format!(
        "requests to global memory touch {all:.0} sectors where {ideal:.0} would do: {} are wasted",
        percent(wasted)
    );
    Some((wasted, evidence, text))
}

/// Computes the waste from the used bytes of sectors.
fn by_bytes(launched: &Launched<'_>) -> Option<Wasted> {
    let used = [
        ("global_load_efficiency", "global_load_sectors"),
        ("global_store_efficiency", "global_store_sectors"),
    ];
    let (mut sectors, mut wasted, mut evidence) = (0.0, 0.0, Vec::new());
    for (efficiency, count) in used {
        let (Some(part), Some(count)) = (launched.values.part(efficiency), launched.get(count))
        else {
            continue;
        };
        sectors += count;
        wasted += count * (1.0 - part).clamp(0.0, 1.0);
        evidence.extend(launched.metric(efficiency));
    }
    let wasted = (sectors > 0.0).then(|| wasted / sectors)?;
    let text = format!(
        "{} of the bytes that requests to global memory move are not used",
        percent(wasted)
    );
    Some((wasted, evidence, text))
}

/// Estimates the waste from the widest access, if nothing better is known.
fn by_width(launched: &Launched<'_>) -> Option<Wasted> {
    let worst = ["sectors_per_global_load", "sectors_per_global_store"]
        .into_iter()
        .filter_map(|id| Some((launched.get(id)?, id)))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    let wasted = (1.0 - WIDEST_SECTORS / worst.0).max(0.0);
    let text = format!(
        "a request touches {:.1} sectors, and the widest access of a warp needs {WIDEST_SECTORS}",
        worst.0
    );
    Some((wasted, launched.evidence(&[worst.1])?, text))
}

/// Detects passes over shared memory that bank conflicts add.
pub(super) fn bank_conflicts(launched: &Launched<'_>) -> Option<Advice> {
    let kinds = [
        ("shared_load_conflicts", "shared_load_wavefronts"),
        ("shared_store_conflicts", "shared_store_wavefronts"),
    ];
    let (mut conflicts, mut passes, mut evidence) = (0.0, 0.0, Vec::new());
    for (conflict, pass) in kinds {
        let (Some(added), Some(all)) = (launched.get(conflict), launched.get(pass)) else {
            continue;
        };
        conflicts += added;
        passes += all;
        evidence.extend(launched.evidence(&[conflict, pass])?);
    }
    let part = (passes > 0.0).then(|| conflicts / passes)?;
    if part < CONFLICTS_FROM {
        return None;
    }
    let (share, share_of) = match launched.values.part("l1_throughput") {
        Some(used) => (part * used.clamp(0.0, 1.0), super::ShareOf::Time),
        None => launched.of_traffic(part),
    };
    Some(Advice {
        code: AdviceCode::BankConflicts,
        message: format!(
            "{conflicts:.0} of the {passes:.0} passes of shared memory ({}) are due to bank \
             conflicts; pad rows by one element, or permute what threads access",
            percent(part)
        ),
        share,
        share_of,
        threshold: format!("{} of the passes or more: less hides", percent(CONFLICTS_FROM)),
        evidence,
    })
}

/// Detects spills, and arrays in local memory.
pub(super) fn local_memory(launched: &Launched<'_>) -> Option<Advice> {
    let resources = launched.facts.resources;
    let spilled = resources.and_then(|it| Some(it.spill_store_bytes? + it.spill_load_bytes?));
    let requests = ["local_load_requests", "local_store_requests"];
    let others = [
        "global_load_requests",
        "global_store_requests",
        "shared_load_requests",
        "shared_store_requests",
    ];
    let local = launched.values.sum(&requests)?;
    let all = local + launched.values.sum(&others).unwrap_or(0.0);
    let part = (all > 0.0).then(|| local / all)?;
    if part < LOCAL_FROM {
        return None;
    }
    let mut evidence: Vec<Evidence> =
        requests.iter().chain(&others).filter_map(|id| launched.metric(id)).collect();
    let what = match spilled {
        Some(0) => "the compiler spilled nothing: arrays that are indexed by what it cannot know",
        Some(_) => "registers are spilled: fewer live values, smaller unrolling, or more registers",
        None => "spilled registers, or arrays that are indexed by what the compiler cannot know",
    };
    evidence.extend(launched.metric("spill_requests"));
    if let Some(bytes) = spilled {
        let path = "compile.resources.spill_store_bytes + spill_load_bytes";
        evidence.push(field(path, f64::from(bytes), "bytes"));
    }
    let (share, share_of) = launched.of_traffic(part);
    Some(Advice {
        code: AdviceCode::LocalMemory,
        message: format!(
            "{} of the requests to memory go to local memory ({local:.0} of {all:.0}); {what}",
            percent(part)
        ),
        share,
        share_of,
        threshold: format!(
            "{} of the requests or more: less is a prologue that runs once",
            percent(LOCAL_FROM)
        ),
        evidence,
    })
}
