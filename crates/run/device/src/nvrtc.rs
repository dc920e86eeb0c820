//! NVRTC: the run-time compilation library, opened from a path that the caller chose.
//!
//! cudarc finds its library by name through the loader. If the chosen file is already open, the
//! loader answers cudarc's request by SONAME with that file. Neither `LD_LIBRARY_PATH` nor the
//! machine's configuration then decides which version compiles.

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::{Path, PathBuf};

use cudarc::nvrtc::{result, sys};

/// An error of the library itself, not of the source that it compiles.
#[derive(Debug, thiserror::Error)]
pub enum NvrtcError {
    /// The file could not be opened as a shared library.
    #[error("cannot load {}: {reason}", path.display())]
    Load {
        path: PathBuf,
        /// Error message of the dynamic loader.
        reason: String,
    },
    /// The dynamic loader does not find the opened library by its name.
    #[error("{} is loaded, but the loader finds no libnvrtc by name", path.display())]
    NotServed {
        /// Path of the opened library.
        path: PathBuf,
    },
    /// A text contains a NUL byte, which the C interface cannot express.
    #[error("{what} contains a NUL byte")]
    Nul {
        /// Description of the text.
        what: &'static str,
    },
    /// A call failed for a reason other than the source.
    #[error("{call} failed: {reason}")]
    Call {
        /// Name of the library function that failed.
        call: &'static str,
        /// The library's name for the result code.
        reason: String,
    },
}

/// Keeps the chosen library open, and with it the library of built-ins, which NVRTC opens when it
/// first compiles.
#[derive(Debug)]
pub struct LoadedLibrary {
    path: PathBuf,
    _library: libloading::Library,
    _builtins: Option<libloading::Library>,
}

impl LoadedLibrary {
    /// Opens the library of this version at the absolute `path`, and its built-ins. The caller must
    /// do this before the sandbox closes the file system. Afterwards, NVRTC reads no file of the
    /// library.
    pub fn open(path: &Path, (major, minor): (u32, u32)) -> Result<Self, NvrtcError> {
        // SAFETY: loading runs the library's initialisers. The path comes from toolchain discovery
        // (the operator's installation), never from a request, and nothing else runs yet.
        let library = unsafe { libloading::Library::new(path) }
            .map_err(|e| NvrtcError::Load { path: path.into(), reason: error_chain(&e) })?;
        let real = path.canonicalize().unwrap_or_else(|_| path.into());
        let directories = [path.parent(), real.parent()].into_iter().flatten();
        let name = format!("libnvrtc-builtins.so.{major}.{minor}");
        let builtins = directories.map(|directory| directory.join(&name)).find(|p| p.is_file());
        // SAFETY: as above. If the file is missing or does not load, NVRTC itself reports it.
        let builtins = builtins.and_then(|p| unsafe { libloading::Library::new(p) }.ok());
        Ok(Self { path: path.into(), _library: library, _builtins: builtins })
    }

    /// Binds cudarc to the opened library. The caller must do this after the sandbox has closed the
    /// file system, so that no other library of a similar name can be found.
    pub fn bind(self) -> Result<Nvrtc, NvrtcError> {
        // SAFETY: only requests libraries by name from the loader, as cudarc itself would.
        if !unsafe { sys::is_culib_present() } {
            return Err(NvrtcError::NotServed { path: self.path });
        }
        Ok(Nvrtc { _library: self })
    }
}

/// Returns the messages of an error and of its sources, in one line.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}

/// NVRTC, bound to the opened library.
#[derive(Debug)]
pub struct Nvrtc {
    _library: LoadedLibrary,
}

/// Input of a compilation.
#[derive(Debug)]
pub struct NvrtcJob<'a> {
    pub source: &'a str,
    /// Name of the source in diagnostics.
    pub file_name: &'a str,
    /// Headers that are served from memory: name and content.
    pub headers: &'a [(&'a str, &'a str)],
    pub options: &'a [String],
    /// C++ names whose symbols are requested. Naming a template instance also instantiates it.
    pub name_expressions: &'a [String],
    /// Whether to produce machine code in addition to PTX.
    pub cubin: bool,
}

/// Result of a compilation.
#[derive(Debug)]
pub struct NvrtcOutcome {
    /// The complete log of the compiler.
    pub log: String,
    /// The code, or the fault if the source or an option caused the failure.
    pub built: Result<NvrtcCode, NvrtcFault>,
}

