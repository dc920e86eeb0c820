//! What the system's linker makes: what Python processes load (extensions of PyTorch's, and what Triton
//! compiles besides), and whole programs.
//!
//! A process that runs a stranger's code starts no compilers: it asks, and gets a file. [`order`] is what may
//! be asked, [`program`] what the server orders itself, [`plan`] the commands that come of it. They run in a
//! compile child, with what they need of the machine and nothing else, and what comes of them is kept by its
//! content.

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

/// What was built.
#[derive(Debug, Clone)]
pub struct BuildOutput {
    /// The file.
    pub object: Arc<[u8]>,
    /// Its content address in the cache.
    pub key: String,
    /// How its sources were compiled, where there is a choice.
    pub how: String,
    /// Warnings.
    pub log: String,
    /// Whether it was there already.
    pub cached: bool,
}

fn too_large() -> CompileError {
    let message = format!("the sources have more than {MAX_SOURCE_BYTES} bytes");
    CompileError::rejected(FailureCode::SourceTooLarge, message)
}

/// Checks an order, and says how it is carried out.
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

/// Checks the order of a whole program, and says how it is carried out.
pub(crate) fn planned_program(
    order: &ProgramOrder<'_>,
    toolchain: &Toolchain,
) -> Result<Plan, CompileError> {
    if order.source.len() > MAX_SOURCE_BYTES {
        return Err(too_large());
    }
    program::plan(order, toolchain)
}

/// What is missing to build programs, and what would help.
pub(crate) fn lacks_for_programs(toolchain: &Toolchain) -> Option<(&'static str, &'static str)> {
    program::compilers(toolchain).err()
}
