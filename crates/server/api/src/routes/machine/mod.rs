//! Operations on the state and the administration of the machine.
//!
//! - `capabilities`: capabilities, with reasons for missing ones
//! - `cleanup`: removal of old jobs
//! - `exposition`: the text that Prometheus reads
//! - `metrics`: the answer with that text
//! - `operations`: the handlers
//! - `stats`: statistics in the form of the CUDA Evaluation Server
//! - `views`: health, devices, and facts about the server

pub(crate) mod capabilities;
pub(crate) mod cleanup;
pub(crate) mod exposition;
pub(crate) mod metrics;
pub(crate) mod operations;
pub(crate) mod stats;
pub(crate) mod views;
