//! Modules and their functions.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use super::context::{Context, context};
use super::image::{self, Refusal};
use super::jit::Jit;
use super::registry::{fresh, registry};
use super::{function, library};
use crate::driver::c::abi::Handle;
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::lock;
use crate::driver::c::json::{list, quoted};
use crate::module::{Function, Module, Variable};

/// A module that is loaded into a context.
pub struct ModuleEntry {
    pub context: Handle,
    pub module: Module,
    /// The functions that callers have requested, by name.
    functions: Mutex<HashMap<String, Handle>>,
}

/// A function of a module, with its settable attributes.
pub struct FunctionEntry {
    pub context: Handle,
    pub module: Handle,
    pub function: Arc<Function>,
    pub name: CString,
    /// Maximum dynamic shared memory of a launch, bytes.
    pub dynamic_limit: AtomicU32,
    /// Preferred share of shared memory, percent; `u32::MAX` means no preference.
    pub carveout: AtomicU32,
}

/// Creates a module from an image in a context.
pub fn load(context: &Context, text: Result<String, Refusal>, jit: &Jit) -> Res<Handle> {
    let (module, _) = image::load(text, context.device.ordinal, jit)?;
    let entry = ModuleEntry { context: context.handle, module, functions: Mutex::default() };
    Ok(registry()?.modules.insert(Arc::new(entry)))
}

/// Returns the handle of the function with a name. Every call returns the same handle.
pub fn function_of(module: Handle, name: &str) -> Res<Handle> {
    let registry = registry()?;
    let entry = registry.modules.get(module)?;
    let mut known = lock(&entry.functions);
    if let Some(&handle) = known.get(name) {
        return Ok(handle);
    }
    let function = entry.module.function(name).ok_or(Code::NOT_FOUND)?;
    let handle = fresh();
    let made = FunctionEntry {
        context: entry.context,
        module,
        name: CString::new(name).map_err(|_| Code::INVALID_VALUE)?,
        dynamic_limit: AtomicU32::new(function::default_dynamic(&function)),
        carveout: AtomicU32::new(u32::MAX),
        function,
    };
    registry.functions.insert_as(handle, Arc::new(made));
    known.insert(name.to_owned(), handle);
    Ok(handle)
}

/// Returns a function by its handle or by the handle of a library's kernel. Fails if its context
/// has failed.
pub fn function(handle: Handle) -> Res<Arc<FunctionEntry>> {
    let registry = registry()?;
    let entry = match registry.functions.find(handle) {
        Some(entry) => entry,
        None => registry.functions.get(library::function_of(handle)?)?,
    };
    context(entry.context)?.core.check()?;
    Ok(entry)
}

/// Returns the address and size of a variable of a module.
pub fn global_of(module: Handle, name: &str) -> Res<(u64, u64)> {
    registry()?.modules.get(module)?.module.global(name).ok_or(Code::NOT_FOUND)
}

/// Returns the variables of a module, and the functions that it declares but does not define, as
/// JSON.
pub fn variables_of(module: Handle) -> Res<String> {
    let entry = registry()?.modules.get(module)?;
    let variables = entry.module.variables().iter().map(|variable| {
        let Variable { name, address, bytes, constant, managed } = variable;
        let name = quoted(name);
        format!(
            "{{\"name\":{name},\"address\":{address},\"bytes\":{bytes},\"constant\":{constant},\
             \"managed\":{managed}}}"
        )
    });
    let imports = entry.module.imports().iter().map(|name| quoted(name));
    Ok(format!("{{\"variables\":{},\"imports\":{}}}", list(variables), list(imports)))
}

/// Unloads a module after the work of its context has finished.
pub fn unload(handle: Handle) -> Res {
    let registry = registry()?;
    let entry = registry.modules.get(handle)?;
    let context = context(entry.context)?;
    context.drain();
    context.core.check()?;
    registry.functions.purge(|function| function.module == handle);
    registry.modules.remove(handle).map(|_| ())
}

/// Sets the limit of dynamic shared memory, as `cuFuncSetAttribute` does.
pub fn set_dynamic(entry: &FunctionEntry, bytes: u32) {
    entry.dynamic_limit.store(bytes, Ordering::Release);
}
