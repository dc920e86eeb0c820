//! Operations on kernels.
//!
//! - `operations`: the handlers
//! - `sweep`: the answer of a sweep: whole, as a table, or as a stream of events

pub(crate) mod operations;
pub(crate) mod sweep;
