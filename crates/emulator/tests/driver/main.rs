//! The driver interface of the emulator, used as the product uses it: the shared library is
//! opened by its path, and everything else goes through cudarc, which finds it by its SONAME.

// SAFETY: every `unsafe` block here without a comment of its own calls a driver function with
// handles and addresses that the test has just obtained, or with wrong ones on purpose, which the
// emulator promises to find out.
#![allow(clippy::undocumented_unsafe_blocks)]

mod contexts;
mod faults;
mod graphs;
mod ipc;
mod ipc_events;
mod kernels;
mod memory;
mod modules;
mod ptx;
mod puppet;
mod setup;
mod streams;
