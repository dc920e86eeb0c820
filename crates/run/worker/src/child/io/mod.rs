//! Channels to the outside.
//!
//! - `link`: the socket to the server
//! - `stdout`: the output of kernels

pub(crate) mod link;
pub(crate) mod stdout;
