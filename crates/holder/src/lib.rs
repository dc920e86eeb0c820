//! Shared tensors live in processes of their own, one for each device and one for the host's memory:
//! [`child`] is such a process, [`Holders`] the server's side. [`Registry`] says whose a tensor is, how
//! long it stays, and who has it open; it is pure bookkeeping, and is told what time it is.

#![forbid(unsafe_code)]

pub mod child;
mod holder;
mod holders;
mod protocol;
mod registry;

pub use holder::HolderError;
pub use holders::{HolderConfig, Holders};
pub use protocol::{CHUNK_BYTES, Exported};
pub use registry::{Freed, Gone, Held, Limits, New, Place, Quota, Registry, Unknown};
/// The library that stands for the driver on emulated devices: that of the configuration, or where it is
/// found.
pub use warpgauge_device::loader::find_emulator;
/// Where within a server's run directory holders of devices write.
pub use warpgauge_worker::HELD_DIR;
