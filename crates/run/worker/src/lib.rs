//! The process that owns a device: its jobs, its supervision by the server, and the messages
//! between the two.
//!
//! # Files
//! - `fleet/`: the server's side. [`Fleet`] starts and replaces worker processes; a [`Lease`] is
//!   the right to run jobs on one device; `fleet/sealed.rs` connects judge and workers.
//! - `queue.rs`: the order of the requests that wait for a lease.
//! - `protocol/`, `frame.rs`: messages, and their frames. `handed.rs` and `rendezvous.rs` pass
//!   sockets.
//! - [`child`]: the worker process: one context, one job at a time. Its documentation lists its
//!   folders.
//! - [`holder`]: processes that hold shared tensors.
//! - `selftest/`: tests of a worker on a device.
//!
//! # Life of a worker
//! 1. The fleet lists devices in a child process (`fleet/probe.rs`). It starts one worker for each
//!    device and, if configured, a hot spare (`fleet/slot.rs`).
//! 2. The worker opens the driver, creates its context, loads the built-in kernels and sends a
//!    greeting with the protocol's version (`child/session.rs`).
//! 3. [`Fleet::lease`] grants a device to a caller. [`Lease::run`] sends a job; its tensors are
//!    files in the job's private directory.
//! 4. The worker runs the task (`child/job.rs`, `child/tasks/`), sends events and one outcome, and
//!    removes the data of the job.
//! 5. The fleet kills a worker that misses its deadline or loses its context, with its process
//!    group. The spare then becomes the worker.

#![forbid(unsafe_code)]

pub mod child;
mod fleet;
pub mod frame;
mod handed;
pub mod holder;
pub mod protocol;
pub mod queue;
mod rendezvous;
mod selftest;

pub use fleet::{
    CounterClaim, DeviceChoice, DeviceStatus, Fleet, FleetConfig, FleetError, HELD_DIR,
    LastReading, Lease, LeaseError, OneShot, OneShotEnd, RunEvent, SupportSource, chip_of,
};
/// Source of the self-test's kernels, for the command that packs its images.
pub use selftest::SOURCE as SELF_TEST_SOURCE;
