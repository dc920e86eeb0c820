//! The machine.
//!
//! - `capabilities`: what this machine can do
//! - `cleanup`: removing old jobs
//! - `exposition`: the text that Prometheus reads
//! - `metrics`: its answer
//! - `operations`: the handlers
//! - `stats`: figures in the shape of the CUDA Evaluation Server
//! - `views`: health, devices, and what the server is

pub(crate) mod capabilities;
pub(crate) mod cleanup;
pub(crate) mod exposition;
pub(crate) mod metrics;
pub(crate) mod operations;
pub(crate) mod stats;
pub(crate) mod views;
