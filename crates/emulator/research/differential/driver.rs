//! Runs forms of instructions through a CUDA driver: NVIDIA's driver, or the emulator's library in
//! its place.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::time::{Duration, Instant};

use libloading::Library;

use crate::suite::dump::Record;
use crate::suite::form::{FILL, Form, PARAM_DATA};
use crate::suite::module::{Module, kernel, text};

/// Time after which a running kernel is reported as failed.
const LIMIT: Duration = Duration::from_secs(10);
/// Value of `CUDA_ERROR_NOT_READY`: work of the queried stream has not completed.
const NOT_READY: c_int = 600;
/// Values of `CU_JIT_ERROR_LOG_BUFFER` and `CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES`.
const LOG_OPTIONS: [c_uint; 2] = [5, 6];

type Handle = *mut c_void;

macro_rules! functions {
    ($($name:ident: $symbol:literal ($($arg:ty),*);)*) => {
        /// The functions of the driver that this program calls.
        struct Api {
            $($name: unsafe extern "C" fn($($arg),*) -> c_int,)*
        }

        impl Api {
            fn load(library: &Library) -> Result<Self, String> {
                Ok(Self {
                    // SAFETY: the types are those of the driver API's header.
                    $($name: unsafe {
                        *library.get($symbol.as_bytes()).map_err(|e| format!("{}: {e}", $symbol))?
                    },)*
                })
            }
        }
    };
}

functions! {
    init: "cuInit" (c_uint);
    version: "cuDriverGetVersion" (*mut c_int);
    device: "cuDeviceGet" (*mut c_int, c_int);
    device_name: "cuDeviceGetName" (*mut c_char, c_int, c_int);
    attribute: "cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
    retain: "cuDevicePrimaryCtxRetain" (*mut Handle, c_int);
    set_current: "cuCtxSetCurrent" (Handle);
    load: "cuModuleLoadDataEx" (*mut Handle, *const c_void, c_uint, *mut c_uint, *mut *mut c_void);
    unload: "cuModuleUnload" (Handle);
    function: "cuModuleGetFunction" (*mut Handle, Handle, *const c_char);
    alloc: "cuMemAlloc_v2" (*mut u64, usize);
    upload: "cuMemcpyHtoD_v2" (u64, *const c_void, usize);
    download: "cuMemcpyDtoH_v2" (*mut c_void, u64, usize);
    fill: "cuMemsetD8_v2" (u64, u8, usize);
    launch: "cuLaunchKernel" (Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint,
        Handle, *mut *mut c_void, *mut *mut c_void);
    query: "cuStreamQuery" (Handle);
    error_name: "cuGetErrorName" (c_int, *mut *const c_char);
}

/// A driver with a context on its first device, and buffers for the largest form.
pub struct Driver {
    api: Api,
    pub origin: String,
    input: u64,
    output: u64,
    /// Whether an error has occurred after which no call succeeds.
    pub broken: bool,
    _library: Library,
}

impl Driver {
    /// Opens the library at a path or with a name, and prepares the device.
    pub fn open(path: &Path, forms: &[Form]) -> Result<Self, String> {
        // SAFETY: loading a CUDA driver runs its initialisers, as any program that uses it does.
        let library = unsafe { Library::new(path) }.map_err(|e| e.to_string())?;
        let api = Api::load(&library)?;
        let largest = |f: fn(&Form) -> usize| forms.iter().map(f).max().unwrap_or(0);
        let sizes = [largest(|f| f.inputs().len()), largest(Form::output_bytes)];
        let mut driver = Self {
            api,
            origin: String::new(),
            input: 0,
            output: 0,
            broken: false,
            _library: library,
        };
        driver.prepare(sizes)?;
        Ok(driver)
    }

    fn prepare(&mut self, sizes: [usize; 2]) -> Result<(), String> {
        let (mut version, mut device, mut context) = (0, 0, std::ptr::null_mut());
        let (mut major, mut minor, mut name) = (0, 0, [0 as c_char; 128]);
        let mut memory = [0u64; 2];
        let api = &self.api;
        // SAFETY: all pointers are to local variables that exist until the calls return.
        unsafe {
            self.must("cuInit", (api.init)(0))?;
            self.must("cuDriverGetVersion", (api.version)(&raw mut version))?;
            self.must("cuDeviceGet", (api.device)(&raw mut device, 0))?;
            let room = name.len() as c_int;
            self.must("cuDeviceGetName", (api.device_name)(name.as_mut_ptr(), room, device))?;
            for (out, which) in [(&raw mut major, 75), (&raw mut minor, 76)] {
                self.must("cuDeviceGetAttribute", (api.attribute)(out, which, device))?;
            }
            self.must("cuDevicePrimaryCtxRetain", (api.retain)(&raw mut context, device))?;
            self.must("cuCtxSetCurrent", (api.set_current)(context))?;
            for (out, size) in memory.iter_mut().zip(sizes) {
                self.must("cuMemAlloc", (api.alloc)(&raw mut *out, size))?;
            }
            let name = CStr::from_ptr(name.as_ptr()).to_string_lossy();
            self.origin = format!(
                "{name}, compute capability {major}.{minor}, CUDA driver {}.{}",
                version / 1000,
                version % 1000 / 10
            );
        }
        [self.input, self.output] = memory;
        Ok(())
    }

