//! Runs of an evaluation's kernel under Nsight Compute, and metrics of programs that launch kernels
//! themselves.

use std::collections::BTreeSet;
use std::path::Path;

use crate::host::Host;
use crate::prepare::Prepared;
use crate::profiling::analysed;
use crate::profiling::profiled;
use warpgauge_contract::{EvaluateRequest, ProfileSpec};
use warpgauge_metrics::{
    ClockControl, CollectedMetrics, DeviceMetrics, ProfiledLaunch, several_metrics,
};
use warpgauge_model::{CacheState, Cause, DeviceInfo, Unavailable};
use warpgauge_nsight::{ToolFile, ncu};
use warpgauge_report::Availability;
use warpgauge_worker::Lease;

/// Reads the counters of one launch with Nsight Compute.
pub(crate) async fn counters(
    host: &Host,
    lease: &mut Lease,
    request: &EvaluateRequest,
    prepared: &Prepared,
    names: &BTreeSet<&'static str>,
) -> Result<(CollectedMetrics, Vec<ToolFile>), Unavailable> {
    let asked = ncu::ProfileRun {
        subject: ncu::NcuTarget::Job(&prepared.job),
        directory: &prepared.job.directory,
        metrics: ncu::Metrics::Named(names.iter().map(|name| (*name).to_owned()).collect()),
        cache: request.measure.cache,
        clocks: clocks(&host.config.tools.clock_control),
        time_limit: host.tool_limit(),
    };
    let profiled = ncu::profile(&host.tools, lease, &asked).await?;
    let collected = ncu::collected(&profiled, &names.iter().copied().collect())?;
    Ok((collected, profiled.artifacts))
}

/// Names in `profile.tools` that request hardware metrics of a program that launches kernels
/// itself. Only Nsight Compute reads these.
const NAMES: [&str; 2] = ["auto", "ncu"];

/// Returns whether a request asks for hardware metrics of a program that launches kernels itself.
pub(crate) fn wants_counters(profile: &ProfileSpec) -> bool {
    let named = |tool: &String| NAMES.contains(&tool.as_str());
    profile.tools.is_empty() || profile.tools.iter().any(named)
}

/// Returns whether there are metrics, and the reason if there are none.
pub(crate) fn availability<T>(metrics: Result<T, &Unavailable>) -> Availability {
    let why = metrics.err();
    let reason = why.map(|why| format!("{}; {}", why.reason, why.remedy));
    Availability { available: why.is_none(), reason }
}

/// Maximum number of launches of a program whose counters are read. Nsight Compute replays each
/// launch once for every few counters.
pub(crate) const LAUNCHES: u32 = 32;

/// Returns the metrics of the program's first launches, by kernel and in total, with their
/// analyses. `directory` is a directory that only this run uses. `of` describes the program in
/// words.
pub(crate) async fn metrics_of_launches(
    host: &Host,
    lease: &mut Lease,
    (request, device): (&EvaluateRequest, &DeviceInfo),
    subject: ncu::NcuTarget<'_>,
    directory: &Path,
    of: &str,
) -> Result<(DeviceMetrics, Vec<ToolFile>), Unavailable> {
    let capability = device.target.architecture();
    let selection = profiled::selection(request, device.kind);
    let names = warpgauge_metrics::nvidia_names(&selection, capability);
    let asked = ncu::ProfileRun {
        subject,
        directory,
        metrics: ncu::Metrics::Named(names.iter().map(|name| (*name).to_owned()).collect()),
        // Each kernel finds in the caches what the preceding kernels left there.
        cache: CacheState::Hot,
        clocks: clocks(&host.config.tools.clock_control),
        time_limit: host.tool_limit(),
    };
    let told = ncu::profile(&host.tools, lease, &asked).await?;
    let mut collected = ncu::collected_all(&told, &names.iter().copied().collect())?;
    if collected.len() == LAUNCHES as usize {
        let note = format!("of the first {LAUNCHES} launches of the {of}");
        collected.iter_mut().for_each(|one| one.note = Some(note.clone()));
    }
    let profiled = |collected| ProfiledLaunch { collected, capability, launch: None };
    let launches: Vec<ProfiledLaunch<'_>> = collected.iter().map(profiled).collect();
    let mut metrics = several_metrics(&launches, &selection)
        .ok_or_else(|| Cause::NoKernel.because(format!("the {of} launched no kernel")))?;
    analysed::of_several(&mut metrics, device);
    Ok((metrics, told.artifacts))
}

/// Returns the clock control that the configuration names. The configuration was validated when it
/// was read.
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
