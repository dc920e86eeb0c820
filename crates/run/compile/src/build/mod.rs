//! Builds files with the system's linker: modules that Python processes load (PyTorch extensions,
//! and modules that Triton compiles besides kernels), and whole programs.
//!
//! A process that runs submitted code starts no compilers: it requests a file and receives it.
//! [`order`] contains the requests of such processes, [`program`] the server's orders, and [`plan`]
//! the resulting commands. The commands run in a compile child, which can access only the parts of
//! the machine that they need. Results are cached by their content.

mod extension;
mod flags;
mod lean;
mod order;
mod plan;
mod program;
mod triton;

use std::sync::Arc;

pub use order::{AssemblyOrder, BuildOrder, ExtensionOrder, ModuleOrder, PythonHost};
pub use program::ProgramOrder;

pub(crate) use plan::Plan;

use self::plan::check_name;
use crate::error::CompileError;
use crate::limits::MAX_SOURCE_BYTES;
use crate::toolchain::Toolchain;
use warpgauge_model::FailureCode;

/// Result of a build.
#[derive(Debug, Clone)]
pub struct BuildOutput {
    pub object: Arc<[u8]>,
    /// Content address of the file in the cache.
    pub key: String,
    /// Variant of the compilation that was used for each source, if there are several.
    pub how: String,
    /// Options of the compiler of a whole program, without directories and files. Empty for other
    /// builds.
    pub options: Vec<String>,
    /// Warnings of the compilers.
    pub log: String,
    /// Whether the file came from the cache.
    pub cached: bool,
}

fn too_large() -> CompileError {
    let message = format!("the sources have more than {MAX_SOURCE_BYTES} bytes");
    CompileError::rejected(FailureCode::SourceTooLarge, message)
}

/// Checks a build request and plans its commands.
pub(crate) fn planned(
    order: &BuildOrder,
    python: &PythonHost,
    toolchain: &Toolchain,
) -> Result<Plan, CompileError> {
    let sources: [&str; 2] = match order {
        BuildOrder::Extension(order) => [&order.cpp, order.cuda.as_deref().unwrap_or_default()],
        BuildOrder::Module(order) => [&order.source, ""],
        BuildOrder::Assembly(order) => [&order.ptx, ""],
    };
    if sources.iter().map(|source| source.len()).sum::<usize>() > MAX_SOURCE_BYTES {
        return Err(too_large());
    }
    match order {
        BuildOrder::Extension(order) => {
            check_name(&order.name)?;
            extension::plan(order, python, toolchain)
        }
        BuildOrder::Module(order) => {
            check_name(&order.name)?;
            triton::module(order, python, toolchain)
        }
        BuildOrder::Assembly(order) => triton::assembly(order, python, toolchain),
    }
}

/// Checks the request to build a whole program and plans its commands.
pub(crate) fn planned_program(
    order: &ProgramOrder<'_>,
    toolchain: &Toolchain,
) -> Result<Plan, CompileError> {
    program::plan(order, toolchain)
}

/// Returns a description of what is missing to build programs, and a remedy.
pub(crate) fn lacks_for_programs(toolchain: &Toolchain) -> Option<(&'static str, &'static str)> {
    program::compilers(toolchain).err()
}
