//! Loaded PTX modules and their functions.

mod globals;

use std::collections::HashMap;
use std::sync::Arc;

use crate::ir::lower::{self, Env};
use crate::ir::{Builtin, Code, Op};
use crate::memory::Memory;
use crate::ptx::{self, Func, FuncKind, Space, Unit};
use globals::Globals;
pub use globals::Variable;

pub use crate::ir::ParamLayout;
pub use crate::ptx::LoadError;

/// Maximum number of instructions in all kernels of a module. The functions that a kernel calls
/// count again for each kernel.
const MAX_CODE: usize = 4 << 20;
/// Maximum static shared memory of a kernel, bytes. A kernel that needs more must use dynamic shared
/// memory.
const MAX_STATIC_SHARED: u32 = 48 << 10;

/// Number of registers available to one block.
const BLOCK_REGISTERS: u32 = 64 << 10;

/// A loaded PTX module: functions that are ready to run, and global variables in memory.
pub struct Module {
    functions: Vec<Arc<Function>>,
    globals: Arc<Globals>,
    /// Names of functions that the PTX declares but does not define.
    imports: Vec<String>,
}

/// The code of a kernel, and the tables that it needs to run.
pub(crate) struct Program {
    pub(crate) code: Code,
    /// Pairs of indices: of a function in the module, and of the same function in the code.
    pub(crate) index: Vec<(usize, u32)>,
    pub(crate) files: Arc<Vec<(u32, String)>>,
    pub(crate) uses_heap: bool,
}

/// A kernel that is ready to run.
pub struct Function {
    name: String,
    params: Vec<ParamLayout>,
    param_bytes: usize,
    max_threads: u32,
    /// Whether the PTX limits the size of a block.
    bounded: bool,
    const_bytes: u32,
    target_sm: u32,
    program: Program,
    /// Keeps the variables that the code refers to alive.
    _globals: Arc<Globals>,
}

impl Module {
    /// Parses `ptx`, lowers every function and allocates the global variables on `device`.
    ///
    /// # Errors Fails at the first line that is not valid PTX, or that uses a feature which the
    /// emulator does not support.
    pub fn load(ptx: &str, memory: &Arc<Memory>, device: u32) -> Result<Module, LoadError> {
        Self::load_text(ptx, memory, device).map_err(LoadError::cut)
    }

    fn load_text(text: &str, memory: &Arc<Memory>, device: u32) -> Result<Module, LoadError> {
        let unit = ptx::parse(text)?;
        let funcs = index_functions(&unit)?;
        let globals = Arc::new(Globals::place(&unit, &funcs, memory, device)?);
        let addresses = unit.vars.iter().filter_map(|v| Some((v.name, globals.get(v.name)?.0)));
        let addresses: HashMap<&str, u64> = addresses.collect();
        let env = Env { unit: &unit, globals: &addresses, funcs: &funcs };
        let files = Arc::new(unit.files.clone());
        let consts = unit.vars.iter().filter(|v| v.space == Space::Const);
        let const_bytes = consts.map(|v| v.bytes).sum::<u64>().min(u32::MAX.into()) as u32;
        let (mut functions, mut reached) = (Vec::new(), vec![false; unit.funcs.len()]);
        let mut instructions = 0usize;
        for (i, f) in unit.funcs.iter().enumerate() {
            if f.kind != FuncKind::Entry || f.body.is_none() {
                continue;
            }
            let lowered = lower::lower(&env, i)?;
            instructions += lowered.code.insts.len();
            fits(f, &lowered.code, instructions)?;
            lowered.index.iter().for_each(|(m, _)| reached[*m] = true);
            let heap = Op::Builtin(Builtin::Malloc);
            let uses_heap = lowered.code.insts.iter().any(|i| i.op == heap);
            let (params, param_bytes) = lower::param_layout(f);
            functions.push(Arc::new(Function {
                name: f.name.to_string(),
                params,
                param_bytes,
                max_threads: f.max_threads.map_or(1024, |n| n.clamp(1, 1024)),
                bounded: f.max_threads.is_some(),
                const_bytes,
                target_sm: unit.target,
                program: Program {
                    code: lowered.code,
                    index: lowered.index,
                    files: files.clone(),
                    uses_heap,
                },
                _globals: globals.clone(),
            }));
        }
        for (i, f) in unit.funcs.iter().enumerate() {
            if f.kind == FuncKind::Func && f.body.is_some() && !reached[i] {
                lower::check(&env, i)?;
            }
        }
        let imports = unit
            .funcs
            .iter()
            .enumerate()
            .filter(|(i, f)| f.body.is_none() && funcs.get(f.name) == Some(i));
        let imports = imports.map(|(_, f)| f.name.to_string()).collect();
        Ok(Module { functions, globals, imports })
    }

