//! Computes metrics of the catalogue from values of NVIDIA's metrics. The main type is
//! [`CollectedMetrics`].

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::catalogue::{ChipFormula, MetricInfo, has_counters};
use super::found::{Found, Known, Report};
use super::gpm;
use super::launch::DeviceLaunch;
use super::select::Selection;
use super::types::{Conditions, DeviceMetrics, MetricSource};

const EMULATOR_ONLY: &str = "NVIDIA's tools do not report such a metric";
const NO_REQUESTS: &str = "the kernel makes no such request";

/// Metrics that a tool collected for one kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectedMetrics {
    /// Tool that collected the metrics.
    pub source: MetricSource,
    /// Name and version of the tool, e.g. `CUPTI 13.0.85`.
    pub tool: String,
    /// Name of the kernel in the tool's output.
    pub kernel: String,
    /// NVIDIA's metrics in base units (bytes, s, Hz, %, counts); finite.
    pub values: BTreeMap<String, f64>,
    /// NVIDIA's metrics that have no value, with the reason.
    pub missing: BTreeMap<String, String>,
    /// Conditions of the measurement.
    pub conditions: Conditions,
    /// Caveat that applies to all values.
    pub note: Option<String>,
}

/// Returns the NVIDIA metrics that Nsight Compute must collect for the selection, on a chip of this
/// compute capability (times 10).
pub fn nvidia_names(selection: &Selection, capability: u32) -> BTreeSet<&'static str> {
    let source = |info: &&'static MetricInfo| {
        has_counters(capability).then(|| info.sources_for(capability).next())?
    };
    selection.metrics.iter().filter_map(source).flat_map(ChipFormula::names).collect()
}

/// Returns the NVIDIA metrics that CUPTI must collect for the selection. CUPTI supports only
/// counters, and not the metrics that Nsight Compute derives from the launch or from the
/// instructions.
pub fn counter_names(selection: &Selection, capability: u32) -> BTreeSet<&'static str> {
    let counters = |source: &&'static ChipFormula| source.names().into_iter().all(is_counter);
    let source = |info: &&'static MetricInfo| {
        has_counters(capability).then(|| info.sources_for(capability).find(counters))?
    };
    selection.metrics.iter().filter_map(source).flat_map(ChipFormula::names).collect()
}

/// Returns whether an NVIDIA metric is a counter of the hardware or of instrumented instructions,
/// which CUPTI supports, too.
pub(super) fn is_counter(name: &str) -> bool {
    const NCU_ONLY: [&str; 8] = [
        "launch__",
        "device__",
        "derived__",
        "sass__",
        "memory_",
        "smsp__pcsamp_",
        "sm__maximum_warps_",
        "profiler__",
    ];
    !NCU_ONLY.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the selected metrics: values from the tool by the catalogue's formulas, values that
/// follow from the launch, and reasons for all that are missing.
pub fn device_metrics(
    collected: &CollectedMetrics,
    launched: &DeviceLaunch<'_>,
    selection: &Selection,
) -> DeviceMetrics {
    let capability = launched.device.target.architecture();
    let mut metrics =
        report(collected).of(selection, |info| match told(collected, info, capability) {
            Err(reason) => launched.fact(info.id).unwrap_or(Err(reason)),
            found => found,
        });
    if collected.source == MetricSource::Gpm {
        gpm::add_others(&mut metrics.metrics, collected);
    }
    metrics
}

pub(super) fn report(collected: &CollectedMetrics) -> Report {
    Report {
        kernel: collected.kernel.clone(),
        source: collected.source,
        tool: collected.tool.clone(),
        conditions: Some(collected.conditions.clone()),
    }
}

/// Returns a metric from its first source for which the tool has all values.
pub(super) fn told(
    collected: &CollectedMetrics,
    info: &'static MetricInfo,
    capability: u32,
) -> Found {
    if collected.source == MetricSource::Gpm {
        return gpm::told(collected, info);
    }
    let value = |name: &str| collected.values.get(name).copied();
    let stands = |source: &&ChipFormula| source.formula.evaluate(&value).is_some();
    // A value that the tool reports is used even if the chip shares the host's memory.
    let unexpected = info.sources.iter().filter(|source| source.has(capability)).find(stands);
    let mut sources = info.sources_for(capability).chain(unexpected).peekable();
    let Some(first) = sources.peek().copied() else {
        return Err(match info.sources.is_empty() {
            true => EMULATOR_ONLY.into(),
            false => format!(
                "chips of compute capability {}.{} have no counter for it",
                capability / 10,
                capability % 10
            )
            .into(),
        });
    };
    match sources.find_map(|source| source.formula.evaluate(&value)) {
        Some(Ok(value)) => {
            let note = collected.note.clone().map(Cow::Owned);
            Ok(Known { note, ..Known::plain(value, collected.source) })
        }
        Some(Err(_)) => Err(NO_REQUESTS.into()),
        None => Err(why_missing(collected, first).into()),
    }
}

fn why_missing(collected: &CollectedMetrics, source: &ChipFormula) -> String {
    let lacks = |name: &&str| !collected.values.contains_key(*name);
    let Some(name) = source.names().into_iter().find(lacks) else {
        return "its value is not a number".to_owned();
    };
    match collected.missing.get(name) {
        Some(reason) => format!("{name}: {reason}"),
        None if collected.source == MetricSource::Static => {
            format!("{name} is a counter, and no counters were read")
        }
        None => format!("{} does not report {name}", collected.tool),
    }
}

#[cfg(test)]
mod tests;
