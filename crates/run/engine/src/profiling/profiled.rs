//! Device metrics of a report, from the best source that works on this machine.
//!
//! On a GPU the sources are tried in order, best first. Each runs in a separate process after the
//! timed launches, while the device is still leased. A source that fails gives a reason rather than
//! an error. The last source, which needs only the launch, always succeeds.

use std::time::Duration;

use super::nested;
use crate::host::Host;
use crate::prepare::{Prepared, accepts_emulator};
use crate::profiling::monitored;
use crate::profiling::nsight;
use warpgauge_contract::{EvaluateRequest, ProfileSpec};
use warpgauge_metrics::{
    CacheControl, ClockControl, CollectedMetrics, Conditions, DeviceLaunch, DeviceMetrics,
    MetricSource, Replay, Selection,
};
use warpgauge_model::{
    CacheState, Cause, DeviceInfo, DeviceKind, FailureCode, PresetName, Unavailable,
};
use warpgauge_nsight::ToolFile;
use warpgauge_report::Availability;
use warpgauge_statistics::Preset;
use warpgauge_worker::Lease;
use warpgauge_worker::protocol::{
    Blame, CountPlan, CounterFacts, EvaluatedRun, RunFailure, RunOutcome,
};

/// Maximum number of launches (passes) for reading counters. The whole catalogue of metrics takes
/// about 50.
pub(crate) const MAX_PASSES: u32 = 256;

/// A source of metrics on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rung {
    /// CUPTI reads hardware counters in the process that launches the kernel.
    Cupti,
    /// Nsight Compute, which runs a process under its control.
    Ncu,
    /// The driver's monitoring of the whole GPU while the kernel runs repeatedly.
    Gpm,
    /// Metrics that are derived from the launch.
    Static,
}

/// Metrics from one source, and the failures of the sources that were tried before it.
pub(crate) struct Profiled {
    collected: CollectedMetrics,
    /// Names of the sources that failed, with the reasons.
    failures: Vec<(String, Unavailable)>,
}

/// Returns the sources that a request asks for, best first. Also returns a failure for each name
/// that is not a source on a GPU.
pub(crate) fn ladder(tools: &[String]) -> (Vec<Rung>, Vec<(String, Unavailable)>) {
    const AUTO: [Rung; 4] = [Rung::Cupti, Rung::Ncu, Rung::Gpm, Rung::Static];
    let (mut rungs, mut failures) = (Vec::new(), Vec::new());
    if tools.is_empty() {
        rungs.extend(AUTO);
    }
    for tool in tools {
        match tool.as_str() {
            "auto" => rungs.extend(AUTO),
            "cupti" => rungs.push(Rung::Cupti),
            "ncu" => rungs.push(Rung::Ncu),
            "gpm" => rungs.push(Rung::Gpm),
            "static" => rungs.push(Rung::Static),
            // `nsys` provides a timeline but no metrics.
            "nsys" => {}
            "emulator" => {
                let text = "the emulator counts only on the emulated device";
                failures.push((tool.clone(), Cause::NoTool.because(text)));
            }
            _ => {
                let text = format!(
                    "{tool} is not a source of metrics; the sources are auto, cupti, ncu, gpm, static"
                );
                failures.push((tool.clone(), Cause::NoTool.because(text)));
            }
        }
    }
    // The static source is always available.
    rungs.push(Rung::Static);
    let last = rungs.iter().position(|rung| *rung == Rung::Static).unwrap_or(0);
    rungs.truncate(last + 1);
    let mut seen = Vec::new();
    rungs.retain(|rung| {
        let new = !seen.contains(rung);
        seen.push(*rung);
        new
    });
    (rungs, failures)
}

