//! Compiles source to an image with NVRTC, nvcc or Triton, or checks a given image. Compilers run
//! in a confined child that can be killed; results are cached.
//!
//! # Files
//! - `compiler/`: [`Compiler`], the entry. `job.rs` and `options.rs` check requests;
//!   `passthrough.rs` checks PTX, cubins and fatbins.
//! - `cache/`: images by the content of every compiler input, in memory and on disk. `refused.rs`
//!   remembers sources that exceeded a limit.
//! - `supervisor.rs`, `protocol/`, [`child`]: the parent's side of a compile child, the messages,
//!   and the child itself. `spares.rs` keeps children that have imported Triton.
//! - `triton/`, `build/`: Triton kernels; extensions, and whole programs.
//! - `binary/`, `describe.rs`, `demangle/`, `signature.rs`, `layout.rs`: kernels, parameters,
//!   variables and structures of an image. `disassemble.rs` makes listings.
//! - `source.rs`, `prelude.rs`, `cub.rs`, `std_names.rs`: the source text that NVRTC receives.
//! - `diagnostics.rs`, `summary.rs`, `exceeded.rs`: messages of compilers, and their limits.
//! - [`toolchain`]: finds compilers, and installs them.
//!
//! # Life of a compilation
//! 1. [`Compiler::compile`] looks into the cache. Concurrent requests of one owner for the same
//!    content share one compilation.
//! 2. A permit limits the number of children. Owners take turns.
//! 3. The child reads one request, confines itself to the toolchain and its own directory,
//!    compiles, and writes one reply. The parent kills it at its deadline.
//! 4. The parent reads kernels and parameters from the image, and stores the [`CompiledModule`].

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
