//! Operations on jobs.
//!
//! - `artifacts`: artifacts of jobs, such as machine code and the files of profilers
//! - `batch`: many jobs in one request
//! - `legacy`: jobs in the form of the CUDA Evaluation Server
//! - `operations`: the handlers

pub(crate) mod artifacts;
pub(crate) mod batch;
pub(crate) mod legacy;
pub(crate) mod operations;
