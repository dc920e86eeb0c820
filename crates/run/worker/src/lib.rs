//! The process boundary: which jobs a device worker gets, what it returns, and how the server supervises
//! it.
//!
//! [`Fleet`] is the server's side: it starts worker processes, leases devices, sends jobs, and kills
//! workers that hang. [`child`] is the other side: one process with one context, which runs one job at a
//! time.

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
    CounterClaim, DeviceChoice, DeviceStatus, Fleet, FleetConfig, FleetError, HELD_DIR, Lease,
    LeaseError, OneShot, OneShotEnd, RunEvent, SupportSource, chip_of,
};
/// Source of the self-test's kernels, for the command that packs its images.
pub use selftest::SOURCE as SELF_TEST_SOURCE;
