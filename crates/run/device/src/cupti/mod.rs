//! CUPTI's Range Profiler: hardware counters of a launch, read by the process that makes it.
//!
//! ```text
//! Cupti::open ─▶ CounterPlan::new(chip, metrics)   which counters, in how many passes; needs no GPU
//!            └─▶ CuptiSession::open(context, plan) holds the counters of the device
//!                 └─▶ begin ─▶ pass, pass, … ─▶ finish: a value for each metric
//! ```
//!
//! Counters are few, so a set of metrics takes several passes: the same launch again, on the same
//! inputs, with other counters each time. The caller restores the inputs before each pass (user
//! replay). Only one process of a machine can hold counters, and only where the driver allows it.
//!
//! CUPTI writes through pointers that it got earlier: a plan and its image of counter data stay at
//! the same address as long as a session is configured with them.

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
