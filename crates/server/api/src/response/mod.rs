//! Answers that several groups of operations return.
//!
//! - `accept`: whether a client wants a page
//! - `accepted`: a report or, with `wait=false`, the address of the job
//! - `compression`: gzip
//! - `events`: a job's events as server-sent events
//! - `html`: pages
//! - `reply`: JSON

pub(crate) mod accept;
pub(crate) mod accepted;
pub(crate) mod compression;
pub(crate) mod events;
pub(crate) mod html;
pub(crate) mod reply;
