//! The device of a worker, and all state that outlives a job.
//!
//! - `counters`: state for hardware counters that is kept between jobs
//! - `executor`: context, stream, settings, built-in kernels
//! - `ready`: modules that are loaded ahead
//! - `runners`: launches that another process makes, for a judge
//! - `scrub`: removal of a job's data

pub(crate) mod counters;
pub(crate) mod executor;
pub(crate) mod ready;
pub(crate) mod runners;
pub(crate) mod scrub;
