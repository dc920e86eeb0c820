//! Nsight Compute and Nsight Systems round an evaluation's kernel.

use std::collections::BTreeSet;
use std::path::Path;

use super::local::LocalExecutor;
use super::prepare::Prepared;
use warpgauge_contract::EvaluateRequest;
use warpgauge_model::{CacheState, Unavailable};
use warpgauge_process::program::Program;
use warpgauge_profile::{ClockControl, Collected};
use warpgauge_tools::{Artifact, ncu};
use warpgauge_worker::Lease;

/// Counters of one launch, from Nsight Compute.
pub(super) async fn counters(
    shared: &LocalExecutor,
    lease: &mut Lease,
    request: &EvaluateRequest,
    prepared: &Prepared,
    names: &BTreeSet<&'static str>,
) -> Result<(Collected, Vec<Artifact>), Unavailable> {
    let asked = ncu::ProfileRun {
        subject: ncu::Subject::Job(&prepared.job),
        directory: &prepared.job.directory,
        metrics: ncu::Metrics::Named(names.iter().map(|name| (*name).to_owned()).collect()),
        cache: request.measure.cache,
        clocks: clocks(&shared.config.tools.clock_control),
        time_limit: shared.tool_limit(),
    };
    let profiled = ncu::profile(&shared.tools, lease, &asked).await?;
    let collected = ncu::collected(&profiled, &names.iter().copied().collect())?;
    Ok((collected, profiled.artifacts))
}

/// Most launches of a program whose counters are read: each is run once for every few of them.
const LAUNCHES: u32 = 32;

/// Counters of a program's first launches, from Nsight Compute. `directory`: for this run alone.
pub(super) async fn program_counters(
    shared: &LocalExecutor,
    lease: &mut Lease,
    (program, stdin): (&Program, &[u8]),
    directory: &Path,
    names: &BTreeSet<&'static str>,
) -> Result<(Vec<Collected>, Vec<Artifact>), Unavailable> {
    let asked = ncu::ProfileRun {
        subject: ncu::Subject::Program { program, stdin, writes: directory, launches: LAUNCHES },
        directory,
        metrics: ncu::Metrics::Named(names.iter().map(|name| (*name).to_owned()).collect()),
        // What a program finds in the caches is its own affair.
        cache: CacheState::Hot,
        clocks: clocks(&shared.config.tools.clock_control),
        time_limit: shared.tool_limit(),
    };
    let profiled = ncu::profile(&shared.tools, lease, &asked).await?;
    let mut collected = ncu::collected_all(&profiled, &names.iter().copied().collect())?;
    if collected.len() == LAUNCHES as usize {
        let note = format!("of the first {LAUNCHES} launches of the program");
        collected.iter_mut().for_each(|one| one.note = Some(note.clone()));
    }
    Ok((collected, profiled.artifacts))
}

/// The configuration's word, which was checked when it was read.
fn clocks(word: &str) -> ClockControl {
    match word {
        "base" => ClockControl::Base,
        "boost" => ClockControl::Boost,
        _ => ClockControl::None,
    }
}
