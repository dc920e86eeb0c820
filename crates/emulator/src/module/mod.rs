//! Loaded PTX modules and their functions.

use std::sync::Arc;

use crate::memory::Memory;

/// A PTX text that could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("PTX line {line}: {reason}{}", at(.instruction))]
pub struct LoadError {
    /// Line in the PTX text, from 1; 0 where no single line is to blame.
    pub line: u32,
    /// The instruction or directive, cut to a reasonable length; empty where there is none.
    pub instruction: String,
    /// What is wrong with it.
    pub reason: String,
}

fn at(instruction: &str) -> String {
    if instruction.is_empty() {
        String::new()
    } else {
        format!(": `{instruction}`")
    }
}

/// One kernel parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamLayout {
    /// Name in the PTX.
    pub name: String,
    /// Offset in the parameter buffer, in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub bytes: usize,
    /// Alignment in bytes.
    pub align: usize,
}

/// A loaded PTX module: functions ready to run, global variables in memory.
pub struct Module {
    functions: Vec<Arc<Function>>,
}

impl Module {
    /// Parses `ptx`, lowers every function and places the global variables on `device`.
    ///
    /// # Errors
    /// The first line that is not PTX, or that asks for something the emulator does not support.
    pub fn load(_ptx: &str, _memory: &Arc<Memory>, _device: u32) -> Result<Module, LoadError> {
        Err(LoadError {
            line: 0,
            instruction: String::new(),
            reason: "no parser yet".into(),
        })
    }

    /// The kernel of that name.
    pub fn function(&self, name: &str) -> Option<Arc<Function>> {
        self.functions.iter().find(|f| f.name == name).cloned()
    }

    /// Names of the kernels, in the order of the text.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().map(|f| f.name())
    }

    /// Address and size in bytes of the global or constant variable of that name.
    pub fn global(&self, _name: &str) -> Option<(u64, u64)> {
        None
    }
}

/// A kernel, ready to run.
pub struct Function {
    name: String,
    params: Vec<ParamLayout>,
}

impl Function {
    /// Name in the PTX.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Parameters in order.
    pub fn params(&self) -> &[ParamLayout] {
        &self.params
    }
    /// Size of the parameter buffer, in bytes.
    pub fn param_bytes(&self) -> usize {
        0
    }
    /// Statically declared shared memory of a block, in bytes.
    pub fn static_shared_bytes(&self) -> u32 {
        0
    }
    /// Local memory of a thread, in bytes.
    pub fn local_bytes(&self) -> u32 {
        0
    }
    /// An estimate of the 32-bit registers of a thread, for occupancy.
    pub fn registers(&self) -> u32 {
        0
    }
    /// Largest block: `.maxntid`, or 1024.
    pub fn max_threads(&self) -> u32 {
        1024
    }
    /// Constant memory of the module, in bytes.
    pub fn const_bytes(&self) -> u32 {
        0
    }
    /// PTX version, major × 10 + minor.
    pub fn ptx_version(&self) -> u32 {
        0
    }
    /// Target architecture, for example 80.
    pub fn target_sm(&self) -> u32 {
        0
    }
}
