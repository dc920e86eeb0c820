//! What the service does, counted: for `GET /metrics` and `GET /stats`.
//!
//! Counted are the things of this process, whatever part of it does them, so there is one
//! [`Telemetry`] per process and whoever does something says so: `telemetry().waited(…)`. Recording
//! touches atomics and nothing else. Nothing here is named by a request: every series is one of a
//! fixed list, so what is sent cannot make it grow.

#![forbid(unsafe_code)]

mod counters;
mod histogram;
mod recent;
mod record;

pub use counters::{
    CacheResult, DeliveryResult, EndState, EvaluationOutcome, LabelKind, Reject, Stage,
};
pub use histogram::{BOUNDS, Histogram, Observed};
pub use recent::Recent;
pub use record::{DeviceOccupancy, Runs, Telemetry, telemetry};
