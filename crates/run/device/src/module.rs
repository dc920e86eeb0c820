//! Modules, with their kernels and variables.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::rc::Rc;

use cudarc::driver::sys::{CUdeviceptr, CUfunction, CUfunction_attribute as Attribute, CUmodule};

use super::DeviceError;
use super::context::Context;
use super::image::check_image;
use super::snapshot::VariableRange;
use super::stream::Stream;
use warpgauge_model::{FailureCode, FunctionFacts, Image, ImageFormat};

/// Maximum number of bytes that are kept of the log of the driver's assembler.
const JIT_LOG_BYTES: usize = 16 << 10;

// Options of cuModuleLoadDataEx (`CUjit_option`).
const JIT_INFO_LOG: c_int = 3;
const JIT_INFO_LOG_BYTES: c_int = 4;
const JIT_ERROR_LOG: c_int = 5;
const JIT_ERROR_LOG_BYTES: c_int = 6;

/// Attribute of an address that says whether it is managed memory (`CUpointer_attribute`).
const IS_MANAGED: c_int = 8;

/// Maximum dynamic shared memory that needs no opt-in, bytes.
const SHARED_WITHOUT_OPTIN: u32 = 48 << 10;

/// A loaded image. Clones share it. It is unloaded when the last clone and the last function are
/// dropped.
#[derive(Clone)]
pub struct Module {
    inner: Rc<Loaded>,
}

struct Loaded {
    handle: CUmodule,
    context: Context,
    log: String,
}

impl Module {
    /// Loads an image.
    ///
    /// # Errors
    /// Returns the driver's error, with the assembler's log for PTX.
    pub fn load(context: &Context, image: &Image) -> Result<Self, DeviceError> {
        check_image(image)?;
        let mut bytes;
        let start = match image.format {
            ImageFormat::Ptx => {
                bytes = image.bytes.to_vec();
                bytes.push(0);
                bytes.as_ptr()
            }
            ImageFormat::Cubin | ImageFormat::Fatbin | ImageFormat::Library => image.bytes.as_ptr(),
        };
        let (mut info, mut errors) = (vec![0u8; JIT_LOG_BYTES], vec![0u8; JIT_LOG_BYTES]);
        let mut options = [JIT_INFO_LOG, JIT_INFO_LOG_BYTES, JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES];
        // Sizes are passed as values in pointer-sized slots. The buffer has one byte more, which
        // keeps a final NUL.
        let size = (JIT_LOG_BYTES - 1) as *mut c_void;
        let mut values: [*mut c_void; 4] =
            [info.as_mut_ptr().cast(), size, errors.as_mut_ptr().cast(), size];
        let mut handle: CUmodule = std::ptr::null_mut();
        // SAFETY: the image was checked to hold what its headers claim (PTX ends with a NUL); the
        // logs outlive the call, and their sizes are given.
        let result = unsafe {
            (context.api().module_load)(
                &mut handle,
                start.cast(),
                options.len() as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        context.api().check(result, "load the module").map_err(|mut error| {
            let log = text(&errors);
            if !log.is_empty() {
                error.detail = format!("\n{log}");
            }
            error
        })?;
        Ok(Self { inner: Rc::new(Loaded { handle, context: context.clone(), log: text(&info) }) })
    }

    /// Returns the log of the driver's assembler.
    pub fn log(&self) -> &str {
        &self.inner.log
    }

    /// Finds a kernel.
    ///
    /// # Errors
    /// Returns `not_found`, or the driver's error.
    pub fn function(&self, symbol: &str) -> Result<KernelFunction, DeviceError> {
        let operation = format!("find kernel {symbol}");
        let name = c_name(symbol, &operation)?;
        let mut handle: CUfunction = std::ptr::null_mut();
        // SAFETY: the module is loaded; the name is NUL-terminated.
        let result = unsafe {
            (self.inner.context.api().module_function)(
                &mut handle,
                self.inner.handle,
                name.as_ptr(),
            )
        };
        self.inner.context.api().check(result, &operation)?;
        Ok(KernelFunction { handle, symbol: symbol.to_owned(), module: self.clone() })
    }

    pub(super) fn handle(&self) -> CUmodule {
        self.inner.handle
    }

    /// Returns the address range of a variable, or `None` if the module has no variable with this
    /// name.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn variable(&self, symbol: &str) -> Result<Option<VariableRange>, DeviceError> {
        let operation = format!("find variable {symbol}");
        let name = c_name(symbol, &operation)?;
        let (mut address, mut bytes): (CUdeviceptr, usize) = (0, 0);
        // SAFETY: the module is loaded; writes an address and a size.
        let result = unsafe {
            let start: *const c_char = name.as_ptr();
            (self.inner.context.api().module_global)(
                &mut address,
                &mut bytes,
                self.inner.handle,
                start,
            )
        };
        match self.inner.context.api().check(result, &operation) {
            Err(error) if error.code == FailureCode::NotFound => Ok(None),
            other => other.map(|()| Some(VariableRange { address, bytes: bytes as u64 })),
        }
    }

    /// Returns whether a variable is managed memory, which the host can access too. The driver
    /// decides this, regardless of the image's declarations. Returns `true` if the driver cannot be
    /// queried.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn is_managed(&self, variable: VariableRange) -> Result<bool, DeviceError> {
        let api = self.inner.context.api();
        let Some(attribute) = api.pointer_attribute else { return Ok(true) };
        let mut managed: c_uint = 0;
        // SAFETY: writes one `unsigned int`; any address is accepted.
        let result = unsafe { attribute((&raw mut managed).cast(), IS_MANAGED, variable.address) };
        api.check(result, "check whether a variable is managed memory")?;
        Ok(managed != 0)
    }

