//! Operations on reports of profilers.
//!
//! - `operations`: the handlers
//! - `reply`: answers, as JSON or as a page
//! - `upload`: forms with reports

pub(crate) mod operations;
mod reply;
mod upload;
