//! Finds the differences between two reports, and sorts them by how well they explain the change of
//! the time. The main type is [`Changes`].
//!
//! A metric explains a change of the time if its own change would cause it: twice the bytes take
//! twice the time, and so does half the throughput. `explains` is 1 if both ratios are equal. It is
//! smaller the more they differ, and 0 if the metric did not change or changed in the opposite
//! direction.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Imported, ImportedVerdict};
use crate::catalogue::{CATALOGUE, MetricInfo, MetricUnit};
use crate::nsys::NsysRow;
use crate::roofline::BoundBy;
use crate::types::{DeviceMetrics, Metric};

/// Maximum number of changed metrics of a kernel.
const MAX_CHANGES: usize = 20;
/// Maximum number of kernels.
const MAX_KERNELS: usize = 200;
/// Minimum relative change of a metric.
const CHANGED_FROM: f64 = 0.02;
/// Minimum relative change of the time that metrics can explain.
const TIME_FROM: f64 = 0.01;

/// Differences between two reports.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Changes {
    /// Kernels that are in both reports, the largest change of the total time first.
    pub kernels: Vec<KernelChange>,
    /// Kernels that are only in the first report.
    pub gone: Vec<String>,
    /// Kernels that are only in the second report.
    pub new: Vec<String>,
    /// Caveats.
    pub notes: Vec<String>,
}

/// Differences of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct KernelChange {
    /// Name of the kernel in the second report.
    pub kernel: String,
    /// Numbers of launches before and after.
    pub launches: [u64; 2],
    /// Time of all launches before and after, seconds.
    pub total_seconds: [f64; 2],
    /// Mean time of a launch after, divided by that before.
    pub time_ratio: f64,
    /// Resource that limits the kernel in the first report. Absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_by_before: Option<BoundBy>,
    /// Resource that limits the kernel in the second report. Absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_by_after: Option<BoundBy>,
    /// Metrics that changed, those that explain the time best first. Counts are per launch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<MetricChange>,
}

/// A metric that changed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MetricChange {
    /// Id in the catalogue.
    pub metric: &'static str,
    pub unit: &'static str,
    pub before: f64,
    pub after: f64,
    /// Value after divided by value before. Absent if the latter is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// How well the change of the metric explains the change of the time, from 0 to 1.
    pub explains: f64,
}

/// Reasons why two reports cannot be compared.
#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum ChangesError {
    /// The reports are from different tools, or contain no kernels.
    #[error(
        "both files must contain kernels from the same tool: two pages of Nsight Compute, or two \
         tables of kernels of Nsight Systems (`--report cuda_gpu_kern_sum`)"
    )]
    Different,
}

/// A kernel of one report.
struct Side<'a> {
    launches: u64,
    total: f64,
    bound_by: Option<BoundBy>,
    metrics: Option<&'a BTreeMap<String, Metric>>,
}

/// Returns the differences from `before` to `after`.
///
/// # Errors The reports are from different tools, or contain no kernels.
pub fn changes(before: &Imported, after: &Imported) -> Result<Changes, ChangesError> {
    if std::mem::discriminant(before) != std::mem::discriminant(after) {
        return Err(ChangesError::Different);
    }
    let (mut old, new) = (sides(before)?, sides(after)?);
    let mut notes = Vec::new();
    let mut changes =
        Changes { kernels: Vec::new(), gone: Vec::new(), new: Vec::new(), notes: Vec::new() };
    // If each report has a single kernel, the kernel may have been renamed.
    let renamed = match (old.keys().next().copied(), new.keys().next().copied()) {
        (Some(a), Some(b)) if old.len() == 1 && new.len() == 1 && a != b => Some(a),
        _ => None,
    };
    for (name, after) in new {
        let Some(before) = old.remove(renamed.unwrap_or(name)) else {
            changes.new.push(name.to_owned());
            continue;
        };
        if let Some(renamed) = renamed {
            notes.push(format!(
                "`{renamed}` is compared with `{name}`: each is the only kernel of \
                                its report"
            ));
        }
        changes.kernels.push(change(name, &before, &after));
    }
    changes.gone = old.into_keys().map(str::to_owned).collect();
    let moved = |kernel: &KernelChange| (kernel.total_seconds[1] - kernel.total_seconds[0]).abs();
    changes.kernels.sort_by(|a, b| moved(b).total_cmp(&moved(a)));
    for list in [&mut changes.gone, &mut changes.new] {
        list.truncate(MAX_KERNELS);
    }
    if changes.kernels.len() > MAX_KERNELS {
        notes.push(format!(
            "{} more kernels, which changed less, are left out",
            changes.kernels.len() - MAX_KERNELS
        ));
        changes.kernels.truncate(MAX_KERNELS);
    }
    changes.notes = notes;
    Ok(changes)
}

fn sides(imported: &Imported) -> Result<BTreeMap<&str, Side<'_>>, ChangesError> {
    match imported {
        Imported::Ncu { device_metrics, verdicts, .. } => Ok(of_ncu(device_metrics, verdicts)),
        Imported::Nsys { report, .. } if !report.kernels.is_empty() => Ok(of_nsys(&report.kernels)),
        _ => Err(ChangesError::Different),
    }
}

