//! Compiles source to an artifact with NVRTC or nvcc, or passes an image through. Compilers run in a
//! sandboxed child that can be killed; results are cached.
//!
//! [`Compiler::compile`] looks into the [`cache`]. If the kernel is not there, it starts a [`child`] that
//! may read only the toolchain and its own directory. PTX, cubins and fatbins are checked
//! ([`passthrough`]) and passed on. The result is a [`CompiledModule`]: an image, its kernels with their
//! parameter types and resource usage, and the compiler's messages.

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
mod cub;
mod demangle;
mod describe;
mod diagnostics;
mod disassemble;
mod environment;
mod error;
mod exceeded;
mod job;
mod layout;
mod limits;
mod options;
mod passthrough;
mod prelude;
mod protocol;
mod ptxas;
mod refused;
mod select;
mod signature;
mod source;
mod spares;
mod std_names;
mod summary;
mod supervisor;
pub mod toolchain;
mod triton;
mod tunable;
mod usage;

#[cfg(test)]
mod nvrtc_tests;

pub use artifact::{
    CompileTimings, CompiledLaunch, CompiledModule, Constant, Field, KernelInfo, Param,
    PassedValue, Scratch, StructLayout,
};
pub use binary::ImageVariable;
pub use build::{
    AssemblyOrder, BuildOrder, BuildOutput, ExtensionOrder, ModuleOrder, ProgramOrder, PythonHost,
};
pub use compiler::{CompileStats, Compiler, CompilerConfig};
pub use ctype::CType;
pub use demangle::readable;
pub use error::{CompileError, CompileFailure, CompileSetupError};
pub use job::CompileOptions;
pub use tunable::{Configuration, Tunable};