/// Returns an error that names the requested tools that cannot profile the emulated device. Returns
/// `None` if there are no such tools.
pub(crate) fn refused_by_emulator(profile: &ProfileSpec) -> Option<Unavailable> {
    let gpu_alone = |tool: &&String| matches!(tool.as_str(), "ncu" | "cupti" | "gpm");
    let names: Vec<&str> = profile.tools.iter().filter(gpu_alone).map(String::as_str).collect();
    (!names.is_empty()).then(|| Unavailable {
        code: Cause::UnsupportedDevice.code().to_owned(),
        reason: format!("{} cannot profile the emulated device", names.join(", ")),
        remedy: "evaluate on a GPU, or leave `profile.tools` out".to_owned(),
    })
}

/// Returns the metrics that a request asks for on a device. On a GPU, where each metric costs time,
/// the default is the preset's set.
pub(crate) fn selection(request: &EvaluateRequest, kind: DeviceKind) -> Selection {
    let named = request.profile.as_ref().map_or(&[][..], |profile| &profile.metrics);
    if !named.is_empty() || kind == DeviceKind::Emulator {
        return warpgauge_metrics::select(named);
    }
    let tools = request.profile.as_ref().map_or(&[][..], |profile| &profile.tools);
    if ladder(tools).0[0] == Rung::Gpm {
        // Monitoring costs the same for all metrics that it supports.
        return warpgauge_metrics::select(
            &warpgauge_metrics::gpm::metrics().map(str::to_owned).collect::<Vec<_>>(),
        );
    }
    warpgauge_metrics::select(&[default_set(request.measure.preset)])
}

fn default_set(preset: PresetName) -> String {
    Preset::builtin(preset).metrics.clone()
}

/// Collects the metrics that the request asks for, after its timed run. Returns `None` if it asks
/// for none, if the kernel did not run to its end, or for the emulated device, whose counts are in
/// the outcome.
pub(crate) async fn collect(
    host: &Host,
    lease: &mut Lease,
    request: &EvaluateRequest,
    prepared: &Prepared,
    outcome: &RunOutcome<EvaluatedRun>,
) -> Option<(Profiled, Vec<ToolFile>)> {
    let profile = request.profile.as_ref()?;
    let device = lease.device().clone();
    if device.kind == DeviceKind::Emulator || outcome.failure.is_some() {
        return None;
    }
    let selection = selection(request, device.kind);
    let names = warpgauge_metrics::counter_names(&selection, device.target.architecture());
    let (rungs, mut failures) = ladder(&profile.tools);
    for rung in rungs {
        let told = match rung {
            Rung::Static => break,
            // All requested metrics are derived from the launch.
            _ if names.is_empty() => break,
            Rung::Cupti => {
                let metrics = names.iter().map(|name| (*name).to_owned()).collect();
                cupti(lease, request, prepared, metrics).await
            }
            Rung::Gpm => monitored::metrics(host, lease, request, prepared, &selection).await,
            Rung::Ncu => {
                let names =
                    warpgauge_metrics::nvidia_names(&selection, device.target.architecture());
                match nsight::counters(host, lease, request, prepared, &names).await {
                    Ok((collected, artifacts)) => {
                        let collected = nested::noted(collected, &prepared.job.program);
                        return Some((Profiled { collected, failures }, artifacts));
                    }
                    Err(unavailable) => Err(unavailable),
                }
            }
        };
        match told.map(|collected| nested::noted(collected, &prepared.job.program)) {
            Ok(collected) => return Some((Profiled { collected, failures }, Vec::new())),
            Err(unavailable) => failures.push((name(rung).to_owned(), unavailable)),
        }
    }
    Some((Profiled { collected: from_launch(prepared), failures }, Vec::new()))
}

pub(crate) fn name(rung: Rung) -> &'static str {
    match rung {
        Rung::Cupti => "cupti",
        Rung::Ncu => "ncu",
        Rung::Gpm => "gpm",
        Rung::Static => "static",
    }
}

/// Returns the result of the static source, which has no counters and needs no tool.
fn from_launch(prepared: &Prepared) -> CollectedMetrics {
    CollectedMetrics {
        source: MetricSource::Static,
        tool: "CUDA driver".to_owned(),
        kernel: prepared.job.program.launches.first.symbol.clone(),
        values: Default::default(),
        missing: Default::default(),
        conditions: Conditions::default(),
        note: None,
    }
}

