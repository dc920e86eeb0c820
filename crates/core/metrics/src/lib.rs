//! Device metrics: how a kernel used the hardware.
//!
//! [`catalogue`] is the table of all metrics: id, unit, meaning, NVIDIA's counters, and the fields
//! in the CUDA Evaluation Server's responses. A source, such as `emulator`, supplies the values
//! that it knows, and a reason for each of the others. [`types`](DeviceMetrics) contains the wire
//! types. [`analyse`] adds the roofline, advice, and the cross-check with the unprofiled time.

#![forbid(unsafe_code)]

mod advice;
mod analysis;
pub mod catalogue;
mod cross_check;
mod emulator;
mod facts;
mod found;
pub mod gpm;
pub mod import;
mod launch;
pub mod ncu;
pub mod nsys;
mod occupancy;
mod roofline;
pub mod sanitizer;
mod select;
pub mod sets;
mod several;
mod svg;
#[cfg(test)]
pub(crate) mod testing;
mod text;
mod types;
mod values;

pub use advice::{Advice, AdviceCode, Evidence, ShareOf};
pub use analysis::analyse;
pub use cross_check::CrossCheck;
pub use emulator::{metrics as emulator_metrics, not_emulated};
pub use facts::{Facts, Timed};
pub use launch::DeviceLaunch;
pub use roofline::{
    BoundBy, Ceiling, CeilingSource, ComputeRoof, Level, MemoryRoof, Precision, RatesOver,
    Roofline, RooflinePoint, TimeBasis,
};
pub use select::{Selection, select, unknown_name};
pub use several::{MAX_KERNELS, ProfiledLaunch, several_metrics};
pub use svg::{Caption, render as roofline_svg, render_in_page as roofline_svg_in_page, si};
pub use types::{
    CacheControl, ClockControl, Conditions, DeviceMetrics, KernelMetrics, Metric, MetricGroups,
    MetricSource, Replay,
};
pub use values::{CollectedMetrics, counter_names, device_metrics, nvidia_names};
