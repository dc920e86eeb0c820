//! Source to artifact: NVRTC, nvcc or passthrough, in a killable, sandboxed child; cached.
//!
//! [`Compiler::compile`] looks into the [`cache`], else starts a [`child`] that may read the
//! toolchain and its own directory and nothing else. PTX, cubins and fatbins are checked
//! ([`passthrough`]) and passed on. What comes out is an [`CompiledModule`]: an image, its kernels with
//! their parameter types and resource usage, and the compiler's messages.

#![forbid(unsafe_code)]

#[cfg(test)]
#[macro_use]
#[path = "../../../../tests/support/needs.rs"]
mod needs;

mod artifact;
mod binary;
mod build;
mod cache;
pub mod child;
mod compiler;
mod ctype;
mod demangle;
mod describe;
mod diagnostics;
mod disassemble;
mod environment;
mod error;
mod exceeded;
mod job;
mod limits;
mod options;
mod passthrough;
mod prelude;
mod protocol;
mod ptxas;
mod refused;
mod select;
mod signature;
mod spares;
mod summary;
mod supervisor;
pub mod toolchain;
mod triton;
mod tunable;
mod usage;

#[cfg(test)]
mod nvrtc_tests;

pub use artifact::{
    CompileTimings, CompiledLaunch, CompiledModule, Constant, KernelInfo, Param, PassedValue,
    Scratch,
};
pub use build::{
    AssemblyOrder, BuildOrder, BuildOutput, ExtensionOrder, ModuleOrder, ProgramOrder, PythonHost,
};
pub use compiler::{CompileStats, Compiler, CompilerConfig};
pub use ctype::CType;
pub use demangle::readable;
pub use error::{CompileError, CompileFailure, CompileSetupError};
pub use job::CompileOptions;
pub use tunable::{Configuration, Tunable};
