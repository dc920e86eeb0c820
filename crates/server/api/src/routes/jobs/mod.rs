//! Jobs.
//!
//! - `artifacts`: what jobs leave beside their reports
//! - `batch`: many jobs in one request
//! - `legacy`: jobs in the shape of the CUDA Evaluation Server
//! - `operations`: the handlers

pub(crate) mod artifacts;
pub(crate) mod batch;
pub(crate) mod legacy;
pub(crate) mod operations;