    fn must(&self, what: &str, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        let mut name = std::ptr::null();
        // SAFETY: the driver stores a pointer to a string that it owns.
        let name = unsafe {
            (self.api.error_name)(code, &raw mut name);
            if name.is_null() { "?".into() } else { CStr::from_ptr(name).to_string_lossy() }
        };
        Err(format!("{what}: {code} {name}"))
    }

    /// Runs the forms of a module for which `wanted` returns true, and passes each record to `put`.
    /// Stops at the first form that breaks the context.
    pub fn run(
        &mut self,
        forms: &[Form],
        module: &Module,
        wanted: &dyn Fn(usize) -> bool,
        put: &mut dyn FnMut(usize, Record) -> Result<(), String>,
    ) -> Result<(), String> {
        let which: Vec<usize> = module.forms.iter().copied().filter(|i| wanted(*i)).collect();
        if which.is_empty() {
            return Ok(());
        }
        let whole = self.load(&module.text);
        if let Ok(handle) = whole {
            for i in which {
                let record = self.one(handle, &forms[i], i);
                put(i, record)?;
                if self.broken {
                    return Ok(());
                }
            }
            // SAFETY: the module is loaded, and none of its kernels is running.
            return self.must("cuModuleUnload", unsafe { (self.api.unload)(handle) });
        }
        // Loading one kernel at a time shows which of them the driver rejects.
        for i in which {
            let record = match self.load(&text(forms, &[i])) {
                Err(log) => Record::Refused(log),
                Ok(handle) => {
                    let record = self.one(handle, &forms[i], i);
                    if !self.broken {
                        // SAFETY: as above.
                        self.must("cuModuleUnload", unsafe { (self.api.unload)(handle) })?;
                    }
                    record
                }
            };
            put(i, record)?;
            if self.broken {
                return Ok(());
            }
        }
        Ok(())
    }

    fn load(&self, ptx: &str) -> Result<Handle, String> {
        let ptx = CString::new(ptx).map_err(|e| e.to_string())?;
        let mut log = vec![0u8; 16 << 10];
        let mut options = LOG_OPTIONS;
        let mut values = [log.as_mut_ptr().cast::<c_void>(), log.len() as *mut c_void];
        let mut handle = std::ptr::null_mut();
        // SAFETY: the text ends with a zero; the arrays have two elements each, and the second
        // value is the size of the log.
        let code = unsafe {
            (self.api.load)(
                &raw mut handle,
                ptx.as_ptr().cast(),
                2,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        self.must("cuModuleLoadDataEx", code).map_err(|e| {
            let end = log.iter().position(|b| *b == 0).unwrap_or(log.len());
            format!("{e}: {}", String::from_utf8_lossy(&log[..end]).trim())
        })?;
        Ok(handle)
    }

    fn one(&mut self, module: Handle, form: &Form, i: usize) -> Record {
        match self.execute(module, form, &kernel(i)) {
            Ok(bytes) => Record::Ran(bytes),
            Err(e) => {
                self.broken = true;
                Record::Failed(e)
            }
        }
    }

    fn execute(&self, module: Handle, form: &Form, name: &str) -> Result<Vec<u8>, String> {
        let (api, inputs) = (&self.api, form.inputs());
        let mut out = vec![0u8; form.output_bytes()];
        let name = CString::new(name).map_err(|e| e.to_string())?;
        let mut function = std::ptr::null_mut();
        let (mut input, mut output, mut data) = (self.input, self.output, PARAM_DATA);
        let mut params = [
            (&raw mut input).cast::<c_void>(),
            (&raw mut output).cast::<c_void>(),
            (&raw mut data).cast::<c_void>(),
        ];
        let [x, y, z] = form.block;
        let none = std::ptr::null_mut();
        // SAFETY: handles and addresses are valid; sizes are those of the buffers, and the memory
        // holds the largest form; the parameters are those that every kernel declares.
        unsafe {
            let found = (api.function)(&raw mut function, module, name.as_ptr());
            self.must("cuModuleGetFunction", found)?;
            self.must("upload", (api.upload)(self.input, inputs.as_ptr().cast(), inputs.len()))?;
            self.must("fill", (api.fill)(self.output, FILL, out.len()))?;
            let params = params.as_mut_ptr();
            let code = (api.launch)(
                function,
                form.grid,
                1,
                1,
                x,
                y,
                z,
                0,
                none,
                params,
                std::ptr::null_mut(),
            );
            self.must("cuLaunchKernel", code)?;
            let begin = Instant::now();
            loop {
                match (api.query)(none) {
                    NOT_READY if begin.elapsed() > LIMIT => {
                        return Err(format!("the kernel runs for more than {} s", LIMIT.as_secs()));
                    }
                    NOT_READY => std::thread::yield_now(),
                    code => break self.must("the kernel", code)?,
                }
            }
            let bytes = out.len();
            self.must("download", (api.download)(out.as_mut_ptr().cast(), self.output, bytes))?;
        }
        Ok(out)
    }
}
