//! Exported functions for libraries and their kernels.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::sync::{Arc, Mutex};

use crate::driver::c::abi::{Address, Device, Handle};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{In, Out, Text, api, lock};
use crate::driver::state::context::current;
use crate::driver::state::function;
use crate::driver::state::image::{self, Refusal};
use crate::driver::state::jit::Jit;
use crate::driver::state::library::{Kernel, Library, function_of};
use crate::driver::state::module::{self, global_of};
use crate::driver::state::registry::{device, fresh, registry};

/// Returns a kernel's function on a device. It is in the current context if that context is on the
/// device, and otherwise in the device's primary context.
fn function_on(kernel: Handle, dev: Device) -> Res<Arc<module::FunctionEntry>> {
    let device = device(dev)?;
    let own = current().ok().filter(|context| context.device.ordinal == device.ordinal);
    let context = own.map_or(device.primary_handle, |context| context.handle);
    let entry = registry()?.kernels.get(kernel)?;
    let module = registry()?.libraries.get(entry.library)?.module_in(context)?;
    let name = entry.name.to_str().map_err(|_| Code::INVALID_VALUE)?;
    module::function(module::function_of(module, name)?)
}

fn load(out: Out<Handle>, text: Result<String, Refusal>, jit: &Jit) -> Res {
    out.required()?;
    let registry = registry()?;
    // The image is loaded once here, so that errors are reported now and the kernels' names are
    // known.
    let ordinal = current().map_or(0, |context| context.device.ordinal);
    let (module, text) = image::load(text, ordinal, jit)?;
    let library = fresh();
    let mut kernels = Vec::new();
    for name in module.functions() {
        let entry = CString::new(name).map_err(|_| Code::INVALID_IMAGE)?;
        let handle = registry.kernels.insert(Arc::new(Kernel { library, name: entry }));
        kernels.push((name.to_owned(), handle));
    }
    let modules = Mutex::default();
    registry.libraries.insert_as(library, Arc::new(Library { text, kernels, modules }));
    out.set(library)
}

api! {
    fn cuLibraryLoadData(
        out: Out<Handle>,
        image: *const c_void,
        options: In<c_uint>,
        values: Out<usize>,
        count: c_uint,
        _library_options: *const c_void,
        _library_values: *const c_void,
        _library_count: c_uint,
    ) {
        let jit = Jit::read(count, options, values)?;
        // SAFETY: the image satisfies the C contract of this function.
        let text = unsafe { image::text_at(image) };
        load(out, text, &jit)
    }

    fn cuLibraryLoadFromFile(
        out: Out<Handle>,
        path: Text,
        options: In<c_uint>,
        values: Out<usize>,
        count: c_uint,
        _library_options: *const c_void,
        _library_values: *const c_void,
        _library_count: c_uint,
    ) {
        let jit = Jit::read(count, options, values)?;
        load(out, image::text_in(&path.get()?), &jit)
    }

    fn cuLibraryUnload(handle: Handle) {
        let registry = registry()?;
        let library = registry.libraries.remove(handle)?;
        registry.kernels.purge(|kernel| kernel.library == handle);
        let modules: Vec<Handle> = lock(&library.modules).drain().map(|entry| entry.1).collect();
        for module in modules {
            // Modules of destroyed contexts no longer exist.
            if registry.modules.find(module).is_some() {
                module::unload(module)?;
            }
        }
        Ok(())
    }

    fn cuLibraryGetKernel(out: Out<Handle>, library: Handle, name: Text) {
        let name = name.get()?;
        let library = registry()?.libraries.get(library)?;
        let found = library.kernels.iter().find(|kernel| kernel.0 == name);
        out.set(found.ok_or(Code::NOT_FOUND)?.1)
    }

    fn cuLibraryGetKernelCount(count: Out<c_uint>, library: Handle) {
        count.set(registry()?.libraries.get(library)?.kernels.len() as c_uint)
    }

    fn cuLibraryEnumerateKernels(out: Out<Handle>, room: c_uint, library: Handle) {
        let library = registry()?.libraries.get(library)?;
        out.fill(room as usize, library.kernels.iter().map(|kernel| kernel.1))
    }

    fn cuLibraryGetModule(out: Out<Handle>, library: Handle) {
        let context = current()?.handle;
        out.set(registry()?.libraries.get(library)?.module_in(context)?)
    }

    fn cuLibraryGetGlobal(
        address: Out<Address>,
        bytes: Out<usize>,
        library: Handle,
        name: Text,
    ) {
        let context = current()?.handle;
        let module = registry()?.libraries.get(library)?.module_in(context)?;
        let found = global_of(module, &name.get()?)?;
        address.set_if_asked(found.0);
        bytes.set_if_asked(found.1 as usize);
        Ok(())
    }

    fn cuKernelGetFunction(out: Out<Handle>, kernel: Handle) {
        out.set(function_of(kernel)?)
    }

    fn cuKernelGetLibrary(out: Out<Handle>, kernel: Handle) {
        out.set(registry()?.kernels.get(kernel)?.library)
    }

    fn cuKernelGetName(out: Out<*const c_char>, kernel: Handle) {
        out.set(registry()?.kernels.get(kernel)?.name.as_ptr())
    }

    fn cuKernelGetAttribute(out: Out<c_int>, which: c_uint, kernel: Handle, dev: Device) {
        out.set(function::attribute(&*function_on(kernel, dev)?, which)?)
    }

    fn cuKernelSetAttribute(which: c_uint, value: c_int, kernel: Handle, dev: Device) {
        function::set_attribute(&*function_on(kernel, dev)?, which, value)
    }

    fn cuKernelSetCacheConfig(kernel: Handle, config: c_uint, dev: Device) {
        function_on(kernel, dev)?;
        if config > 3 { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }

    fn cuKernelGetParamInfo(
        kernel: Handle,
        index: usize,
        offset: Out<usize>,
        bytes: Out<usize>,
    ) {
        let entry = module::function(function_of(kernel)?)?;
        function::param_info(&entry.function, index, offset, bytes)
    }
}
