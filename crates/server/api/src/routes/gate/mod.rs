//! Operations of the gate: runs, baselines and the history.
//!
//! - `operations`: the handlers
//! - `reply`: reports and histories in the requested form

pub(crate) mod operations;
pub(crate) mod reply;
