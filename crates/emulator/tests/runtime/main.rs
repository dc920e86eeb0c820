//! The runtime interface of the emulator, called as code made by nvcc calls it: fat binaries are
//! registered, and kernels and variables are known by addresses on the host.

// SAFETY: every `unsafe` block here without a comment of its own calls a function of the interface
// with handles and addresses that the test has just obtained, or with wrong ones on purpose, which
// the emulator promises to find out.
#![allow(clippy::undocumented_unsafe_blocks)]

mod at_exit;
mod devices;
mod errors;
mod memory;
mod order;
mod program;
mod ptx;
mod registration;
mod sys;
