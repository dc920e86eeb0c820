//! State and administration of the machine.
//!
//! - `capabilities`: what this machine can do
//! - `cleanup`: removal of old jobs
//! - `exposition`: the text that Prometheus reads
//! - `metrics`: the answer with that text
//! - `operations`: the handlers
//! - `stats`: figures in the shape of the CUDA Evaluation Server
//! - `views`: health, devices, and facts about the server

pub(crate) mod capabilities;
pub(crate) mod cleanup;
pub(crate) mod exposition;
pub(crate) mod metrics;
pub(crate) mod operations;
pub(crate) mod stats;
pub(crate) mod views;
