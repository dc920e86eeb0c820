//! Lowering: from the syntax tree to code.
//!
//! Every kernel gets separate code, with copies of the functions that it can reach, so that the
//! offsets of shared variables are constants. A module is lowered completely when it is loaded, so
//! that unsupported code is rejected then, with its line.

mod alloc;
mod arith;
mod asynchronous;
mod convert;
mod float;
mod flow;
mod func;
mod integer;
mod matrix;
mod memory;
mod mods;
mod moves;
mod names;
mod problem;
mod texture;
mod warp;

use problem::{Problem, gap};

use std::collections::HashMap;

use crate::ir::{Class, Code, FuncInfo, K, ParamLayout, Row32, Row64};
use crate::ptx::LoadError;
use crate::ptx::{Func, Space, Unit, Var};

/// Result of lowering, or the reason why the code cannot be lowered.
pub(crate) type Reason<T> = Result<T, Problem>;

/// Maximum number of functions that one kernel may reach.
const MAX_FUNCS: usize = 4096;
/// Maximum shared memory declared by one kernel, bytes.
const MAX_SHARED: u64 = 1 << 20;

/// Data that all kernels of a module share.
pub(crate) struct Env<'u, 'a> {
    pub(crate) unit: &'u Unit<'a>,
    /// Addresses of variables of module scope in global and constant memory.
    pub(crate) globals: &'u HashMap<&'a str, u64>,
    /// Functions by name. A function with a body takes precedence over declarations.
    pub(crate) funcs: &'u HashMap<&'a str, usize>,
}

/// Code of one kernel while it is lowered.
struct Kernel<'e, 'u, 'a> {
    env: &'e Env<'u, 'a>,
    code: Code,
    k32: HashMap<u32, u32>,
    k64: HashMap<u64, u32>,
    /// Maps the index of a function in the module to its index in the code.
    index: HashMap<usize, u32>,
    /// Functions of the module that the kernel reaches, in the order of the code.
    order: Vec<usize>,
    /// Offsets of the shared variables of module scope that are already allocated.
    shared: HashMap<&'a str, u32>,
    shared_bytes: u64,
    dynamic_align: u32,
    /// Constants that will be addresses in dynamic shared memory. Its start is added to them at the
    /// end.
    patches: Vec<(Class, u32)>,
    indirect: bool,
}

/// The code of a kernel, and the indices of the module's functions in it.
pub(crate) struct Lowered {
    pub(crate) code: Code,
    /// Pairs of a function's index in the module and its index in the code.
    pub(crate) index: Vec<(usize, u32)>,
}

/// Lowers the kernel `entry`, an index into the functions of the module.
pub(crate) fn lower(env: &Env<'_, '_>, entry: usize) -> Result<Lowered, LoadError> {
    let mut kernel = Kernel {
        env,
        code: Code { constants: constants(env), ..Code::default() },
        k32: HashMap::new(),
        k64: HashMap::new(),
        index: HashMap::new(),
        order: Vec::new(),
        shared: HashMap::new(),
        shared_bytes: 0,
        dynamic_align: 16,
        patches: Vec::new(),
        indirect: false,
    };
    kernel.function(entry);
    let mut done = 0;
    while done < kernel.order.len() {
        let func = &env.unit.funcs[kernel.order[done]];
        func::lower(&mut kernel, func, done)?;
        done += 1;
        if done == kernel.order.len() && kernel.indirect {
            kernel.every_function();
        }
        if done > MAX_FUNCS {
            let reason = format!("`{}` calls more than {MAX_FUNCS} functions", func.name);
            return Err(LoadError::gap(func.line, String::new(), reason));
        }
    }
    kernel.finish()
}

/// Returns addresses and sizes of the constant variables.
fn constants(env: &Env<'_, '_>) -> Vec<(u64, u64)> {
    let vars = env.unit.vars.iter().filter(|v| v.space == Space::Const);
    vars.filter_map(|v| Some((*env.globals.get(v.name)?, v.bytes))).collect()
}

/// Lowers a device function separately, to detect unsupported code in it.
pub(crate) fn check(env: &Env<'_, '_>, func: usize) -> Result<(), LoadError> {
    lower(env, func).map(drop)
}

