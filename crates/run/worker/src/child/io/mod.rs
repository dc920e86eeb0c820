//! Communication with other processes.
//!
//! - `link`: the socket to the server
//! - `stdout`: what kernels print

pub(crate) mod link;
pub(crate) mod stdout;
