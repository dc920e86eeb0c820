//! A CPU implementation of the CUDA driver API, and of the runtime API above it, that executes PTX.
//!
//! # Modules
//! Lowest level first. `xtask/src/tidy/rooms/tables.rs` lists which modules of a lower level each
//! module may use. No module uses one of a higher level:
//! - `memory`: device memory and its allocations ([`Memory`]).
//! - `check`: findings of the sanitiser ([`Finding`]).
//! - `ptx`: the parser, from text to a syntax tree.
//! - `ir`: the intermediate representation that the emulator executes, and the lowering of PTX to
//!   it.
//! - `counts`: counters of a launch ([`Counts`]).
//! - `module`: loaded PTX, its kernels and variables ([`Module`]).
//! - `exec`: runs a grid of blocks. `exec/step` executes instructions, and `exec/lanes` executes
//!   arithmetic on all 32 lanes of a warp. `exec/state` contains warps, blocks and race detection;
//!   `exec/schedule` schedules the blocks.
//! - `driver`: the exported C functions of the driver API. It uses all modules above.
//! - `runtime`: the exported functions of the runtime API, for whole programs. It calls `driver`.
//!
//! # Life of a kernel
//! 1. [`Module::load`] parses PTX text, lowers every function to the intermediate representation,
//!    and rejects instructions that the emulator does not support.
//! 2. The driver puts a launch into a stream's queue; [`launch`] runs its grid on [`Memory`].
//! 3. The warps of a block take turns. Every access is checked for bounds, alignment, lifetime and
//!    permission. With the sanitiser it is also checked for initialisation and races.
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
