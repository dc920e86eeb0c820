//! Input of the analyses of a launch: its metrics, and facts about the device, the kernel and the
//! timing.

use std::collections::BTreeMap;

use super::types::Metric;
use warpgauge_model::{DeviceInfo, Resources};
use warpgauge_tensor::Dtype;

/// Values of metrics by the catalogue's ids; metrics without a value are absent.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a>(&'a BTreeMap<String, Metric>);

impl<'a> Values<'a> {
    /// Creates a view of the metrics of a report.
    pub fn new(metrics: &'a BTreeMap<String, Metric>) -> Self {
        Self(metrics)
    }

    /// Returns the value of a metric in the catalogue's unit, if it is finite.
    pub fn get(&self, id: &str) -> Option<f64> {
        self.0.get(id)?.value.filter(|value| value.is_finite())
    }

    /// Returns the value of a percentage as a fraction, if it is finite.
    pub fn part(&self, id: &str) -> Option<f64> {
        Some(self.get(id)? / 100.0)
    }

    /// Returns the sum of those metrics that have a value. Returns `None` if none of them has a
    /// value.
    pub fn sum(&self, ids: &[&str]) -> Option<f64> {
        let known: Vec<f64> = ids.iter().filter_map(|id| self.get(id)).collect();
        (!known.is_empty()).then(|| known.iter().sum())
    }

    /// Returns the unit of a metric, as in reports.
    pub fn unit(&self, id: &str) -> Option<&'a str> {
        self.0.get(id)?.unit.as_deref()
    }
}

/// Facts about a launch besides its metrics.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    pub device: &'a DeviceInfo,
    /// Resources of the kernel, if the compiler reported them.
    pub resources: Option<&'a Resources>,
    /// Element types of the tensors that the kernel reads.
    pub inputs: &'a [Dtype],
    /// Times of the launches without a profiler. Empty on the emulated device, because its times
    /// are not those of a GPU.
    pub timed: Timed,
}

/// Times and clock of launches without a profiler.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Timed {
    /// Median time of a launch, seconds.
    pub median_s: Option<f64>,
    /// Mean clock of the multiprocessors during these launches, Hz, measured on the device.
    pub clock_hz: Option<f64>,
    /// Median time of an empty kernel's launch, seconds.
    pub empty_launch_s: Option<f64>,
    /// Whether L2 was flushed before each launch.
    pub cold: bool,
}