/// Result of a successful compilation: PTX, machine code and symbols.
#[derive(Debug)]
pub struct NvrtcCode {
    /// PTX text, without the terminating NUL.
    pub ptx: Vec<u8>,
    /// Machine code, if requested.
    pub cubin: Option<Vec<u8>>,
    /// Symbol of each name expression, in the order of the request.
    pub symbols: Vec<String>,
}

/// Cause of a failed compilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NvrtcFault {
    /// The source does not compile.
    Source,
    /// An option was rejected.
    Option,
    /// The compiler ran out of memory.
    Memory,
    /// The compiler failed internally on this source.
    Compiler,
}

impl Nvrtc {
    /// Returns the major and minor version.
    pub fn version(&self) -> Result<(u32, u32), NvrtcError> {
        let (mut major, mut minor): (c_int, c_int) = (0, 0);
        // SAFETY: both pointers are to live integers.
        let code = unsafe { sys::nvrtcVersion(&mut major, &mut minor) };
        check("nvrtcVersion", code)?;
        Ok((major.unsigned_abs(), minor.unsigned_abs()))
    }

    /// Returns the supported architectures, as the number in `sm_NN`, ascending.
    pub fn supported_archs(&self) -> Result<Vec<u32>, NvrtcError> {
        let mut count: c_int = 0;
        // SAFETY: the pointer is to a live integer.
        let code = unsafe { sys::nvrtcGetNumSupportedArchs(&mut count) };
        check("nvrtcGetNumSupportedArchs", code)?;
        let mut archs = vec![0 as c_int; usize::try_from(count).unwrap_or(0)];
        // SAFETY: the buffer has the length that the library just returned.
        let code = unsafe { sys::nvrtcGetSupportedArchs(archs.as_mut_ptr()) };
        check("nvrtcGetSupportedArchs", code)?;
        Ok(archs.into_iter().filter_map(|arch| u32::try_from(arch).ok()).collect())
    }

    /// Compiles a source. `Err` means that the library itself failed. If the source does not
    /// compile, the outcome contains the reason.
    pub fn compile(&self, job: &NvrtcJob<'_>) -> Result<NvrtcOutcome, NvrtcError> {
        let program = Program::create(job)?;
        let names = c_strings("a name expression", job.name_expressions)?;
        for name in &names {
            // SAFETY: the program is live and the name is NUL-terminated.
            let code = unsafe { sys::nvrtcAddNameExpression(program.handle, name.as_ptr()) };
            check("nvrtcAddNameExpression", code)?;
        }
        let options = c_strings("a compiler option", job.options)?;
        let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).unwrap_or(c_int::MAX);
        // SAFETY: `pointers` holds `count` NUL-terminated texts that outlive the call.
        let code = unsafe { sys::nvrtcCompileProgram(program.handle, count, pointers.as_ptr()) };
        let log = program.log()?;
        let fault = match code {
            sys::nvrtcResult::NVRTC_SUCCESS => None,
            sys::nvrtcResult::NVRTC_ERROR_COMPILATION
            | sys::nvrtcResult::NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID => Some(NvrtcFault::Source),
            sys::nvrtcResult::NVRTC_ERROR_INVALID_OPTION => Some(NvrtcFault::Option),
            sys::nvrtcResult::NVRTC_ERROR_OUT_OF_MEMORY => Some(NvrtcFault::Memory),
            // The library can load and compile other sources, so this source exceeds its abilities.
            sys::nvrtcResult::NVRTC_ERROR_INTERNAL_ERROR
            | sys::nvrtcResult::NVRTC_ERROR_BUILTIN_OPERATION_FAILURE => Some(NvrtcFault::Compiler),
            other => {
                let reason = format!("{other:?}; log: {log}");
                return Err(NvrtcError::Call { call: "nvrtcCompileProgram", reason });
            }
        };
        if let Some(fault) = fault {
            return Ok(NvrtcOutcome { log, built: Err(fault) });
        }
        let symbols = names.iter().map(|name| program.symbol(name)).collect::<Result<_, _>>()?;
        let ptx = program.ptx()?;
        let cubin = if job.cubin { Some(program.cubin()?) } else { None };
        Ok(NvrtcOutcome { log, built: Ok(NvrtcCode { ptx, cubin, symbols }) })
    }
}

fn c_strings(what: &'static str, texts: &[String]) -> Result<Vec<CString>, NvrtcError> {
    texts
        .iter()
        .map(|text| CString::new(text.as_str()).map_err(|_| NvrtcError::Nul { what }))
        .collect()
}

