//! Channels to the outside.
//!
//! - `link`: the socket to the server
//! - `stdout`: what kernels print

pub(crate) mod link;
pub(crate) mod stdout;
