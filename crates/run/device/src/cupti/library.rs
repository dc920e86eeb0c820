//! Opens the CUPTI library.

use std::ffi::{CStr, c_char, c_int};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::Library;

use super::abi::{ChipName, DeviceSupported, Functions, Initialize, RANGE_PROFILING, SUPPORTED};
use super::error::CuptiError;
use warpgauge_model::Cause;

/// Names under which the dynamic loader finds CUPTI, newest first.
const SONAMES: [&str; 2] = ["libcupti.so.13", "libcupti.so.12"];

/// Libraries that CUPTI opens by name without a path. They are in CUPTI's folder, where the loader
/// does not search.
const COMPANIONS: [&str; 2] = ["libnvperf_target.so", "libnvperf_host.so"];

/// Maximum number of libraries that are tried.
const MAX_CANDIDATES: usize = 16;

/// CUPTI, opened and initialised. It stays open for the rest of the process.
#[derive(Clone, Copy)]
pub struct Cupti {
    functions: &'static Functions,
    version: u32,
}

struct Opened {
    functions: Functions,
    path: PathBuf,
    // The functions are in these libraries.
    _library: Library,
    _companions: Vec<Library>,
}

static OPENED: OnceLock<&'static Opened> = OnceLock::new();

impl Cupti {
    /// Opens the first usable library of `candidates`, or otherwise the library that the loader
    /// finds, and initialises it.
    ///
    /// # Errors
    /// Returns the reason why each of the libraries is unusable.
    pub fn open(candidates: &[PathBuf]) -> Result<Self, CuptiError> {
        Self::open_with(candidates, Self::initialise)
    }

    /// Opens CUPTI only for planning, which some versions support without a driver. Accepts a
    /// library that cannot be initialised; calls that need an initialised library then fail.
    ///
    /// # Errors
    /// Fails if no library can be opened.
    pub fn open_for_planning(candidates: &[PathBuf]) -> Result<Self, CuptiError> {
        Self::open_with(candidates, |opened| {
            let bare = Self { functions: &opened.functions, version: 0 };
            Ok(Self::initialise(opened).unwrap_or(bare))
        })
    }

    fn open_with(
        candidates: &[PathBuf],
        initialise: impl Fn(&'static Opened) -> Result<Self, CuptiError>,
    ) -> Result<Self, CuptiError> {
        if let Some(opened) = OPENED.get() {
            return initialise(opened);
        }
        let named = SONAMES.iter().map(PathBuf::from);
        let (mut refused, mut cause) = (Vec::new(), Cause::NoTool);
        for path in candidates.iter().take(MAX_CANDIDATES).cloned().chain(named) {
            let opened = match open(&path) {
                Ok(opened) => opened,
                Err(reason) => {
                    refused.push(format!("{}: {reason}", path.display()));
                    continue;
                }
            };
            // A library whose initialisation failed is not closed, because it may have started
            // threads.
            let opened: &'static Opened = Box::leak(Box::new(opened));
            match initialise(opened) {
                Ok(cupti) => {
                    let _ = OPENED.set(opened);
                    return Ok(cupti);
                }
                Err(error) => {
                    cause = error.cause;
                    refused.push(format!("{}: {error}", path.display()));
                }
            }
        }
        Err(CuptiError::local("open CUPTI", cause, refused.join("; ")))
    }

    fn initialise(opened: &'static Opened) -> Result<Self, CuptiError> {
        let mut cupti = Self { functions: &opened.functions, version: 0 };
        let mut params = Initialize::new();
        cupti.call("initialise CUPTI", opened.functions.initialize, &mut params)?;
        // SAFETY: writes one integer.
        let code = unsafe { (opened.functions.version)(&mut cupti.version) };
        cupti.check("query CUPTI's version", code)?;
        Ok(cupti)
    }

    /// Returns the library's name and its version. If the version is not part of the file name,
    /// uses the version of the interface, which increases with each release.
    pub fn name(&self) -> String {
        match OPENED.get().map(|opened| opened.path.as_path()).and_then(toolkit_version) {
            Some(version) => format!("CUPTI {version}"),
            None => format!("CUPTI (API {})", self.version),
        }
    }

    /// Checks that this process can read the counters of a device.
    ///
    /// # Errors
    /// Returns the reason if it cannot.
    pub fn check_device(&self, ordinal: u32) -> Result<(), CuptiError> {
        const OPERATION: &str = "check whether counters of the device can be read";
        let mut params = DeviceSupported::new();
        params.device = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
        params.api = RANGE_PROFILING;
        self.call(OPERATION, self.functions.device_supported, &mut params)?;
        if params.supported == SUPPORTED {
            return Ok(());
        }
        let modes = [
            (params.vgpu, "it is a virtual GPU without access to counters"),
            (params.confidential_compute, "confidential computing is on"),
            (params.sli, "it is part of an SLI group"),
            (params.wsl, "Windows Subsystem for Linux does not allow it"),
        ];
        let mode = modes.iter().find(|(level, _)| *level != SUPPORTED);
        let (cause, text) = match mode {
            Some((_, text)) => (Cause::UnsupportedMode, *text),
            None if params.architecture != SUPPORTED => {
                (Cause::UnsupportedDevice, "this CUPTI has no counters for its architecture")
            }
            None => (Cause::UnsupportedDevice, "CUPTI does not support it"),
        };
        Err(CuptiError::local(OPERATION, cause, text))
    }

    /// Returns CUPTI's name for the chip of a device, e.g. `GH100`.
    ///
    /// # Errors
    /// Fails if CUPTI has no name for the chip.
    pub fn chip(&self, ordinal: u32) -> Result<String, CuptiError> {
        const OPERATION: &str = "query the chip's name";
        let mut params = ChipName::new();
        params.device = ordinal as usize;
        self.call(OPERATION, self.functions.chip_name, &mut params)?;
        if params.name.is_null() {
            return Err(CuptiError::local(
                OPERATION,
                Cause::UnsupportedDevice,
                "the chip has no name in CUPTI",
            ));
        }
        // SAFETY: not null, and a NUL-terminated text that the library owns.
        let name = unsafe { CStr::from_ptr(params.name) };
        Ok(name.to_string_lossy().into_owned())
    }

    pub(super) fn functions(&self) -> &'static Functions {
        self.functions
    }

