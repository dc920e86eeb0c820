//! The fat binaries, kernels and variables that the program's translation units have registered.
//!
//! A fat binary is a library of the driver, created when any part of it is first needed. Its
//! kernels are kernels of that library, so a `cudaKernel_t` is a valid handle for the driver too.

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use super::call::{begin, entered};
use super::error::{INVALID_FUNCTION, INVALID_SYMBOL};
use crate::driver::c::abi::Handle;
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::lock;
use crate::driver::state::library::{self, Kernel, Library};
use crate::driver::state::module::{function_of, global_of};
use crate::driver::state::registry::{fresh, registry};

/// A fat binary that the program has registered.
pub struct Unit {
    /// Address of the wrapper that the compiler generated.
    wrapper: usize,
    /// Handle of the driver's library. The handle exists before the library does. `loaded` is set
    /// once the library is needed.
    library: Handle,
    loaded: OnceLock<Res>,
    /// The module that contains the managed variables in use.
    bound: Mutex<Option<Handle>>,
    /// The managed variables: the location where the program stores the address of each, and its
    /// name.
    managed: Mutex<Vec<(usize, String)>>,
}

impl Unit {
    fn new(wrapper: *const c_void) -> Self {
        let (loaded, bound, managed) = Default::default();
        Unit { wrapper: wrapper as usize, library: fresh(), loaded, bound, managed }
    }

    /// Creates the driver's library if it does not exist yet.
    fn load(&self) -> Res {
        *self.loaded.get_or_init(|| {
            let registry = registry()?;
            let arch = registry.devices.first().ok_or(Code::NO_DEVICE)?.arch;
            let sm = arch.major * 10 + arch.minor;
            // SAFETY: the compiler registered the wrapper, and unregisters it before it is removed.
            let text = unsafe { super::fatbin::ptx_at(self.wrapper as *const c_void, sm) };
            let text = text.map_err(|message| {
                // A user who starts a program directly does not see the report.
                eprintln!("warpgauge emulator: {message}");
                registry.reports.message("module", &message);
                Code::NO_BINARY_FOR_GPU
            })?;
            let library = Library { text, kernels: Vec::new(), modules: Mutex::default() };
            registry.libraries.insert_as(self.library, Arc::new(library));
            Ok(())
        })
    }

    /// Returns the unit's module in the current context. Loads it if necessary.
    pub fn module(&self) -> Res<Handle> {
        let registry = registry()?;
        self.load()?;
        let library = registry.libraries.get(self.library)?;
        let module = library.module_in(entered()?.handle)?;
        self.bind(module)?;
        Ok(module)
    }

    /// Stores the addresses of the managed variables in the program, unless it uses those of
    /// another module that still exists.
    fn bind(&self, module: Handle) -> Res {
        let registry = registry()?;
        let mut bound = lock(&self.bound);
        if bound.is_some_and(|known| registry.modules.find(known).is_some()) {
            return Ok(());
        }
        for (place, name) in lock(&self.managed).iter() {
            // The PTX may not contain a variable that no kernel uses.
            let Ok((address, _)) = global_of(module, name) else { continue };
            // SAFETY: the compiler registered the location, which is a pointer variable for this
            // purpose.
            unsafe { (*place as *mut u64).write_volatile(address) };
        }
        *bound = Some(module);
        Ok(())
    }

    /// Returns the address and size of this unit's managed variable at `address`, or `None` if
    /// there is no such variable.
    fn managed_at(&self, address: u64) -> Option<(u64, u64)> {
        let module = (*lock(&self.bound))?;
        let managed = lock(&self.managed);
        let places = managed.iter().filter_map(|(_, name)| global_of(module, name).ok());
        places.into_iter().find(|place| place.0 == address)
    }
}

/// A kernel that the program has registered.
pub struct ProgramKernel {
    unit: Arc<Unit>,
    name: CString,
    handle: OnceLock<Handle>,
}

/// A variable that the program has registered.
struct Variable {
    unit: Arc<Unit>,
    name: String,
}

#[derive(Default)]
struct Program {
    units: Vec<Arc<Unit>>,
    /// Kernels by the address of the host function that represents each of them.
    kernels: HashMap<usize, Arc<ProgramKernel>>,
    /// Kernels by handle. Only kernels whose handles the program has requested are included.
    handles: HashMap<Handle, Arc<ProgramKernel>>,
    /// Variables by the address of the host variable that represents each of them.
    variables: HashMap<usize, Arc<Variable>>,
}

static PROGRAM: OnceLock<RwLock<Program>> = OnceLock::new();

fn read<T>(look: impl FnOnce(&Program) -> T) -> T {
    look(&PROGRAM.get_or_init(Default::default).read().unwrap_or_else(PoisonError::into_inner))
}

