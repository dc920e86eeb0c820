//! The order of the stages, written once: compile, lay out, lease, run, watch, report; for one kernel
//! and for several.
//!
//! [`Executor`] is the seam: those who keep jobs (the service) give it a [`WorkOrder`] and follow its
//! [`Progress`]; they see no lease, no fleet and no compiler. What carries orders out sees no store, and
//! of owners only opaque ids. [`LocalExecutor`] does it on the devices of this machine. `run` follows one evaluation
//! from end to end, `compare` a comparison, `gate` a suite.

#![forbid(unsafe_code)]

mod backend;
mod backends;
mod capabilities;
mod clock;
mod comparison;
mod compile_only;
mod engine;
mod error;
mod found;
mod gate;
mod host;
mod kept;
mod local;
mod prepare;
mod profiling;
mod progress;
mod remembered;
mod reporting;
mod room;
mod scratch;
mod start;
mod support;
mod sweep;
#[cfg(test)]
mod testing;
pub mod whole_program;

pub use backends::torch::process::main as torch_judge;
pub use local::LocalExecutor;
pub use start::{program, toolchain_search};
