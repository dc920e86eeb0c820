//! The order of the stages: compile, lay out, lease, run, watch, report, for one kernel and for
//! several.
//!
//! [`Executor`] is the interface. The service gives it a [`WorkOrder`] and follows its [`Progress`].
//! The service sees no lease, no fleet and no compiler; an executor sees no store, and only opaque ids
//! of owners. [`LocalExecutor`] runs orders on the devices of this machine. `backends` follows one
//! evaluation from end to end, `comparison` a comparison, `gate` a suite.

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