/// Reads hardware counters with the device's profiling worker.
async fn cupti(
    lease: &mut Lease,
    request: &EvaluateRequest,
    prepared: &Prepared,
    metrics: Vec<String>,
) -> Result<CollectedMetrics, Unavailable> {
    let cache = request.measure.cache;
    let plan = CountPlan { metrics, cache, max_passes: MAX_PASSES };
    let limit = Duration::from_secs_f64(request.timeout);
    let job = prepared.job.with(plan);
    let mut outcome = lease.count(job.clone(), limit).await;
    if died(&outcome) {
        // CUPTI is third-party code that can crash, so a new process makes a second attempt.
        outcome = lease.count(job, limit).await;
    }
    if let Some(failure) = outcome.failure {
        return Err(of_failure(&failure));
    }
    let Some(facts) = outcome.told.facts else {
        return Err(Cause::Unknown.because("the profiling worker reported nothing"));
    };
    let ms = facts.timings;
    tracing::debug!(
        passes = facts.passes,
        open_ms = ms.open_ms,
        plan_ms = ms.plan_ms,
        begin_ms = ms.begin_ms,
        passes_ms = ms.passes_ms,
        prepare_ms = ms.prepare_ms,
        read_ms = ms.read_ms,
        fill_ms = outcome.timings.h2d_ms,
        load_ms = outcome.timings.load_ms,
        execute_ms = outcome.timings.execute_ms,
        "counters were read"
    );
    match facts.unavailable {
        Some(unavailable) => Err(unavailable),
        None => Ok(of_counters(facts, &prepared.job.program.launches.first.symbol, cache)),
    }
}

fn died<T>(outcome: &RunOutcome<T>) -> bool {
    outcome.failure.as_ref().is_some_and(|failure| failure.code == FailureCode::WorkerDied)
}

fn of_counters(facts: CounterFacts, kernel: &str, cache: CacheState) -> CollectedMetrics {
    CollectedMetrics {
        source: MetricSource::Cupti,
        tool: facts.tool,
        kernel: kernel.to_owned(),
        values: facts.values,
        missing: facts.missing,
        conditions: Conditions {
            clock_control: Some(ClockControl::None),
            cache_control: Some(match cache {
                CacheState::Cold => CacheControl::All,
                CacheState::Hot => CacheControl::None,
            }),
            replay: Some(Replay::User),
            passes: Some(facts.passes),
            ..Conditions::default()
        },
        note: None,
    }
}

/// Converts the failure of a counter run to the reason why there are no counters. The timed run
/// succeeded before.
pub(crate) fn of_failure(failure: &RunFailure) -> Unavailable {
    let cause = match (&failure.code, failure.blame) {
        (FailureCode::Timeout, _) => Cause::TimedOut,
        (FailureCode::CountersBusy, _) => Cause::CountersBusy,
        (FailureCode::WorkerDied, _) => Cause::ToolDied,
        (_, Blame::Candidate) => Cause::ApplicationFailed,
        _ => Cause::Unknown,
    };
    cause.because(failure.message.clone())
}

/// Returns the availability and the metrics that the request asks for. Both are `None` if it asks
/// for no profile.
pub(crate) fn report(
    request: &EvaluateRequest,
    device: &DeviceInfo,
    prepared: &Prepared,
    outcome: &RunOutcome<EvaluatedRun>,
    profiled: Option<&Profiled>,
) -> (Option<Availability>, Option<DeviceMetrics>) {
    let Some(profile) = &request.profile else { return (None, None) };
    if device.kind == DeviceKind::Emulator && !accepts_emulator(profile) {
        return unavailable(&format!(
            "{} cannot profile the emulated device; leave `profile.tools` out or add `emulator`",
            profile.tools.join(", ")
        ));
    }
    let launch = &prepared.job.program.launches.first;
    let launched = DeviceLaunch {
        device,
        function: outcome.function.as_ref(),
        grid: launch.grid,
        block: launch.block,
        dynamic_shared_bytes: launch.shared_bytes,
    };
    let selection = selection(request, device.kind);
    match (&outcome.told.counts, profiled) {
        (Some(counts), _) if device.kind == DeviceKind::Emulator => {
            let mut metrics = warpgauge_metrics::emulator_metrics(counts, &launched, &selection);
            metrics.unavailable = refused_by_emulator(profile);
            (Some(Availability { available: true, reason: None }), Some(metrics))
        }
        (_, Some(profiled)) => of_profile(profiled, &launched, &selection),
        _ => unavailable("the kernel did not run to its end, so there is nothing to count"),
    }
}