    /// Returns the kernel called `name`.
    pub fn function(&self, name: &str) -> Option<Arc<Function>> {
        self.functions.iter().find(|f| f.name == name).cloned()
    }

    /// Returns the names of the kernels, in the order of the PTX.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().map(|f| f.name())
    }

    /// Returns the address of the global or constant variable called `name`, and its size in bytes.
    pub fn global(&self, name: &str) -> Option<(u64, u64)> {
        self.globals.get(name)
    }

    /// Returns all variables of module scope that have memory.
    pub fn variables(&self) -> &[Variable] {
        self.globals.list()
    }

    /// Returns the names of the functions that the module declares but does not define.
    pub fn imports(&self) -> &[String] {
        &self.imports
    }
}

/// Checks a kernel against the limits. `instructions` is the number of instructions of the module's
/// kernels up to this one.
fn fits(f: &Func<'_>, code: &Code, instructions: usize) -> Result<(), LoadError> {
    if instructions > MAX_CODE {
        let reason =
            format!("more than {MAX_CODE} instructions in the module's kernels and their callees");
        return Err(LoadError::gap(f.line, f.name.to_string(), reason));
    }
    let shared = code.shared_static;
    if shared > MAX_STATIC_SHARED {
        let reason = format!(
            "{shared} bytes of declared shared memory; more than {MAX_STATIC_SHARED} must be \
             dynamic (`extern __shared__`)"
        );
        return Err(LoadError::invalid(f.line, f.name.to_string(), reason));
    }
    Ok(())
}

/// Returns functions by name. A definition takes precedence over declarations. Two definitions are
/// an error.
fn index_functions<'a>(unit: &Unit<'a>) -> Result<HashMap<&'a str, usize>, LoadError> {
    let mut out: HashMap<&str, usize> = HashMap::new();
    for (i, f) in unit.funcs.iter().enumerate() {
        if let Some(old) = out.get(f.name) {
            let old: &Func<'_> = &unit.funcs[*old];
            if f.body.is_none() {
                continue;
            }
            if old.body.is_some() {
                let reason = format!("function `{}` is defined twice", f.name);
                return Err(LoadError::invalid(f.line, f.name.to_string(), reason));
            }
        }
        out.insert(f.name, i);
    }
    Ok(out)
}

impl Function {
    /// Returns the name in the PTX.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the parameters of the kernel, in order.
    pub fn params(&self) -> &[ParamLayout] {
        &self.params
    }

    /// Returns the size of the parameter buffer, in bytes.
    pub fn param_bytes(&self) -> usize {
        self.param_bytes
    }

    /// Returns the statically declared shared memory of a block, in bytes.
    pub fn static_shared_bytes(&self) -> u32 {
        self.program.code.shared_static
    }

    /// Returns the local memory of a thread, in bytes. It includes only the kernel itself, because
    /// the depth of the call stack is not known.
    pub fn local_bytes(&self) -> u32 {
        self.program.code.funcs.first().map_or(0, |f| f.local)
    }

    /// Estimates the number of 32-bit registers of a thread, for occupancy: those that hold values
    /// at the same time, and a few for addresses. The number is a multiple of 8, as in the
    /// hardware.
    pub fn registers(&self) -> u32 {
        let most = self.program.code.funcs.iter().map(|f| f.n32 + 2 * f.n64).max().unwrap_or(0);
        let estimate = (most + 4).next_multiple_of(8).clamp(16, 255);
        // An assembler that knows the block size uses no more registers than are available for the
        // block.
        match self.bounded {
            true => estimate.min(BLOCK_REGISTERS / self.max_threads.next_multiple_of(32) / 8 * 8),
            false => estimate,
        }
    }

    /// Returns the maximum size of a block: `.maxntid`, or 1024.
    pub fn max_threads(&self) -> u32 {
        self.max_threads
    }

    /// Returns the constant memory of the module, in bytes.
    pub fn const_bytes(&self) -> u32 {
        self.const_bytes
    }

    /// Returns the target architecture, for example 80.
    pub fn target_sm(&self) -> u32 {
        self.target_sm
    }

    /// Returns the operations of the code as text. A test uses them to check that all kinds of
    /// operations are compared with a GPU.
    #[doc(hidden)]
    pub fn operations(&self) -> impl Iterator<Item = String> + '_ {
        self.program.code.insts.iter().map(|i| format!("{:?}", i.op))
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }
}
