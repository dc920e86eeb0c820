//! CUPTI's Range Profiler: hardware counters of a launch, read by the process that makes the
//! launch.
//!
//! ```text
//! Cupti::open ─▶ CounterPlan::new(chip, metrics)   which counters, in how many passes; needs no GPU
//!            └─▶ CuptiSession::open(context, plan) holds the counters of the device
//!                 └─▶ begin ─▶ pass, pass, … ─▶ finish: a value for each metric
//! ```
//!
//! The hardware has few counters, so a set of metrics takes several passes. Each pass repeats the
//! launch on the same inputs with other counters. The caller restores the inputs before each pass
//! (user replay). Only one process of a machine can hold counters, and only if the driver allows
//! it.
//!
//! CUPTI writes through pointers that it received earlier. A plan and its image of counter data
//! therefore stay at the same address while a session is configured with them.

mod abi;
mod choice;
mod error;
mod host;
mod library;
mod session;

pub use choice::{for_driver, major_version};
pub use error::CuptiError;
pub use host::{CounterPlan, chips};
pub use library::Cupti;
pub use session::{Collection, CountedLaunch, CuptiSession, PassError, counter_availability};
