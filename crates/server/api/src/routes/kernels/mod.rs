//! Operations on kernels.
//!
//! - `operations`: the handlers
//! - `sweep`: the answer of a sweep, as a report, a table or a stream of events

pub(crate) mod operations;
pub(crate) mod sweep;
