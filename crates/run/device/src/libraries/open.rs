//! Opens a library with a handle, and converts its errors.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

use cudarc::driver::sys::CUstream;

use super::find::{is_file_of, remedy, sonames};
use crate::{DeviceError, Stream};
use warpgauge_model::{FailureCode, Library};

/// Maximum number of files that are tried.
const MAX_CANDIDATES: usize = 16;

/// The linker of device code, which cuSPARSE needs. It may be in a folder that the loader does not
/// search.
const LINKER: [&str; 2] = ["libnvJitLink.so.13", "libnvJitLink.so.12"];

/// An open shared object. It stays open for the rest of the process.
pub(super) type Loaded = &'static libloading::Library;

/// `cublasHandle_t`, `cusparseHandle_t` and descriptors: pointers to the library's private data.
pub(super) type Opaque = *mut c_void;

/// The differences between the libraries: names, status codes and functions.
pub(super) struct Kind<F> {
    pub(super) library: Library,
    /// Names of the functions that create a handle, set its stream, and return the name and the
    /// text of a status.
    pub(super) common: [&'static str; 4],
    /// Converts a status other than success to a stable error code.
    pub(super) code: fn(c_int) -> FailureCode,
    /// Looks up the functions that only this library has.
    pub(super) look_up: fn(Loaded) -> Result<F, String>,
}

/// A library with a handle in this thread's context. The handle queues work on one stream.
pub(super) struct Opened<F> {
    pub(super) functions: F,
    pub(super) handle: Opaque,
    pub(super) path: PathBuf,
    code: fn(c_int) -> FailureCode,
    status: [unsafe extern "C" fn(c_int) -> *const c_char; 2],
}

impl<F> Opened<F> {
    /// Opens the first usable file, or otherwise the library that the dynamic loader finds. The
    /// stream must outlive the result.
    ///
    /// # Errors
    /// Returns `no_library`, with the reason for each file, or an error of setting the stream.
    pub(super) fn new(
        kind: &Kind<F>,
        candidates: &[PathBuf],
        stream: &Stream,
    ) -> Result<Self, DeviceError> {
        let (opened, set_stream) =
            open(kind.library, candidates, |loaded, path| start(kind, loaded, path))?;
        // SAFETY: the handle was just created, and the caller guarantees that the stream lives.
        let status = unsafe { set_stream(opened.handle, stream.handle) };
        opened.check(&format!("give {} a stream", kind.library.title()), status)?;
        Ok(opened)
    }

    /// Converts a status that is not success to an error. The error's number is negative, because a
    /// status is not a driver's code. It does not describe the state of the context, which is
    /// checked after each job.
    pub(super) fn check(&self, operation: &str, status: c_int) -> Result<(), DeviceError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: both accept any number and return a static text.
        let [name, told] = self.status.map(|tell| text(unsafe { tell(status) }));
        Err(DeviceError {
            name: name.into(),
            number: -status.abs(),
            ..DeviceError::local(operation, (self.code)(status), told)
        })
    }
}

/// Type of `cublasSetStream_v2` and `cusparseSetStream`.
type SetStream = unsafe extern "C" fn(Opaque, CUstream) -> c_int;

/// Looks up the functions of a library, and creates a handle.
fn start<F>(kind: &Kind<F>, loaded: Loaded, path: &Path) -> Result<(Opened<F>, SetStream), String> {
    let [create, set_stream, name, text] = kind.common;
    // SAFETY: the types are those of cublas_api.h and cusparse.h.
    let (create, set_stream, status) = unsafe {
        let create: unsafe extern "C" fn(*mut Opaque) -> c_int = function(loaded, create)?;
        (create, function(loaded, set_stream)?, [function(loaded, name)?, function(loaded, text)?])
    };
    let (functions, code) = ((kind.look_up)(loaded)?, kind.code);
    let mut opened = Opened { functions, handle: null_mut(), path: path.to_owned(), code, status };
    // SAFETY: writes one pointer.
    let status = unsafe { create(&mut opened.handle) };
    opened.check("create a handle", status).map_err(|error| error.to_string())?;
    Ok((opened, set_stream))
}

/// Opens the first usable file, or otherwise the library that the dynamic loader finds. `start`
/// tries one file.
///
/// # Errors
/// Returns `no_library`, with the reason for each file.
fn open<T>(
    library: Library,
    candidates: &[PathBuf],
    start: impl Fn(Loaded, &Path) -> Result<T, String>,
) -> Result<T, DeviceError> {
    let files = candidates.iter().filter(|path| is_file_of(library, path)).cloned();
    let known = sonames(library).map(PathBuf::from);
    let mut refused = Vec::new();
    for path in files.take(MAX_CANDIDATES).chain(known) {
        match open_file(&path).and_then(|opened| start(opened, &path)) {
            Ok(started) => return Ok(started),
            Err(reason) => refused.push(format!("{}: {reason}", path.display())),
        }
    }
    let text = format!("{}; {}", refused.join("; "), remedy(library));
    Err(DeviceError::local(format!("open {}", library.title()), FailureCode::NoLibrary, text))
}

fn open_file(path: &Path) -> Result<Loaded, String> {
    for folder in path.canonicalize().iter().filter_map(|real| real.parent()) {
        for place in [folder.to_owned(), folder.join("../../nvjitlink/lib")] {
            let linker = LINKER.iter().map(|name| place.join(name)).find(|file| file.is_file());
            // SAFETY: NVIDIA's libraries do nothing of note when they are loaded.
            let opened = linker.and_then(|file| unsafe { libloading::Library::new(file) }.ok());
            // The linker stays open for the library that needs it.
            opened.map(Box::new).map(Box::leak);
        }
    }
    // SAFETY: as above.
    let opened = unsafe { libloading::Library::new(path) }.map_err(|error| {
        std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
    })?;
    // The library has threads and resources of a context, so it is never closed.
    Ok(Box::leak(Box::new(opened)))
}

/// Returns a function of an open library.
///
/// # Safety
/// `F` must be the function's type.
pub(super) unsafe fn function<F: Copy>(library: Loaded, name: &str) -> Result<F, String> {
    // SAFETY: the caller guarantees the type; the library stays open.
    let found = unsafe { library.get::<F>(name.as_bytes()) };
    found
        .map(|symbol| *symbol)
        .map_err(|_| format!("it has no {name}: CUDA 12 or later is required"))
}

/// Copies a text that belongs to a library.
fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: not null, and a NUL-terminated text that the library keeps.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_or_is_no_library_is_told_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("libcublas.so.12");
        std::fs::write(&file, b"not a library").unwrap();
        let other = folder.path().join("libcusparse.so.12");
        let start = |_: Loaded, _: &Path| -> Result<(), String> { Err("old".to_owned()) };
        let error = open(Library::Cublas, &[other.clone(), file.clone()], start).unwrap_err();
        assert_eq!(error.code, FailureCode::NoLibrary);
        let told = error.to_string();
        assert!(told.contains(&file.display().to_string()), "{told}");
        assert!(!told.contains(&other.display().to_string()), "{told}");
        assert!(told.contains("nvidia-cublas") && !error.is_sticky(), "{told}");
        // This is a library, but not cuSPARSE.
        let libc = open_file(Path::new("libc.so.6")).unwrap();
        // SAFETY: the function does not exist, and is not called.
        let missing = unsafe { function::<extern "C" fn()>(libc, "cusparseSpMV") };
        assert!(missing.unwrap_err().contains("no cusparseSpMV"));
    }
}
