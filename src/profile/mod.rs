//! Device metrics: what a kernel asked of the hardware, and how it used it.
//!
//! [`catalogue`] is the one table of metrics: id, unit, meaning, NVIDIA's counters, and where the
//! CUDA Evaluation Server's responses have the value. A source fills in what it knows, and a reason
//! for everything else; `emulator` is such a source. [`types`](DeviceMetrics) are the wire types.

pub mod catalogue;
mod emulator;
mod occupancy;
mod select;
mod types;

pub use emulator::{Launched, metrics as emulator_metrics};
pub use select::{Selection, select};
pub use types::{DeviceMetrics, Metric, MetricGroups, MetricSource};
