//! Nsight Compute and Nsight Systems round an evaluation's kernel.

use std::collections::BTreeSet;
use std::path::Path;

use super::analysed;
use super::local::LocalExecutor;
use super::prepare::Prepared;
use warpgauge_contract::{EvaluateRequest, ProfileSpec};
use warpgauge_model::{CacheState, Cause, DeviceInfo, Unavailable};
use warpgauge_process::program::Program;
use warpgauge_profile::{
    ClockControl, Collected, DeviceMetrics, Profiled, Selection, several_metrics,
};
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

/// Most launches of a program, or of a call, whose counters are read: each is run once for every few of them.
pub(super) const LAUNCHES: u32 = 32;

/// Names by which `profile.tools` asks for hardware metrics where nothing but Nsight Compute reads them: of
/// what launches kernels itself.
const NAMES: [&str; 2] = ["auto", "ncu"];

/// Whether a request asks for hardware metrics of what launches kernels itself.
pub(super) fn wants_counters(profile: &ProfileSpec) -> bool {
    let named = |tool: &String| NAMES.contains(&tool.as_str());
    profile.tools.is_empty() || profile.tools.iter().any(named)
}

/// Counters of a program's first launches, from Nsight Compute. `directory`: for this run alone.
pub(super) async fn program_counters(
    shared: &LocalExecutor,
    lease: &mut Lease,
    (program, stdin): (&Program, &[u8]),
    directory: &Path,
    names: &BTreeSet<&'static str>,
) -> Result<(Vec<Collected>, Vec<Artifact>), Unavailable> {
    let subject = ncu::Subject::Program { program, stdin, writes: directory, launches: LAUNCHES };
    counted(shared, lease, subject, directory, names, "program").await
}

/// Counters of the first launches of one call, from Nsight Compute. `directory`: for this run alone.
pub(super) async fn call_counters(
    shared: &LocalExecutor,
    lease: &mut Lease,
    service: &dyn ncu::Service,
    directory: &Path,
    names: &BTreeSet<&'static str>,
) -> Result<(Vec<Collected>, Vec<Artifact>), Unavailable> {
    let subject = ncu::Subject::Served { service, writes: directory, launches: LAUNCHES };
    counted(shared, lease, subject, directory, names, "call").await
}

/// Counters of several launches. `of`: what launches them, in words.
async fn counted(
    shared: &LocalExecutor,
    lease: &mut Lease,
    subject: ncu::Subject<'_>,
    directory: &Path,
    names: &BTreeSet<&'static str>,
    of: &str,
) -> Result<(Vec<Collected>, Vec<Artifact>), Unavailable> {
    let asked = ncu::ProfileRun {
        subject,
        directory,
        metrics: ncu::Metrics::Named(names.iter().map(|name| (*name).to_owned()).collect()),
        // What a kernel finds in the caches, those before it left there.
        cache: CacheState::Hot,
        clocks: clocks(&shared.config.tools.clock_control),
        time_limit: shared.tool_limit(),
    };
    let profiled = ncu::profile(&shared.tools, lease, &asked).await?;
    let mut collected = ncu::collected_all(&profiled, &names.iter().copied().collect())?;
    if collected.len() == LAUNCHES as usize {
        let note = format!("of the first {LAUNCHES} launches of the {of}");
        collected.iter_mut().for_each(|one| one.note = Some(note.clone()));
    }
    Ok((collected, profiled.artifacts))
}

/// Metrics of all launches by kernel and together, with what follows from them.
///
/// # Errors
/// There was no launch.
pub(super) fn metrics_of(
    launches: &[Collected],
    selection: &Selection,
    device: &DeviceInfo,
) -> Result<DeviceMetrics, Unavailable> {
    let capability = device.target.architecture();
    let profiled = |collected| Profiled { collected, capability, launch: None };
    let launches: Vec<Profiled<'_>> = launches.iter().map(profiled).collect();
    let mut metrics = several_metrics(&launches, selection)
        .ok_or_else(|| Cause::NoKernel.because("no kernel was launched"))?;
    analysed::of_several(&mut metrics, device);
    Ok(metrics)
}

/// The configuration's word, which was checked when it was read.
fn clocks(word: &str) -> ClockControl {
    match word {
        "base" => ClockControl::Base,
        "boost" => ClockControl::Boost,
        _ => ClockControl::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_where_they_are_asked_for() {
        let wants = |tools: &[&str]| {
            let tools = tools.iter().map(|&tool| tool.to_owned()).collect();
            wants_counters(&ProfileSpec { tools, metrics: Vec::new() })
        };
        assert!(wants(&[]) && wants(&["nsys", "ncu"]) && wants(&["auto"]));
        assert!(!wants(&["nsys"]) && !wants(&["cupti"]));
    }
}