impl<'a> Kernel<'_, '_, 'a> {
    /// Returns the index of a module's function in the code. Queues the function for lowering if it
    /// is new.
    fn function(&mut self, module_index: usize) -> u32 {
        if let Some(&i) = self.index.get(&module_index) {
            return i;
        }
        let i = self.order.len() as u32;
        self.index.insert(module_index, i);
        self.order.push(module_index);
        self.code.funcs.push(FuncInfo::default());
        i
    }

    /// Adds all device functions, because an indirect call may reach any of them.
    fn every_function(&mut self) {
        for (i, f) in self.env.unit.funcs.iter().enumerate() {
            if f.body.is_some() && f.kind == crate::ptx::FuncKind::Func {
                self.function(i);
            }
        }
    }

    fn k32(&mut self, value: u32) -> u32 {
        let rows = &mut self.code.consts.k32;
        K | *self.k32.entry(value).or_insert_with(|| {
            rows.push(Row32([value; 32]));
            rows.len() as u32 - 1
        })
    }

    fn k64(&mut self, value: u64) -> u32 {
        let rows = &mut self.code.consts.k64;
        K | *self.k64.entry(value).or_insert_with(|| {
            rows.push(Row64([value; 32]));
            rows.len() as u32 - 1
        })
    }

    /// Returns a constant that will be the start of dynamic shared memory plus `offset`.
    fn dynamic_shared(&mut self, class: Class, offset: i64) -> u32 {
        let index = if class == Class::W64 {
            self.code.consts.k64.push(Row64([offset as u64; 32]));
            self.code.consts.k64.len() - 1
        } else {
            self.code.consts.k32.push(Row32([offset as u32; 32]));
            self.code.consts.k32.len() - 1
        };
        self.patches.push((class, index as u32));
        K | index as u32
    }

    /// Allocates a shared variable and returns its offset.
    fn place_shared(&mut self, var: &Var<'_>) -> Reason<u32> {
        let align = u64::from(var.align.max(1));
        let at = self.shared_bytes.next_multiple_of(align);
        self.shared_bytes = at + var.bytes;
        if self.shared_bytes > MAX_SHARED {
            return Err(format!("more than {MAX_SHARED} bytes of shared memory").into());
        }
        Ok(at as u32)
    }

    fn finish(mut self) -> Result<Lowered, LoadError> {
        let base = (self.shared_bytes as u32).next_multiple_of(self.dynamic_align);
        // Only dynamic variables require the alignment.
        let used = if self.patches.is_empty() { self.shared_bytes as u32 } else { base };
        self.code.shared_static = used;
        for (class, i) in &self.patches {
            if *class == Class::W64 {
                let row = &mut self.code.consts.k64[*i as usize];
                row.0 = row.0.map(|v| v.wrapping_add(u64::from(base)));
            } else {
                let row = &mut self.code.consts.k32[*i as usize];
                row.0 = row.0.map(|v| v.wrapping_add(base));
            }
        }
        Ok(Lowered { code: self.code, index: self.index.into_iter().collect() })
    }
}

/// Returns the offset of each parameter in the caller's and callee's buffers, and the total size.
pub(crate) fn layout(vars: &[Var<'_>]) -> (Vec<usize>, usize) {
    let (mut offsets, mut at) = (Vec::with_capacity(vars.len()), 0usize);
    for v in vars {
        at = at.next_multiple_of(v.align.max(1) as usize);
        offsets.push(at);
        at = at.saturating_add(v.bytes as usize);
    }
    (offsets, at)
}

/// Returns the layout of the kernel's parameters and the size of their buffer.
pub(crate) fn param_layout(func: &Func<'_>) -> (Vec<ParamLayout>, usize) {
    let (offsets, bytes) = layout(&func.params);
    let params = func.params.iter().zip(offsets).map(|(v, offset)| ParamLayout {
        name: v.name.to_string(),
        offset,
        bytes: v.bytes as usize,
        align: v.align as usize,
    });
    (params.collect(), bytes)
}
