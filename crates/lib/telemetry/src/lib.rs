//! Counters for the activity of the service, for `GET /metrics` and `GET /stats`. The main type is
//! [`Telemetry`].
//!
//! The counters belong to this process, so there is one [`Telemetry`] per process. Each component
//! records its own events, e.g. `telemetry().leased(…)`. Recording only changes atomics. All series
//! come from a fixed list, so requests cannot add any.

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
