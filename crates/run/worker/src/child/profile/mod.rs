//! Runs that are observed instead of timed.
//!
//! - `counters`: hardware counters
//! - `monitoring`: back-to-back launches while the driver monitors the GPU
//! - `plan`: number of passes that metrics need
//! - `trace`: a run under a profiler or a checker

pub(crate) mod counters;
pub(crate) mod monitoring;
pub(crate) mod plan;
pub(crate) mod trace;
