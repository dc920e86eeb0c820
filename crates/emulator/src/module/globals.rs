//! Variables of module scope: their memory and initial values.

use std::collections::HashMap;
use std::sync::Arc;

use super::LoadError;
use crate::ir::window::FUNCTION_WINDOW;
use crate::memory::{AllocKind, Memory};
use crate::ptx::{InitValue, Space, Unit, Var};

/// Maximum memory of all variables of a module, bytes.
const MAX_BYTES: u64 = 4 << 30;

/// Global and constant variables of a module. Their memory is freed when the last user of the
/// module is dropped.
pub(super) struct Globals {
    memory: Arc<Memory>,
    vars: HashMap<String, (u64, u64)>,
    /// All variables, in the order of the PTX.
    list: Vec<Variable>,
}

/// A variable whose memory belongs to the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Name of the variable in the PTX.
    pub name: String,
    pub address: u64,
    pub bytes: u64,
    /// Whether the variable is declared constant.
    pub constant: bool,
    /// Whether the variable is declared managed.
    pub managed: bool,
}

impl Globals {
    /// Allocates memory for every variable and writes its initial value.
    pub(super) fn place(
        unit: &Unit<'_>,
        funcs: &HashMap<&str, usize>,
        memory: &Arc<Memory>,
        device: u32,
    ) -> Result<Self, LoadError> {
        let mut out = Self { memory: memory.clone(), vars: HashMap::new(), list: Vec::new() };
        let placed = |v: &&Var<'_>| {
            matches!(v.space, Space::Global | Space::Const) && !v.external && v.bytes != 0
        };
        let mut total = 0u64;
        for v in unit.vars.iter().filter(placed) {
            let lacks = |reason| LoadError::gap(v.line, v.name.to_string(), reason);
            if out.vars.contains_key(v.name) {
                let reason = format!("variable `{}` is defined twice", v.name);
                return Err(LoadError::invalid(v.line, v.name.to_string(), reason));
            }
            total = total.saturating_add(v.bytes);
            if total > MAX_BYTES {
                return Err(lacks(format!("more than {MAX_BYTES} bytes of global variables")));
            }
            // The memory is zero initially and uses no pages until it is written.
            let va = memory.alloc(v.bytes, AllocKind::Module(device));
            let va = va.map_err(|e| lacks(format!("no memory for `{}`: {e}", v.name)))?;
            out.vars.insert(v.name.to_string(), (va, v.bytes));
            out.list.push(Variable {
                name: v.name.to_string(),
                address: va,
                bytes: v.bytes,
                constant: v.space == Space::Const,
                managed: v.managed,
            });
        }
        for v in unit.vars.iter().filter(placed) {
            out.initialise(v, funcs)?;
        }
        Ok(out)
    }

    fn initialise(&self, v: &Var<'_>, funcs: &HashMap<&str, usize>) -> Result<(), LoadError> {
        let Some((va, _)) = self.get(v.name) else {
            return Ok(());
        };
        let fail = |reason: String| LoadError::invalid(v.line, v.name.to_string(), reason);
        for (at, value) in v.init.iter().flat_map(|i| &i.items) {
            let bits = match value {
                InitValue::Bits(bits) => *bits,
                InitValue::Symbol(s) => {
                    let base = match (self.get(s.name), funcs.get(s.name)) {
                        (Some((va, _)), _) => va,
                        (None, Some(f)) => FUNCTION_WINDOW + 16 * *f as u64,
                        _ => return Err(fail(format!("`{}` is not declared", s.name))),
                    };
                    base.wrapping_add(s.offset as u64)
                }
            };
            let width = (v.ty.bytes() as usize).min(8);
            let data = &bits.to_le_bytes()[..width];
            self.memory.write(va + at, data).map_err(|e| fail(e.to_string()))?;
        }
        Ok(())
    }

    /// Returns the address of a variable, and its size in bytes.
    pub(super) fn get(&self, name: &str) -> Option<(u64, u64)> {
        self.vars.get(name).copied()
    }

    pub(super) fn list(&self) -> &[Variable] {
        &self.list
    }
}

impl Drop for Globals {
    fn drop(&mut self) {
        for (va, _) in self.vars.values() {
            // This can fail only if the memory is already freed.
            let _ = self.memory.free(*va);
        }
    }
}
