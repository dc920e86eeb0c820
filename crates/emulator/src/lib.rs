//! A CPU implementation of the CUDA driver API, and of the runtime API above it, that executes PTX.
//!
//! The path of a kernel: [`Module::load`] parses PTX text and lowers every function to a compact
//! intermediate form; [`launch`] runs a grid of it over [`Memory`], 32 lanes at a time.
//!
//! # Modules
//! Lowest first. A module may use those above it in this list as far as `xtask/src/tidy/rooms/tables.rs`
//! allows, and none below it:
//! - `arith`: numbers as a GPU computes with them.
//! - `memory`: device memory and its allocations.
//! - `check`: findings of the sanitiser.
//! - `ptx`: the parser, from text to a syntax tree.
//! - `ir`: the intermediate form that runs, and the lowering to it.
//! - `counts`: counters of a launch.
//! - `module`: loaded PTX, its kernels and variables.
//! - `exec`: runs a grid of blocks.
//! - `driver`: the exported C functions of the driver API, over all of these.
//! - `runtime`: the exported functions of the runtime API, over the driver's, for whole programs.

mod arith;
pub mod check;
pub mod counts;
mod driver;
pub mod exec;
mod ir;
pub mod memory;
pub mod module;
mod ptx;
mod runtime;

pub use check::Finding;
pub use counts::Counts;
pub use exec::{FaultKind, LaunchConfig, LaunchFault, LaunchOptions, LaunchReport, launch};
pub use memory::{AllocKind, Allocation, Memory, MemoryError};
pub use module::{Function, LoadError, Module, ParamLayout};
