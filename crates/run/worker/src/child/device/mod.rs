//! The device of a worker, and all that outlives a job.
//!
//! - `counters`: what reading hardware counters keeps from job to job
//! - `executor`: context, stream, settings, our own kernels
//! - `ready`: modules that are loaded ahead
//! - `runners`: launches that another process makes for a judge
//! - `scrub`: removing what a job left

pub(crate) mod counters;
pub(crate) mod executor;
pub(crate) mod ready;
pub(crate) mod runners;
pub(crate) mod scrub;
