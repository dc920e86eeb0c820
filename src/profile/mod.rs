//! Device metrics: what a kernel asked of the hardware, and how it used it.
//!
//! [`catalogue`] is the one table of metrics: id, unit, meaning, NVIDIA's counters, and where the
//! CUDA Evaluation Server's responses have the value. A source fills in what it knows, and a reason
//! for everything else; `emulator` is such a source. [`types`](DeviceMetrics) are the wire types.

pub mod catalogue;
mod emulator;
mod found;
pub mod import;
mod launch;
pub mod ncu;
pub mod nsys;
mod occupancy;
mod reason;
pub mod sanitizer;
mod select;
pub mod sets;
mod several;
mod text;
mod types;
mod values;

pub use emulator::metrics as emulator_metrics;
pub use launch::Launch;
pub use reason::Cause;
pub use select::{Selection, select};
pub use several::{MAX_KERNELS, Profiled, several_metrics};
pub use types::{
    CacheControl, ClockControl, Conditions, DeviceMetrics, KernelMetrics, Metric, MetricGroups,
    MetricSource, Replay, Unavailable,
};
pub use values::{Collected, counter_names, device_metrics, nvidia_names};