    /// Queues zeroing a variable of this module.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn zero(&self, variable: VariableRange, stream: &Stream) -> Result<(), DeviceError> {
        let VariableRange { address, bytes } = variable;
        if bytes == 0 {
            return Ok(());
        }
        let api = self.inner.context.api();
        // SAFETY: memory of a loaded module; the driver refuses an invalid range.
        let result = unsafe { (api.fill)(address, 0, bytes as usize, stream.handle) };
        api.check(result, "scrub a variable")
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: loaded by us, unloaded once; functions hold the module and are gone.
        let _ = unsafe { (self.context.api().module_unload)(self.handle) };
    }
}

/// A kernel of a loaded module.
#[derive(Clone)]
pub struct KernelFunction {
    pub(super) handle: CUfunction,
    symbol: String,
    module: Module,
}

impl KernelFunction {
    pub fn symbol(&self) -> &str {
        &self.symbol
    }

    pub(super) fn context(&self) -> &Context {
        &self.module.inner.context
    }

    /// Returns the kernel's resources, and the number of blocks of this shape that fit on one
    /// multiprocessor at the same time.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn facts(
        &self,
        block_threads: u32,
        shared_bytes: u32,
    ) -> Result<FunctionFacts, DeviceError> {
        Ok(FunctionFacts {
            registers: self.attribute(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            static_shared_bytes: self.attribute(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            local_bytes: self.attribute(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            const_bytes: self.attribute(Attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
            max_threads_per_block: self
                .attribute(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            max_active_blocks: self.max_active_blocks(block_threads, shared_bytes)?,
        })
    }

    /// Returns the number of blocks of this shape that fit on one multiprocessor at the same time.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn max_active_blocks(
        &self,
        block_threads: u32,
        shared_bytes: u32,
    ) -> Result<u32, DeviceError> {
        let mut blocks = 0;
        let threads = c_int::try_from(block_threads).unwrap_or(c_int::MAX);
        // SAFETY: the function is alive; writes one int.
        let result = unsafe {
            (self.context().api().occupancy)(
                &mut blocks,
                self.handle,
                threads,
                shared_bytes as usize,
            )
        };
        self.context().api().check(result, &format!("query the occupancy of {}", self.symbol))?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    /// Allows launches with this much dynamic shared memory. Above 48 KiB the driver requires an
    /// opt-in.
    ///
    /// # Errors
    /// Fails if the size exceeds the device's limit. The error contains the size.
    pub fn allow_shared(&self, bytes: u32) -> Result<(), DeviceError> {
        if bytes <= SHARED_WITHOUT_OPTIN {
            return Ok(());
        }
        self.set_attribute(Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes)
            .map_err(|mut error| {
                error.operation = format!(
                    "give {} {bytes} bytes of dynamic shared memory per block",
                    self.symbol
                );
                error
            })
    }

    /// Allows clusters of more than 8 blocks.
    ///
    /// # Errors
    /// Fails if the device does not support clusters.
    pub fn allow_large_clusters(&self) -> Result<(), DeviceError> {
        self.set_attribute(Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)
    }

    fn attribute(&self, which: Attribute) -> Result<u32, DeviceError> {
        let mut value = 0;
        // SAFETY: the function is alive; writes one int.
        let result = unsafe {
            (self.context().api().function_attribute)(&mut value, which as c_int, self.handle)
        };
        self.context().api().check(result, &format!("query {}: {which:?}", self.symbol))?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    fn set_attribute(&self, which: Attribute, value: u32) -> Result<(), DeviceError> {
        let value = c_int::try_from(value).unwrap_or(c_int::MAX);
        // SAFETY: the function is alive.
        let result = unsafe {
            (self.context().api().function_set_attribute)(self.handle, which as c_int, value)
        };
        self.context().api().check(result, &format!("set {which:?} of {}", self.symbol))
    }
}

fn c_name(symbol: &str, operation: &str) -> Result<CString, DeviceError> {
    let nul =
        |_| DeviceError::local(operation, FailureCode::NotFound, "the name contains a NUL byte");
    CString::new(symbol).map_err(nul)
}

/// Returns the text before the first NUL byte.
fn text(buffer: &[u8]) -> String {
    let end = buffer.iter().position(|&byte| byte == 0).unwrap_or(buffer.len());
    String::from_utf8_lossy(&buffer[..end]).trim().to_owned()
}
