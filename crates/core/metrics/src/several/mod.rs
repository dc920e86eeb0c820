//! Computes the metrics of several kernels, for each kernel and combined.
//!
//! Counts, bytes and times are added. Quotients of counts are computed from the added counts.
//! Percentages, rates and averages are never added; they are weighted by the kernels' times. A
//! property of the launch is kept only if it is equal for all launches. If one launch has no value,
//! there is no combined value, because a partial sum could be mistaken for the total.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::catalogue::{Fraction, MetricGroup, MetricInfo, MetricUnit};
use super::found::{Found, Known, Report};
use super::launch::DeviceLaunch;
use super::select::Selection;
use super::types::{DeviceMetrics, KernelMetrics};
use super::values::{CollectedMetrics, report, told};
pub(crate) use fold::{Folded, LaunchFold};

mod fold;
mod longest;
mod places;

/// Maximum number of kernels that are listed individually. The kernels with the longest time are
/// chosen.
pub const MAX_KERNELS: usize = 200;

/// Maximum length of a kernel's name in a reason, characters.
const MAX_NAME: usize = 80;

const DURATION: &str = "gpu__time_duration.sum";
const WEIGHTED: &str = "mean over the kernels, weighted by their time";
const DIFFERS: &str = "it differs between the kernels: see the value of each";

/// Profiled launch of a kernel.
#[derive(Debug, Clone, Copy)]
pub struct ProfiledLaunch<'a> {
    /// Output of the tool for this launch.
    pub collected: &'a CollectedMetrics,
    /// Compute capability of the device, times 10.
    pub capability: u32,
    /// Configuration of the launch, if known.
    pub launch: Option<&'a DeviceLaunch<'a>>,
}

