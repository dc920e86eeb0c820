//! What goes back to the caller: the report of one evaluation.

mod measurement;
mod types;

pub use measurement::{BatchReport, ClockReport, GpuReport, InputsShown, MeasurementReport};
pub use types::*;