fn of_ncu<'a>(
    metrics: &'a DeviceMetrics,
    verdicts: &'a [ImportedVerdict],
) -> BTreeMap<&'a str, Side<'a>> {
    let by_kernel = metrics.kernels.iter().map(|one| (one.kernel.as_str(), &one.metrics));
    let by_kernel: BTreeMap<&str, &BTreeMap<String, Metric>> = by_kernel.collect();
    let side = |verdict: &'a ImportedVerdict| {
        let own = by_kernel.get(verdict.kernel.as_str()).copied().unwrap_or(&metrics.metrics);
        let side = Side {
            launches: u64::from(verdict.launches),
            total: verdict.total_seconds?,
            bound_by: verdict.bound_by,
            metrics: Some(own),
        };
        Some((verdict.kernel.as_str(), side))
    };
    verdicts.iter().filter_map(side).collect()
}

/// Rows with the same name differ in the size of the grid, or are from several tables.
fn of_nsys(rows: &[NsysRow]) -> BTreeMap<&str, Side<'_>> {
    let mut sides: BTreeMap<&str, Side<'_>> = BTreeMap::new();
    for row in rows {
        let none = || Side { launches: 0, total: 0.0, bound_by: None, metrics: None };
        let side = sides.entry(&row.name).or_insert_with(none);
        side.launches = side.launches.saturating_add(row.count);
        side.total += row.total;
    }
    sides
}

fn change(kernel: &str, before: &Side<'_>, after: &Side<'_>) -> KernelChange {
    let mean = |side: &Side<'_>| side.total / side.launches.max(1) as f64;
    let time_ratio = mean(after) / mean(before);
    let mut changes: Vec<MetricChange> = match (before.metrics, after.metrics) {
        (Some(old), Some(new)) => CATALOGUE
            .iter()
            .filter(|info| info.id != "duration")
            .filter_map(|info| {
                let value = |metrics: &BTreeMap<String, Metric>, launches: u64| {
                    let value = metrics.get(info.id)?.value?;
                    Some(if is_count(info) { value / launches.max(1) as f64 } else { value })
                };
                let values = [value(old, before.launches)?, value(new, after.launches)?];
                metric(info, values, time_ratio)
            })
            .collect(),
        _ => Vec::new(),
    };
    let size = |change: &MetricChange| change.ratio.map_or(f64::INFINITY, |r| r.ln().abs());
    changes.sort_by(|a, b| {
        b.explains.total_cmp(&a.explains).then_with(|| size(b).total_cmp(&size(a)))
    });
    changes.truncate(MAX_CHANGES);
    KernelChange {
        kernel: kernel.to_owned(),
        launches: [before.launches, after.launches],
        total_seconds: [before.total, after.total],
        time_ratio,
        bound_by_before: before.bound_by,
        bound_by_after: after.bound_by,
        changes,
    }
}

fn metric(info: &MetricInfo, [before, after]: [f64; 2], time: f64) -> Option<MetricChange> {
    let apart = (after - before).abs();
    if apart < CHANGED_FROM * before.abs().max(after.abs()) || apart == 0.0 {
        return None;
    }
    let ratio = (before != 0.0).then(|| after / before);
    let explains = ratio.map_or(0.0, |ratio| explains(info, ratio, time));
    Some(MetricChange { metric: info.id, unit: info.unit.name(), before, after, ratio, explains })
}

/// Returns how well the change of a metric explains a change of the time.
fn explains(info: &MetricInfo, ratio: f64, time: f64) -> f64 {
    let time = time.ln();
    if ratio <= 0.0 || !time.is_finite() || time.abs() < TIME_FROM {
        return 0.0;
    }
    let made = match effect(info) {
        Effect::Work => ratio.ln(),
        Effect::Rate => -ratio.ln(),
        Effect::None => return 0.0,
    };
    let part = made / time;
    // A metric that changed more than the time did explains it less.
    let part = if part > 1.0 { 1.0 / part } else { part };
    part.clamp(0.0, 1.0)
}

/// Effect of a metric on the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// A larger value takes more time.
    Work,
    /// A larger value takes less time.
    Rate,
    /// The effect is not known.
    None,
}

fn is_count(info: &MetricInfo) -> bool {
    use MetricUnit as U;
    let occupancy = info.group == crate::catalogue::MetricGroup::Occupancy;
    !occupancy
        && matches!(
            info.unit,
            U::Bytes
                | U::Seconds
                | U::Cycles
                | U::Instructions
                | U::Requests
                | U::Operations
                | U::Sectors
                | U::Wavefronts
                | U::Conflicts
        )
}

fn effect(info: &MetricInfo) -> Effect {
    use MetricUnit as U;
    match info.unit {
        _ if is_count(info) => Effect::Work,
        _ if info.id.starts_with("peak_") => Effect::None,
        _ if info.id.starts_with("stall_") => Effect::None,
        U::SectorsPerRequest => Effect::Work,
        U::Hertz | U::InstructionsPerCycle | U::BytesPerSecond | U::OperationsPerSecond => {
            Effect::Rate
        }
        U::Percent | U::Warps | U::Threads => Effect::Rate,
        _ => Effect::None,
    }
}

#[cfg(test)]
mod tests;