fn write<T>(change: impl FnOnce(&mut Program) -> T) -> T {
    let program = PROGRAM.get_or_init(Default::default);
    change(&mut program.write().unwrap_or_else(PoisonError::into_inner))
}

/// Adds a fat binary. Returns its key, an address that callers only pass back.
pub fn add(wrapper: *const c_void) -> usize {
    let unit = Arc::new(Unit::new(wrapper));
    let key = Arc::as_ptr(&unit) as usize;
    write(|program| program.units.push(unit));
    key
}

/// Returns the unit of a key.
pub fn unit(key: usize) -> Option<Arc<Unit>> {
    read(|program| program.units.iter().find(|unit| Arc::as_ptr(unit) as usize == key).cloned())
}

/// Adds a kernel of a unit.
pub fn add_kernel(unit: Arc<Unit>, host: usize, name: CString) {
    let kernel = Arc::new(ProgramKernel { unit, name, handle: OnceLock::new() });
    write(|program| program.kernels.insert(host, kernel));
}

/// Adds a variable of a unit.
pub fn add_variable(unit: Arc<Unit>, host: usize, name: String) {
    write(|program| program.variables.insert(host, Arc::new(Variable { unit, name })));
}

/// Adds a managed variable of a unit. The program stores the variable's address at `place`.
pub fn add_managed(unit: &Unit, place: usize, name: String) {
    lock(&unit.managed).push((place, name));
}

/// Removes a unit whose code is being unloaded. Its modules stay, because their kernels may still
/// run.
pub fn remove(key: usize) {
    let Some(gone) = unit(key) else { return };
    write(|program| {
        program.units.retain(|unit| !Arc::ptr_eq(unit, &gone));
        program.kernels.retain(|_, kernel| !Arc::ptr_eq(&kernel.unit, &gone));
        program.handles.retain(|_, kernel| !Arc::ptr_eq(&kernel.unit, &gone));
        program.variables.retain(|_, variable| !Arc::ptr_eq(&variable.unit, &gone));
    });
}

/// Returns the kernel for a `const void *func`: the host function that represents it, or its
/// handle.
fn program_kernel(symbol: usize) -> Option<Arc<ProgramKernel>> {
    read(|program| program.kernels.get(&symbol).or_else(|| program.handles.get(&symbol)).cloned())
}

/// Returns the driver's kernel for a `const void *func`. Its fat binary may be unloaded, or
/// unsuitable for the device.
pub fn kernel(symbol: usize) -> Res<Handle> {
    begin()?;
    let registry = registry()?;
    let Some(kernel) = program_kernel(symbol) else {
        // This may be a kernel of a library that the program has loaded itself.
        return registry.kernels.find(symbol).map(|_| symbol).ok_or(INVALID_FUNCTION);
    };
    let handle = *kernel.handle.get_or_init(|| {
        let entry = Kernel { library: kernel.unit.library, name: kernel.name.clone() };
        registry.kernels.insert(Arc::new(entry))
    });
    write(|program| program.handles.insert(handle, kernel));
    Ok(handle)
}

/// Returns the driver's kernel like `kernel`, for a handle that is passed to the driver. Loads the
/// kernel's library, which the driver needs.
pub fn loaded_kernel(symbol: usize) -> Res<Handle> {
    let handle = kernel(symbol)?;
    program_kernel(symbol).map_or(Ok(()), |kernel| kernel.unit.load())?;
    Ok(handle)
}

/// Returns the driver's function for a `const void *func`, in the current context.
pub fn function(symbol: usize) -> Res<Handle> {
    if let Some(kernel) = program_kernel(symbol) {
        let module = kernel.unit.module()?;
        let name = kernel.name.to_str().map_err(|_| INVALID_FUNCTION)?;
        return function_of(module, name).map_err(|code| match code {
            Code::NOT_FOUND => INVALID_FUNCTION,
            other => other,
        });
    }
    let registry = registry()?;
    if registry.functions.find(symbol).is_some() {
        return Ok(symbol);
    }
    registry.kernels.find(symbol).ok_or(INVALID_FUNCTION)?;
    library::function_of(symbol)
}

/// Returns address and size, in the current context, of the variable for a `const void *symbol`.
pub fn variable(symbol: usize) -> Res<(u64, u64)> {
    let known = read(|program| program.variables.get(&symbol).cloned());
    let Some(variable) = known else {
        // For a managed variable, the program passes the address of the variable itself.
        let units = read(|program| program.units.clone());
        let found = units.iter().find_map(|unit| unit.managed_at(symbol as u64));
        return found.ok_or(INVALID_SYMBOL);
    };
    global_of(variable.unit.module()?, &variable.name).map_err(|_| INVALID_SYMBOL)
}
