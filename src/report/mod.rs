//! What goes back to the caller: the report of one evaluation.

mod types;

pub use types::*;
