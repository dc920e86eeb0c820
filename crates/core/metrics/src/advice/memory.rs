//! Advice about memory accesses.

use super::{Advice, AdviceCode, Evidence, Launched, ShareOf, field, percent};

/// Minimum share of wasted sectors; ragged row ends may waste less than that.
const WASTED_FROM: f64 = 0.1;

/// Minimum share of additional passes. Other work hides a smaller share.
const CONFLICTS_FROM: f64 = 0.1;

/// Minimum share of requests to local memory; fewer may be a prologue that runs once.
const LOCAL_FROM: f64 = 0.01;

/// Number of sectors of the widest load or store of a whole warp: 32 threads × 16 bytes / 32.
const WIDEST_SECTORS: f64 = 16.0;

/// Number of sectors that a warp touches if its threads access adjacent values of 4, 8 or 16 bytes.
const FULL_SECTORS: [f64; 3] = [4.0, 8.0, 16.0];

/// Maximum difference between the number of sectors per request and one of [`FULL_SECTORS`] plus
/// one.
const SHIFTED_WITHIN: f64 = 0.15;

/// Share of spills if neither their requests nor the use of memory is known.
const UNCOUNTED_SPILLS: f64 = 0.1;

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
            "at least {} of the sectors are wasted: ragged row ends may waste less than that",
            percent(WASTED_FROM)
        ),
        evidence,
    })
}

/// Detects requests to adjacent addresses that begin within a sector. Each of them touches one
/// sector more than necessary.
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
            "a request to global memory touches {sectors:.1} sectors on average, although \
             {needed:.0} would be enough: its addresses are adjacent, but the base is misaligned \
             (it begins within a sector, for instance 4 bytes after its start); begin each row at \
             a multiple of 32 bytes"
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

/// If requests touch one sector more than aligned requests would, returns the metric, its sectors
/// per request, and the number of sectors that aligned requests would touch.
fn shifted(launched: &Launched<'_>) -> Option<(&'static str, f64, f64)> {
    let kinds = [
        ("sectors_per_global_load", "global_load_sectors"),
        ("sectors_per_global_store", "global_store_sectors"),
    ];
    // The kind of request with most sectors decides.
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
    // The other kind of request may still access scattered addresses.
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
        "requests to global memory touch {all:.0} sectors, although {ideal:.0} would be enough: \
         {} are wasted",
        percent(wasted)
    );
    Some((wasted, evidence, text))
}

/// Computes the waste from the share of the sectors' bytes that is used.
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

/// Estimates the waste from the widest possible access, if the metrics allow no better estimate.
fn by_width(launched: &Launched<'_>) -> Option<Wasted> {
    let worst = ["sectors_per_global_load", "sectors_per_global_store"]
        .into_iter()
        .filter_map(|id| Some((launched.get(id)?, id)))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    let wasted = (1.0 - WIDEST_SECTORS / worst.0).max(0.0);
    let text = format!(
        "a request touches {:.1} sectors on average, and even the widest access of a warp needs \
         only {WIDEST_SECTORS}",
        worst.0
    );
    Some((wasted, launched.evidence(&[worst.1])?, text))
}

/// Detects additional passes over shared memory that bank conflicts cause.
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
            "{conflicts:.0} of the {passes:.0} passes over shared memory ({}) are due to bank \
             conflicts; pad rows by one element, or permute the addresses that threads access",
            percent(part)
        ),
        share,
        share_of,
        threshold: format!(
            "at least {} of the passes: other work hides fewer",
            percent(CONFLICTS_FROM)
        ),
        evidence,
    })
}

/// Detects register spills, and arrays in local memory.
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
    let Some(local) = launched.values.sum(&requests) else {
        return spills(launched, f64::from(spilled.filter(|&bytes| bytes > 0)?));
    };
    let all = local + launched.values.sum(&others).unwrap_or(0.0);
    let part = (all > 0.0).then(|| local / all)?;
    if part < LOCAL_FROM {
        return None;
    }
    let mut evidence: Vec<Evidence> =
        requests.iter().chain(&others).filter_map(|id| launched.metric(id)).collect();
    let what = match spilled {
        Some(0) => {
            "the compiler spilled no registers, so they access arrays whose indices it \
                    does not know"
        }
        Some(_) => {
            "registers are spilled: keep fewer values live, unroll loops less, or allow \
                    more registers"
        }
        None => {
            "registers are spilled, or arrays are accessed by indices that the compiler does \
                 not know"
        }
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
            "at least {} of the requests: fewer may be a prologue that runs once",
            percent(LOCAL_FROM)
        ),
        evidence,
    })
}

/// Detects spills of registers from what the compiler reports, where requests were not counted.
fn spills(launched: &Launched<'_>, bytes: f64) -> Option<Advice> {
    let mut evidence =
        vec![field("compile.resources.spill_store_bytes + spill_load_bytes", bytes, "bytes")];
    evidence.extend(launched.metric("registers_per_thread"));
    Some(Advice {
        code: AdviceCode::LocalMemory,
        message: format!(
            "the compiler spills registers: {bytes:.0} bytes of stores and loads per thread go to \
             local memory; keep fewer values live, unroll loops less, or allow more registers \
             (`__launch_bounds__`, `--maxrregcount`)"
        ),
        // How often the spills run is not known.
        share: launched.memory_use().unwrap_or(UNCOUNTED_SPILLS).clamp(0.0, 1.0),
        share_of: ShareOf::Traffic,
        threshold: "any spill".to_owned(),
        evidence,
    })
}
