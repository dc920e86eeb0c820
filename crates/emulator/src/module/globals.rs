//! Variables of module scope: their memory and first values.

use std::collections::HashMap;
use std::sync::Arc;

use super::LoadError;
use crate::ir::lower::FUNCTION_WINDOW;
use crate::memory::{AllocKind, Memory};
use crate::ptx::{InitValue, Space, Unit, Var};

/// Global and constant variables of a module. Their memory is freed with the last function.
pub(super) struct Globals {
    memory: Arc<Memory>,
    vars: HashMap<String, (u64, u64)>,
}

impl Globals {
    /// Gives every variable memory and its initial value.
    pub(super) fn place(
        unit: &Unit<'_>,
        funcs: &HashMap<&str, usize>,
        memory: &Arc<Memory>,
        device: u32,
    ) -> Result<Self, LoadError> {
        let mut out = Self { memory: memory.clone(), vars: HashMap::new() };
        let placed = |v: &&Var<'_>| {
            matches!(v.space, Space::Global | Space::Const) && !v.external && v.bytes != 0
        };
        for v in unit.vars.iter().filter(placed) {
            let fail = |reason: String| LoadError {
                line: v.line,
                instruction: v.name.to_string(),
                reason,
            };
            if out.vars.contains_key(v.name) {
                return Err(fail(format!("variable `{}` is defined twice", v.name)));
            }
            let va = memory.alloc(v.bytes, AllocKind::Module(device));
            let va = va.map_err(|e| fail(format!("no memory for `{}`: {e}", v.name)))?;
            out.vars.insert(v.name.to_string(), (va, v.bytes));
        }
        for v in unit.vars.iter().filter(placed) {
            out.initialise(v, funcs)?;
        }
        Ok(out)
    }

    fn initialise(&self, v: &Var<'_>, funcs: &HashMap<&str, usize>) -> Result<(), LoadError> {
        let Some((va, bytes)) = self.get(v.name) else {
            return Ok(());
        };
        let fail =
            |reason: String| LoadError { line: v.line, instruction: v.name.to_string(), reason };
        // What has no initialiser is zero, and counts as written.
        self.memory.fill(va, &[0], bytes).map_err(|e| fail(e.to_string()))?;
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

    /// Address and size of a variable.
    pub(super) fn get(&self, name: &str) -> Option<(u64, u64)> {
        self.vars.get(name).copied()
    }
}

impl Drop for Globals {
    fn drop(&mut self) {
        for (va, _) in self.vars.values() {
            // It can only fail if it is freed already.
            let _ = self.memory.free(*va);
        }
    }
}
