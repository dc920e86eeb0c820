//! Jobs.
//!
//! - `artifacts`: images, listings and profilers' files of jobs
//! - `batch`: many jobs in one request
//! - `legacy`: jobs in the form of the CUDA Evaluation Server
//! - `operations`: the handlers

pub(crate) mod artifacts;
pub(crate) mod batch;
pub(crate) mod legacy;
pub(crate) mod operations;
