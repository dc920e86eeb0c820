//! Modules and their functions, and the exported functions on them.

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use super::abi::{Address, Handle};
use super::code::{Code, Res};
use super::context::{Context, context, current};
use super::entry::{In, Out, Text, api, lock};
use super::function;
use super::image::{self, Refusal};
use super::jit::Jit;
use super::library;
use super::registry::{fresh, registry};
use crate::{Function, Module};

/// A loaded module.
pub struct ModuleEntry {
    pub context: Handle,
    module: Module,
    /// The functions that have been asked for, by name.
    functions: Mutex<HashMap<String, Handle>>,
}

/// A function of a module, with the attributes that can be set.
pub struct FunctionEntry {
    pub context: Handle,
    pub module: Handle,
    pub function: Arc<Function>,
    pub name: CString,
    /// The most dynamic shared memory of a launch, in bytes.
    pub dynamic_limit: AtomicU32,
    /// The preferred share of shared memory, in percent; `u32::MAX` for no preference.
    pub carveout: AtomicU32,
}

/// Makes a module of an image in a context.
pub fn load(context: &Context, text: Result<String, Refusal>, jit: &Jit) -> Res<Handle> {
    let (module, _) = image::load(text, context.device.ordinal, jit)?;
    let entry = ModuleEntry { context: context.handle, module, functions: Mutex::default() };
    Ok(registry()?.modules.insert(Arc::new(entry)))
}

/// The function of that name, which always has the same handle.
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

/// A function by its handle, or by the handle of a library's kernel, in a context that has not
/// failed.
pub fn function(handle: Handle) -> Res<Arc<FunctionEntry>> {
    let registry = registry()?;
    let entry = match registry.functions.find(handle) {
        Some(entry) => entry,
        None => registry.functions.get(library::function_of(handle)?)?,
    };
    context(entry.context)?.core.check()?;
    Ok(entry)
}

/// Address and size of a variable of a module.
pub fn global_of(module: Handle, name: &str) -> Res<(u64, u64)> {
    registry()?.modules.get(module)?.module.global(name).ok_or(Code::NOT_FOUND)
}

/// Unloads a module, once the work of its context is done.
pub fn unload(handle: Handle) -> Res {
    let registry = registry()?;
    let entry = registry.modules.get(handle)?;
    let context = context(entry.context)?;
    context.drain();
    context.core.check()?;
    registry.functions.purge(|function| function.module == handle);
    registry.modules.remove(handle).map(|_| ())
}

fn names(module: Handle) -> Res<Vec<String>> {
    let entry = registry()?.modules.get(module)?;
    Ok(entry.module.functions().map(str::to_owned).collect())
}

/// Loads an image given by a pointer.
fn load_at(out: Out<Handle>, image: *const c_void, jit: &Jit) -> Res {
    out.required()?;
    let context = current()?;
    // SAFETY: the image is as the C contract of the calling function says.
    let text = unsafe { image::text_at(image) };
    out.set(load(&context, text, jit)?)
}

api! {
    fn cuModuleLoad(out: Out<Handle>, path: Text) {
        out.required()?;
        let context = current()?;
        out.set(load(&context, image::text_in(&path.get()?), &Jit::none())?)
    }

    fn cuModuleLoadData(out: Out<Handle>, image: *const c_void) {
        load_at(out, image, &Jit::none())
    }

    fn cuModuleLoadDataEx(
        out: Out<Handle>,
        image: *const c_void,
        count: c_uint,
        options: In<c_uint>,
        values: Out<usize>,
    ) {
        load_at(out, image, &Jit::read(count, options, values)?)
    }

    fn cuModuleLoadFatBinary(out: Out<Handle>, image: *const c_void) {
        load_at(out, image, &Jit::none())
    }

    fn cuModuleUnload(module: Handle) {
        unload(module)
    }

    fn cuModuleGetLoadingMode(mode: Out<c_uint>) {
        registry()?;
        // CU_MODULE_EAGER_LOADING.
        mode.set(1)
    }

    fn cuModuleGetFunction(out: Out<Handle>, module: Handle, name: Text) {
        out.required()?;
        current()?;
        out.set(function_of(module, &name.get()?)?)
    }

    fn cuModuleGetFunctionCount(count: Out<c_uint>, module: Handle) {
        current()?;
        count.set(names(module)?.len() as c_uint)
    }

    fn cuModuleEnumerateFunctions(out: Out<Handle>, room: c_uint, module: Handle) {
        current()?;
        let handles: Res<Vec<Handle>> =
            names(module)?.iter().map(|name| function_of(module, name)).collect();
        out.fill(room as usize, handles?)
    }

    fn cuModuleGetGlobal_v2(
        address: Out<Address>,
        bytes: Out<usize>,
        module: Handle,
        name: Text,
    ) {
        current()?;
        let found = global_of(module, &name.get()?)?;
        address.set_if_asked(found.0);
        bytes.set_if_asked(found.1 as usize);
        Ok(())
    }

    fn cuFuncGetModule(out: Out<Handle>, handle: Handle) {
        out.set(function(handle)?.module)
    }

    fn cuFuncGetName(out: Out<*const c_char>, handle: Handle) {
        // Owned by the function, as the real driver has it: valid until the module goes.
        out.set(function(handle)?.name.as_ptr())
    }

    fn cuFuncIsLoaded(state: Out<c_uint>, handle: Handle) {
        function(handle)?;
        // CU_FUNCTION_LOADING_STATE_LOADED.
        state.set(1)
    }

    fn cuFuncLoad(handle: Handle) {
        function(handle).map(|_| ())
    }

    fn cuFuncGetParamInfo(
        handle: Handle,
        index: usize,
        offset: Out<usize>,
        bytes: Out<usize>,
    ) {
        function::param_info(&function(handle)?.function, index, offset, bytes)
    }

    fn cuFuncGetAttribute(out: Out<c_int>, which: c_uint, handle: Handle) {
        let entry = function(handle)?;
        out.set(function::attribute(&entry, which)?)
    }

    fn cuFuncSetAttribute(handle: Handle, which: c_uint, value: c_int) {
        let entry = function(handle)?;
        function::set_attribute(&entry, which, value)
    }

    fn cuFuncSetCacheConfig(handle: Handle, config: c_uint) {
        function(handle)?;
        if config > 3 { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }

    fn cuFuncSetSharedMemConfig(handle: Handle, config: c_uint) {
        function(handle)?;
        if config > 2 { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }
}

/// Sets the limit that `cuFuncSetAttribute` sets.
pub fn set_dynamic(entry: &FunctionEntry, bytes: u32) {
    entry.dynamic_limit.store(bytes, Ordering::Release);
}