fn check(call: &'static str, code: sys::nvrtcResult) -> Result<(), NvrtcError> {
    if code == sys::nvrtcResult::NVRTC_SUCCESS {
        return Ok(());
    }
    Err(NvrtcError::Call { call, reason: format!("{code:?}") })
}

fn call_error(call: &'static str) -> impl Fn(result::NvrtcError) -> NvrtcError {
    move |e| NvrtcError::Call { call, reason: format!("{:?}", e.0) }
}

/// A handle of a program, with the texts to which it refers.
struct Program {
    handle: sys::nvrtcProgram,
    _texts: Vec<CString>,
}

impl Program {
    fn create(job: &NvrtcJob<'_>) -> Result<Self, NvrtcError> {
        let text = |what, s: &str| CString::new(s).map_err(|_| NvrtcError::Nul { what });
        let source = text("the source", job.source)?;
        let name = text("the file name", job.file_name)?;
        let mut contents = Vec::with_capacity(job.headers.len());
        let mut names = Vec::with_capacity(job.headers.len());
        for (header, content) in job.headers {
            names.push(text("a header name", header)?);
            contents.push(text("a header", content)?);
        }
        let content_ptrs: Vec<*const c_char> = contents.iter().map(|c| c.as_ptr()).collect();
        let name_ptrs: Vec<*const c_char> = names.iter().map(|n| n.as_ptr()).collect();
        let count = c_int::try_from(name_ptrs.len()).unwrap_or(c_int::MAX);
        let mut handle: sys::nvrtcProgram = std::ptr::null_mut();
        // SAFETY: every pointer is to NUL-terminated text kept in `_texts` for the program's life
        // (moving a CString does not move its heap buffer), and both arrays hold `count` entries.
        let code = unsafe {
            sys::nvrtcCreateProgram(
                &mut handle,
                source.as_ptr(),
                name.as_ptr(),
                count,
                content_ptrs.as_ptr(),
                name_ptrs.as_ptr(),
            )
        };
        check("nvrtcCreateProgram", code)?;
        let texts = [source, name].into_iter().chain(contents).chain(names).collect();
        Ok(Self { handle, _texts: texts })
    }

    fn log(&self) -> Result<String, NvrtcError> {
        // SAFETY: the program is live.
        let bytes = unsafe { result::get_program_log(self.handle) }
            .map_err(call_error("nvrtcGetProgramLog"))?;
        let bytes: Vec<u8> = bytes.into_iter().map(|c| c as u8).take_while(|&c| c != 0).collect();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn ptx(&self) -> Result<Vec<u8>, NvrtcError> {
        // SAFETY: the program is live and compiled.
        let bytes = unsafe { result::get_ptx(self.handle) }.map_err(call_error("nvrtcGetPTX"))?;
        Ok(bytes.into_iter().map(|c| c as u8).take_while(|&c| c != 0).collect())
    }

    fn cubin(&self) -> Result<Vec<u8>, NvrtcError> {
        let mut size = 0usize;
        // SAFETY: the program is live and compiled; the pointer is to a live integer.
        let code = unsafe { sys::nvrtcGetCUBINSize(self.handle, &mut size) };
        check("nvrtcGetCUBINSize", code)?;
        let mut cubin = vec![0u8; size];
        // SAFETY: the buffer has the size that the library just returned.
        let code = unsafe { sys::nvrtcGetCUBIN(self.handle, cubin.as_mut_ptr().cast()) };
        check("nvrtcGetCUBIN", code)?;
        Ok(cubin)
    }

    fn symbol(&self, name: &CStr) -> Result<String, NvrtcError> {
        let mut symbol: *const c_char = std::ptr::null();
        // SAFETY: the name was added to this live, compiled program.
        let code = unsafe { sys::nvrtcGetLoweredName(self.handle, name.as_ptr(), &mut symbol) };
        check("nvrtcGetLoweredName", code)?;
        // SAFETY: on success the library returned a NUL-terminated text that lives as long as the
        // program; it is copied here.
        let symbol = unsafe { CStr::from_ptr(symbol) };
        Ok(symbol.to_string_lossy().into_owned())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the handle is live and not used after this.
        let destroyed = unsafe { result::destroy_program(self.handle) };
        debug_assert!(destroyed.is_ok(), "nvrtcDestroyProgram: {destroyed:?}");
    }
}
