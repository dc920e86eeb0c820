//! The contract: what a caller sends. Wire types and their validation; no I/O.

mod parse;
mod scalar_or_text;
mod types;

pub use parse::{BodyFormat, ParseError, parse};
pub use types::*;
