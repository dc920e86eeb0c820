//! Answers of several groups of operations.
//!
//! - `accepted`: a report or, with `wait=false`, the address of the job
//! - `compression`: gzip
//! - `events`: a job's events as server-sent events
//! - `reply`: JSON

pub(crate) mod accepted;
pub(crate) mod compression;
pub(crate) mod events;
pub(crate) mod reply;
