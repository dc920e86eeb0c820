//! A CPU implementation of the CUDA driver API, and of the runtime API above it, that executes PTX.
//!
//! # Modules
//! Lowest first. A module may use those above it in this list as far as `xtask/src/tidy/rooms/tables.rs`
//! allows, and none below it:
//! - `arith`: numbers as a GPU computes with them.
//! - `memory`: device memory and its allocations ([`Memory`]).
//! - `check`: findings of the sanitiser ([`Finding`]).
//! - `ptx`: the parser, from text to a syntax tree.
//! - `ir`: the intermediate form that runs, and the lowering to it.
//! - `counts`: counters of a launch ([`Counts`]).
//! - `module`: loaded PTX, its kernels and variables ([`Module`]).
//! - `exec`: runs a grid of blocks. `exec/step` executes instructions, `exec/lanes` on 32 lanes at a time;
//!   `exec/state` has warps, blocks and races; `exec/schedule` orders them.
//! - `driver`: the exported C functions of the driver API, over all of these.
//! - `runtime`: the exported functions of the runtime API, over the driver's, for whole programs.
//!
//! # Life of a kernel
//! 1. [`Module::load`] parses PTX text, lowers every function to the intermediate form, and refuses
//!    instructions that the emulator lacks.
//! 2. A launch of the driver goes into a stream's queue; [`launch`] runs its grid over [`Memory`].
//! 3. The warps of a block take turns. Every access is checked for bounds, alignment, lifetime and
//!    permission; with sanitising also for initialisation and races.
//! 4. [`launch`] returns a [`LaunchReport`] with counts and findings, or a [`LaunchFault`].

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