fn of_profile(
    profiled: &Profiled,
    launched: &DeviceLaunch<'_>,
    selection: &Selection,
) -> (Option<Availability>, Option<DeviceMetrics>) {
    let mut metrics = warpgauge_metrics::device_metrics(&profiled.collected, launched, selection);
    let failures = &profiled.failures;
    metrics.unavailable = told(failures);
    // Without counters and without failures, all requested metrics are derived from the launch.
    let counted = profiled.collected.source != MetricSource::Static || failures.is_empty();
    let reason = metrics.unavailable.as_ref().filter(|_| !counted);
    let reason = reason.map(|why| format!("{}; {}", why.reason, why.remedy));
    (Some(Availability { available: counted, reason }), Some(metrics))
}

/// Combines the failures of several sources. Code and remedy are those of the first, which is the
/// best source.
pub(crate) fn told(failures: &[(String, Unavailable)]) -> Option<Unavailable> {
    let (_, first) = failures.first()?;
    let told = |(tool, why): &(String, Unavailable)| format!("{tool}: {}", why.reason);
    let reason = failures.iter().map(told).collect::<Vec<_>>().join("; ");
    Some(Unavailable { code: first.code.clone(), reason, remedy: first.remedy.clone() })
}

fn unavailable(reason: &str) -> (Option<Availability>, Option<DeviceMetrics>) {
    (Some(Availability { available: false, reason: Some(reason.to_owned()) }), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tools: &[&str]) -> (Vec<&'static str>, Vec<String>) {
        let tools = tools.iter().map(|tool| (*tool).to_owned()).collect::<Vec<_>>();
        let (rungs, failures) = ladder(&tools);
        let failed = failures.into_iter().map(|(tool, _)| tool).collect();
        (rungs.into_iter().map(name).collect(), failed)
    }

    #[test]
    fn the_ladder_is_what_was_asked_for_and_ends_with_what_always_answers() {
        let none = Vec::<String>::new();
        assert_eq!(names(&[]), (vec!["cupti", "ncu", "gpm", "static"], none.clone()));
        assert_eq!(names(&["auto"]), names(&[]));
        assert_eq!(names(&["ncu", "cupti"]), (vec!["ncu", "cupti", "static"], none.clone()));
        let all = vec!["ncu", "cupti", "gpm", "static"];
        assert_eq!(names(&["ncu", "auto"]), (all, none.clone()));
        assert_eq!(names(&["gpm"]), (vec!["gpm", "static"], none.clone()));
        assert_eq!(names(&["static", "cupti"]), (vec!["static"], none));
        assert_eq!(
            names(&["emulator", "abacus"]),
            (vec!["static"], vec!["emulator".to_owned(), "abacus".to_owned()])
        );
    }

    #[test]
    fn failures_of_the_profiling_worker_have_stable_codes() {
        let failure = |code, blame| RunFailure { code, message: "what happened".to_owned(), blame };
        let code = |code, blame| of_failure(&failure(code, blame)).code;
        assert_eq!(code(FailureCode::Timeout, Blame::Candidate), "timed_out");
        assert_eq!(code(FailureCode::WorkerDied, Blame::Environment), "tool_died");
        assert_eq!(code(FailureCode::IllegalAddress, Blame::Candidate), "application_failed");
        assert_eq!(code(FailureCode::WorkerUnavailable, Blame::Environment), "tool_failed");
    }
}
