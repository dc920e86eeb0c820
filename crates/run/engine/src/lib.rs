//! The sequence of stages for one kernel and for several: compile, lay out, lease, run, profile,
//! report.
//!
//! # Files
//! - `local.rs`: [`LocalExecutor`], which runs the orders of the service on this machine. It
//!   implements [`Executor`](warpgauge_executor::Executor). `start.rs` starts compilers, workers
//!   and tools.
//! - `engine.rs`, `host.rs`: the backends of this machine, and the resources that they share.
//! - `backend/`: the trait `KernelBackend`. `backends/`: its implementations for the families
//!   `device`, `library`, `torch` and `program`.
//! - `prepare/`: compiles a kernel, binds its arguments, and writes its private directory.
//! - `profiling/`: counters, monitoring and NVIDIA's tools. `reporting/`: reports for callers.
//! - `comparison.rs`, `sweep/`, `gate.rs`: operations of several evaluations. `compile_only.rs`:
//!   compilations without a run.
//! - `whole_program/`: the child process that becomes a submitted program.
//!
//! # Life of an order
//! 1. The executor receives a [`WorkOrder`](warpgauge_executor::WorkOrder). It has no access to the
//!    store, and sees owners only as opaque ids.
//! 2. The engine chooses the backend by the family of the kernel.
//! 3. `backends/device/mod.rs` is the model for all backends: tune, compile, lay out, lease a
//!    device, run, profile on the same lease, assemble the report.
//! 4. `reporting::finished` completes every report.
//! 5. The outcome is returned to the service; scratch files of the order are removed.

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
