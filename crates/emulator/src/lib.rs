//! A CPU implementation of the CUDA driver API that executes PTX.
//!
//! The path of a kernel: [`Module::load`] parses PTX text and lowers every function to a compact
//! intermediate form; [`launch`] runs a grid of it over [`Memory`], 32 lanes at a time.

pub mod check;
pub mod counts;
mod driver;
pub mod exec;
mod ir;
pub mod memory;
pub mod module;
mod ptx;
mod soname;

pub use check::Finding;
pub use counts::Counts;
pub use exec::{FaultKind, LaunchConfig, LaunchFault, LaunchOptions, LaunchReport, launch};
pub use memory::{AllocKind, Allocation, Memory, MemoryError};
pub use module::{Function, LoadError, Module, ParamLayout};
pub use soname::soname_alias;
