//! Libraries: modules that are loaded into a context at the first use of one of their kernels
//! there.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Mutex;

use super::context::{context, current};
use super::jit::Jit;
use super::module;
use super::registry::registry;
use crate::driver::c::abi::Handle;
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::lock;

pub struct Library {
    pub text: String,
    /// The kernels in the order of the PTX: name and handle of each.
    pub kernels: Vec<(String, Handle)>,
    /// The module of the library in each context that has used the library.
    pub modules: Mutex<HashMap<Handle, Handle>>,
}

/// A kernel of a library, which `cuLibraryGetKernel` returns.
pub struct Kernel {
    pub library: Handle,
    pub name: CString,
}

impl Library {
    pub fn module_in(&self, context_handle: Handle) -> Res<Handle> {
        let mut modules = lock(&self.modules);
        let registry = registry()?;
        modules.retain(|_, module| registry.modules.find(*module).is_some());
        if let Some(&module) = modules.get(&context_handle) {
            return Ok(module);
        }
        let context = context(context_handle)?;
        let module = module::load(&context, Ok(self.text.clone()), &Jit::none())?;
        modules.insert(context_handle, module);
        Ok(module)
    }
}

/// Returns the function of a kernel in the current context.
pub fn function_of(kernel: Handle) -> Res<Handle> {
    let kernel = registry()?.kernels.get(kernel)?;
    let library = registry()?.libraries.get(kernel.library)?;
    let module = library.module_in(current()?.handle)?;
    module::function_of(module, kernel.name.to_str().map_err(|_| Code::INVALID_VALUE)?)
}