/// Returns the selected metrics of some launches. If there are several launches, the result
/// contains the combined metrics and those of each kernel. Returns `None` if there are no launches.
pub fn several_metrics(all: &[ProfiledLaunch<'_>], selection: &Selection) -> Option<DeviceMetrics> {
    let first = all.first()?;
    let mut metrics = together(all, selection, first.collected);
    if all.len() == 1 {
        return Some(metrics);
    }
    let mut by_name: BTreeMap<&str, Vec<ProfiledLaunch<'_>>> = BTreeMap::new();
    for one in all {
        by_name.entry(&one.collected.kernel).or_default().push(*one);
    }
    if by_name.len() > 1 {
        metrics.kernel = format!("{} kernels", by_name.len());
    }
    let mut kernels: Vec<(f64, &str, Vec<ProfiledLaunch<'_>>)> = by_name
        .into_iter()
        .map(|(kernel, launches)| (launches.iter().filter_map(time).sum(), kernel, launches))
        .collect();
    kernels.sort_by(|a, b| b.0.total_cmp(&a.0));
    let left_out = kernels.len().saturating_sub(MAX_KERNELS);
    metrics.kernels_left_out = (left_out > 0).then(|| u32::try_from(left_out).unwrap_or(u32::MAX));
    // The metrics of one kernel take some 60 KB, so those of the other kernels are not computed.
    kernels.truncate(MAX_KERNELS);
    let listed = kernels.into_iter().map(|(_, kernel, launches)| KernelMetrics {
        kernel: kernel.to_owned(),
        launches: u32::try_from(launches.len()).unwrap_or(u32::MAX),
        metrics: together(&launches, selection, launches[0].collected).metrics,
    });
    metrics.kernels = listed.collect();
    Some(metrics)
}

fn time(one: &ProfiledLaunch<'_>) -> Option<f64> {
    one.collected.values.get(DURATION).copied()
}

/// Combines the metrics of several launches.
fn together(
    all: &[ProfiledLaunch<'_>],
    selection: &Selection,
    first: &CollectedMetrics,
) -> DeviceMetrics {
    let mut header: Report = report(first);
    if let Some(conditions) = &mut header.conditions {
        // Launches may differ in their number of passes.
        if all.iter().any(|one| one.collected.conditions.passes != first.conditions.passes) {
            conditions.passes = None;
        }
    }
    header.of(selection, |info| match all {
        [one] => find(one, info),
        all => combine(all, info),
    })
}

fn find(one: &ProfiledLaunch<'_>, info: &'static MetricInfo) -> Found {
    told(one.collected, info, one.capability)
        .or_else(|reason| one.launch.and_then(|launch| launch.fact(info.id)).unwrap_or(Err(reason)))
}

/// Rule for combining the values of several launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Sum,
    Weighted,
    Same,
}

fn rule(info: &MetricInfo) -> Rule {
    match info.unit {
        // The metrics of this group are resources of a block or a thread, and the limits that
        // follow from them.
        _ if info.group == MetricGroup::Occupancy => Rule::Same,
        MetricUnit::OperationsPerCycle | MetricUnit::BytesPerCycle => Rule::Same,
        MetricUnit::Registers | MetricUnit::Blocks | MetricUnit::Waves => Rule::Same,
        MetricUnit::Bytes
        | MetricUnit::Seconds
        | MetricUnit::Cycles
        | MetricUnit::Instructions
        | MetricUnit::Requests
        | MetricUnit::Operations
        | MetricUnit::Sectors
        | MetricUnit::Wavefronts
        | MetricUnit::Conflicts => Rule::Sum,
        MetricUnit::Percent
        | MetricUnit::BytesPerSecond
        | MetricUnit::InstructionsPerCycle
        | MetricUnit::Warps
        | MetricUnit::Threads
        | MetricUnit::OperationsPerByte
        | MetricUnit::OperationsPerSecond
        | MetricUnit::Hertz
        | MetricUnit::SectorsPerRequest
        | MetricUnit::Ratio => Rule::Weighted,
    }
}

fn combine(all: &[ProfiledLaunch<'_>], info: &'static MetricInfo) -> Found {
    if let Some(found) = from_sums(all, info) {
        return found;
    }
    let mut values = Vec::with_capacity(all.len());
    for one in all {
        match find(one, info) {
            Ok(known) => values.push(known),
            Err(reason) => {
                return Err(format!("{}: {reason}", short(&one.collected.kernel)).into());
            }
        }
    }
    let first = values[0].clone();
    match rule(info) {
        Rule::Sum => Ok(Known { value: values.iter().map(|known| known.value).sum(), ..first }),
        Rule::Same if values.iter().all(|known| known.value == first.value) => Ok(first),
        Rule::Same => Err(DIFFERS.into()),
        Rule::Weighted => {
            let times: Option<Vec<f64>> = all.iter().map(time).collect();
            let total: Option<f64> = times.as_ref().map(|times| times.iter().sum());
            let (Some(times), Some(total)) = (times, total.filter(|total| *total > 0.0)) else {
                return Err(needs_time());
            };
            let sum: f64 = values.iter().zip(times).map(|(known, time)| known.value * time).sum();
            Ok(Known { value: sum / total, note: Some(Cow::Borrowed(WEIGHTED)), ..first })
        }
    }
}

fn needs_time() -> Cow<'static, str> {
    format!("a mean over several kernels needs the time of each, and {DURATION} is missing").into()
}

/// Returns the beginning of a kernel's name for a reason, because names of templates can be very
/// long.
fn short(kernel: &str) -> Cow<'_, str> {
    match kernel.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{}…", &kernel[..end]).into(),
        None => kernel.into(),
    }
}

/// Returns a quotient of counts, computed from the sum of each count over all launches. Returns
/// `None` for any other metric, if a count is missing, or if the launches are from different chips.
fn from_sums(all: &[ProfiledLaunch<'_>], info: &'static MetricInfo) -> Option<Found> {
    let capability = all.first()?.capability;
    if all.iter().any(|one| one.capability != capability) {
        return None;
    }
    let counts = |fraction: &Fraction| {
        let mut names = fraction.above.iter().chain(&fraction.below);
        !fraction.below.is_empty() && names.all(|(name, _)| is_count(name))
    };
    let fractions = info.sources_for(capability).map(|source| source.formula.fraction());
    fractions.filter(counts).find_map(|fraction| {
        let sum = |terms: &[(&'static str, f64)]| {
            let of = |one: &ProfiledLaunch<'_>| {
                let term =
                    |(name, weight): &(&str, f64)| Some(one.collected.values.get(*name)? * weight);
                terms.iter().map(term).sum::<Option<f64>>()
            };
            all.iter().map(of).sum::<Option<f64>>()
        };
        let (above, below) = (sum(&fraction.above)?, sum(&fraction.below)?);
        Some(match above / below {
            value if value.is_finite() => Ok(Known::plain(value, all[0].collected.source)),
            _ => Err("none of the kernels makes such a request".into()),
        })
    })
}

/// Returns whether values of this NVIDIA metric may be added over launches.
fn is_count(name: &str) -> bool {
    name.ends_with(".sum") || name.starts_with("memory_l")
}

#[cfg(test)]
mod tests;
