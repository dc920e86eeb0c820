//! The order of the stages, written once: compile, lay out, lease, run, watch, report; for one kernel
//! and for several.
//!
//! [`Executor`] is the seam: those who keep jobs (the service) give it a [`WorkOrder`] and follow its
//! [`Progress`]; they see no lease, no fleet and no compiler. What carries orders out sees no store, and
//! of owners only opaque ids. [`LocalExecutor`] does it on the devices of this machine. `run` follows one evaluation
//! from end to end, `compare` a comparison, `gate` a suite.

#![forbid(unsafe_code)]

mod analysed;
mod assemble;
pub mod bind;
mod capabilities;
mod code_diffs;
mod compare;
mod compile_only;
mod compiled_launch;
mod decision;
mod error;
mod gate;
mod kept;
mod kept_outputs;
mod libraries;
mod linted;
mod local;
mod measured;
mod monitored;
mod nested;
mod nsight;
mod prepare;
mod profile_plan;
mod profiled;
mod program;
mod progress;
mod recorded;
mod room;
mod run;
mod sanitized;
mod sweep;
mod sweep_names;
mod sweep_points;
#[cfg(test)]
mod testing;
mod timeline;
mod tool_runs;
mod torch;
mod tune;

pub use local::{LocalExecutor, program, toolchain_search};
/// The process that judges torch kernels.
pub use torch::process::main as torch_judge;
