//! Answers that several groups of operations give.
//!
//! - `accepted`: a report or, with `wait=false`, where the job is
//! - `compression`: gzip
//! - `events`: a job's events as server-sent events
//! - `reply`: JSON

pub(crate) mod accepted;
pub(crate) mod compression;
pub(crate) mod events;
pub(crate) mod reply;