    /// Calls a function of CUPTI with its parameter structure.
    pub(super) fn call<T>(
        &self,
        operation: &str,
        function: unsafe extern "C" fn(*mut T) -> c_int,
        params: &mut T,
    ) -> Result<(), CuptiError> {
        // SAFETY: `T` is the structure of this function ([`Functions`] pairs them), and contains
        // its own size; the callers in this module guarantee that the data that its pointers refer
        // to is alive.
        let code = unsafe { function(params) };
        self.check(operation, code)
    }

    fn check(&self, operation: &str, code: c_int) -> Result<(), CuptiError> {
        if code == 0 {
            return Ok(());
        }
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: takes any number and writes a pointer to a static text, or fails.
        let told = unsafe { (self.functions.result_string)(code, &mut text) };
        let name = if told == 0 && !text.is_null() {
            // SAFETY: not null, and a NUL-terminated text that the library owns.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        } else {
            "an error without a name in this CUPTI".to_owned()
        };
        Err(CuptiError::of_code(operation, code, &name))
    }
}

fn open(path: &Path) -> Result<Opened, String> {
    let real = path.canonicalize().ok();
    // The companions are in the folder of the file or of the link to it.
    let folders: Vec<&Path> = [Some(path), real.as_deref()]
        .into_iter()
        .flatten()
        .filter(|file| file.is_absolute())
        .filter_map(Path::parent)
        .collect();
    let beside = |name: &&str| {
        folders.iter().find_map(|folder| {
            // SAFETY: NVIDIA's libraries do nothing of note when they are loaded.
            unsafe { Library::new(folder.join(name)) }.ok()
        })
    };
    let companions = COMPANIONS.iter().filter_map(beside).collect();
    // SAFETY: as above.
    let library = unsafe { Library::new(path) }.map_err(|error| error.to_string())?;
    // SAFETY: it is CUPTI by its name, and is never closed: it goes into a static.
    let functions = unsafe { Functions::look_up(&library) }
        .map_err(|symbol| format!("it has no {symbol}: CUPTI 12.6 or later is needed"))?;
    Ok(Opened { functions, path: path.to_owned(), _library: library, _companions: companions })
}

/// Returns the version in the real file name of a library: `libcupti.so.2025.3.1` → `2025.3.1`.
fn toolkit_version(path: &Path) -> Option<String> {
    let real = std::fs::canonicalize(path).ok()?;
    let name = real.file_name()?.to_str()?;
    let version = name.strip_prefix("libcupti.so.")?;
    let plain = |c: char| c.is_ascii_digit() || c == '.';
    version.chars().all(plain).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_from_the_real_name() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("libcupti.so.2025.3.1");
        std::fs::write(&real, b"").unwrap();
        let link = folder.path().join("libcupti.so.13");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(toolkit_version(&link).as_deref(), Some("2025.3.1"));
        assert_eq!(toolkit_version(&folder.path().join("libcupti.so")), None);
    }

    #[test]
    fn what_is_not_cupti_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libcupti.so.12");
        std::fs::write(&path, b"not a library").unwrap();
        assert!(open(&path).is_err());
        // This is a library, but not CUPTI.
        let refused = open(Path::new("libc.so.6")).err().unwrap();
        assert!(refused.contains("cuptiProfilerInitialize"), "{refused}");
    }
}
