//! Opening a library, and what its errors are here.

use std::ffi::{CStr, c_char, c_int};
use std::path::{Path, PathBuf};

use libloading::Library;

use super::VendorLibrary;
use crate::DeviceError;
use warpgauge_model::FailureCode;

/// Most files that are tried.
const MAX_CANDIDATES: usize = 16;

/// The linker of device code, which cuSPARSE needs and which may lie where the loader does not look.
const LINKER: [&str; 2] = ["libnvJitLink.so.13", "libnvJitLink.so.12"];

/// A library that is open. It stays so for the rest of the process.
pub(super) struct Opened<F> {
    pub(super) functions: F,
    /// What was opened.
    pub(super) path: PathBuf,
}

/// Opens the first file that works here, or else what the dynamic loader knows; `start` looks the functions
/// up and tries one.
///
/// # Errors
/// `no_library`: why each one cannot be used.
pub(super) fn open<T>(
    library: VendorLibrary,
    candidates: &[PathBuf],
    start: impl Fn(&'static Library, &Path) -> Result<T, String>,
) -> Result<T, DeviceError> {
    let sonames = library.sonames();
    let is_it = |path: &&PathBuf| {
        path.file_name().is_some_and(|name| sonames.iter().any(|wanted| name == *wanted))
    };
    let files = candidates.iter().filter(is_it).take(MAX_CANDIDATES).cloned();
    let mut refused = Vec::new();
    for path in files.chain(sonames.map(PathBuf::from)) {
        match open_file(&path).and_then(|opened| start(opened, &path)) {
            Ok(started) => return Ok(started),
            Err(reason) => refused.push(format!("{}: {reason}", path.display())),
        }
    }
    let text = format!("{}; {}", refused.join("; "), library.remedy());
    Err(DeviceError::local(format!("open {}", library.title()), FailureCode::NoLibrary, text))
}

fn open_file(path: &Path) -> Result<&'static Library, String> {
    for folder in path.canonicalize().iter().filter_map(|real| real.parent()) {
        for place in [folder.to_owned(), folder.join("../../nvjitlink/lib")] {
            let linker = LINKER.iter().map(|name| place.join(name)).find(|file| file.is_file());
            // SAFETY: NVIDIA's libraries do nothing of note when they are loaded.
            let opened = linker.and_then(|file| unsafe { Library::new(file) }.ok());
            // Stays, for the library that needs it.
            opened.map(Box::new).map(Box::leak);
        }
    }
    // SAFETY: as above.
    let opened = unsafe { Library::new(path) }.map_err(|error| {
        std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
    })?;
    // It has threads and a context's resources, and is never closed.
    Ok(Box::leak(Box::new(opened)))
}

/// A function of an open library.
///
/// # Safety
/// `F` must be the function's type.
pub(super) unsafe fn function<F: Copy>(library: &'static Library, name: &str) -> Result<F, String> {
    // SAFETY: the caller says so; the library stays open.
    let found = unsafe { library.get::<F>(name.as_bytes()) };
    found.map(|symbol| *symbol).map_err(|_| format!("it has no {name}: CUDA 12 or later is needed"))
}

/// A text of a library's own.
pub(super) fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: not null, and a NUL-terminated text that the library keeps.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// A status that is not success. The number is negative: a status is no code of the driver's, and says
/// nothing of the context, which is asked after each job.
pub(super) fn failed(
    operation: impl Into<String>,
    status: c_int,
    code: FailureCode,
    (name, text): (String, String),
) -> DeviceError {
    DeviceError {
        name: name.into(),
        number: -status.abs(),
        ..DeviceError::local(operation, code, text)
    }
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
        let start = |_: &'static Library, _: &Path| -> Result<(), String> { Err("old".to_owned()) };
        let error = open(VendorLibrary::CuBlas, &[other.clone(), file.clone()], start).unwrap_err();
        assert_eq!(error.code, FailureCode::NoLibrary);
        let told = error.to_string();
        assert!(told.contains(&file.display().to_string()), "{told}");
        assert!(!told.contains(&other.display().to_string()), "{told}");
        assert!(told.contains("nvidia-cublas") && !error.is_sticky(), "{told}");
        // A library, but not this one.
        let libc = open_file(Path::new("libc.so.6")).unwrap();
        // SAFETY: it is not there, and is not called.
        let missing = unsafe { function::<extern "C" fn()>(libc, "cusparseSpMV") };
        assert!(missing.unwrap_err().contains("no cusparseSpMV"));
    }
}
