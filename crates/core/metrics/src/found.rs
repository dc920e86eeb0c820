//! Collects the metrics of one source for a report.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::catalogue::{FieldGroup, MetricInfo};
use super::select::Selection;
use super::types::{Conditions, DeviceMetrics, Metric, MetricGroups, MetricSource};

/// Value of a metric, in the catalogue's unit.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) value: f64,
    pub(super) source: MetricSource,
    /// Caveat about the value.
    pub(super) note: Option<Cow<'static, str>>,
}

impl Known {
    pub(super) fn plain(value: f64, source: MetricSource) -> Self {
        Self { value, source, note: None }
    }
}

/// Value of a metric, or the reason why the metric has no value.
pub(super) type Found = Result<Known, Cow<'static, str>>;

/// The properties of a report other than its metrics.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) kernel: String,
    pub(super) source: MetricSource,
    pub(super) tool: String,
    pub(super) conditions: Option<Conditions>,
}

impl Report {
    /// Adds the selected metrics, with the values that `find` returns.
    pub(super) fn of(
        self,
        selection: &Selection,
        mut find: impl FnMut(&'static MetricInfo) -> Found,
    ) -> DeviceMetrics {
        let mut groups = MetricGroups::default();
        let mut metrics = BTreeMap::new();
        for info in &selection.metrics {
            let found = find(info);
            if let Ok(known) = &found {
                place(&mut groups, info, known.value);
            }
            metrics.insert(info.id.to_owned(), metric(info, found));
        }
        for name in &selection.unknown {
            let reason = "the catalogue has no metric, group or NVIDIA metric of this name";
            metrics.insert(name.clone(), absent(reason));
        }
        DeviceMetrics {
            original_device_metrics: groups,
            custom_device_metrics: None,
            kernel: self.kernel,
            source: self.source,
            tool: self.tool,
            conditions: self.conditions,
            unavailable: None,
            metrics,
            roofline: None,
            advice: Vec::new(),
            cross_check: None,
            kernels: Vec::new(),
            kernels_left_out: None,
        }
    }
}

fn absent(reason: &str) -> Metric {
    Metric { value: None, unit: None, source: None, note: None, reason: Some(reason.to_owned()) }
}

fn metric(info: &MetricInfo, found: Found) -> Metric {
    let unit = Some(info.unit.name().to_owned());
    match found {
        Ok(known) => Metric {
            value: Some(known.value),
            unit,
            source: Some(known.source),
            note: known.note.map(Cow::into_owned),
            reason: None,
        },
        Err(reason) => Metric { unit, ..absent(&reason) },
    }
}

/// Stores a value in the corresponding fields of the CUDA Evaluation Server's responses.
fn place(groups: &mut MetricGroups, info: &MetricInfo, value: f64) {
    for field in info.fields {
        let group = match field.group {
            FieldGroup::SpeedOfLight => &mut groups.speed_of_light,
            FieldGroup::Detailed => &mut groups.detailed_metrics,
            FieldGroup::Memory => &mut groups.memory_metrics,
            FieldGroup::Compute => &mut groups.compute_metrics,
            FieldGroup::Pipeline => &mut groups.pipeline_metrics,
            FieldGroup::Occupancy => &mut groups.occupancy_metrics,
            FieldGroup::Stall => &mut groups.stall_metrics,
            FieldGroup::Scheduler => &mut groups.scheduler_metrics,
            FieldGroup::AccessPattern => &mut groups.access_pattern_metrics,
            FieldGroup::Roofline => &mut groups.roofline_metrics,
            FieldGroup::Timing => &mut groups.timing_metrics,
        };
        group.insert(field.name.to_owned(), value * field.scale);
    }
}
