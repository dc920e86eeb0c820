//! What the analyses of a launch rest on: its metrics, and what else is known of it.

use std::collections::BTreeMap;

use super::types::Metric;
use warpgauge_model::{DeviceInfo, Resources};
use warpgauge_tensor::Dtype;

/// Values of metrics by the catalogue's ids; those without a value are not there.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a>(&'a BTreeMap<String, Metric>);

impl<'a> Values<'a> {
    /// The values of a report's metrics.
    pub fn new(metrics: &'a BTreeMap<String, Metric>) -> Self {
        Self(metrics)
    }

    /// The value of a metric, in the catalogue's unit; finite.
    pub fn get(&self, id: &str) -> Option<f64> {
        self.0.get(id)?.value.filter(|value| value.is_finite())
    }

    /// As [`Values::get`], of a percentage as a part of 1.
    pub fn part(&self, id: &str) -> Option<f64> {
        Some(self.get(id)? / 100.0)
    }

    /// The sum of those that have a value; `None` if none has.
    pub fn sum(&self, ids: &[&str]) -> Option<f64> {
        let known: Vec<f64> = ids.iter().filter_map(|id| self.get(id)).collect();
        (!known.is_empty()).then(|| known.iter().sum())
    }

    /// Unit of a metric, as reports write it.
    pub fn unit(&self, id: &str) -> Option<&'a str> {
        self.0.get(id)?.unit.as_deref()
    }
}

/// What is known of a launch beside its metrics.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The device.
    pub device: &'a DeviceInfo,
    /// The kernel's resources, if the compiler told them.
    pub resources: Option<&'a Resources>,
    /// Element types of the tensors that the kernel reads.
    pub inputs: &'a [Dtype],
    /// The timed launches, which were not profiled. Empty on the emulated device, whose times say
    /// nothing about a GPU.
    pub timed: Timed,
}

/// Times of launches that were not profiled.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Timed {
    /// Median of one launch, seconds.
    pub median_s: Option<f64>,
    /// Mean clock of the multiprocessors meanwhile, Hz, measured on the device.
    pub clock_hz: Option<f64>,
    /// Median of a kernel that does nothing, seconds.
    pub empty_launch_s: Option<f64>,
    /// Whether L2 was flushed before each launch.
    pub cold: bool,
}
