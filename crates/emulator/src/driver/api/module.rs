//! Exported functions for modules and their functions.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::driver::c::abi::{Address, Handle};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{In, Out, Text, api};
use crate::driver::state::context::current;
use crate::driver::state::function;
use crate::driver::state::image;
use crate::driver::state::jit::Jit;
use crate::driver::state::module::{function, function_of, global_of, load, unload};
use crate::driver::state::registry::registry;

fn names(module: Handle) -> Res<Vec<String>> {
    let entry = registry()?.modules.get(module)?;
    Ok(entry.module.functions().map(str::to_owned).collect())
}

/// Loads the image at a pointer and returns the handle of the module.
fn load_at(out: Out<Handle>, image: *const c_void, jit: &Jit) -> Res {
    out.required()?;
    let context = current()?;
    // SAFETY: the image satisfies the C contract of the calling function.
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
        // As in the real driver, the function owns the name, which is valid until the module is
        // unloaded.
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
