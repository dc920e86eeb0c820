//! The operations, by group. In each folder, `operations.rs` contains the handlers.
//!
//! - `functions`: functions that callers send
//! - `gate`: runs of the gate, baselines, the history
//! - `imports`: reports of profilers
//! - `jobs`: jobs, and their artifacts
//! - `kernels`: evaluate, compare, sweep, compile, execute
//! - `machine`: state, statistics and administration of the machine
//! - `spmv`: sparse matrix times vector
//! - `tags`: names of the groups in the documents
//! - `tensors`: shared tensors

pub(crate) mod functions;
pub(crate) mod gate;
pub(crate) mod imports;
pub(crate) mod jobs;
pub(crate) mod kernels;
pub(crate) mod machine;
pub(crate) mod spmv;
pub(crate) mod tags;
pub(crate) mod tensors;
