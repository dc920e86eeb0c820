//! Chooses and opens the driver.

use std::io::Write;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cudarc::driver::sys;
use libloading::Library;
use tempfile::TempPath;

use super::api::Api;
use super::context::Driver;
use super::{DeviceError, EmulatorControl};
use crate::elf::{SonameError, shorten_soname};
use warpgauge_model::DeviceKind;

/// File name of the emulator's build output.
pub const EMULATOR_FILE: &str = "libwarpgauge_emulator.so";

/// Environment variable that names the emulator's library.
pub const EMULATOR_VARIABLE: &str = "WARPGAUGE_EMULATOR";

/// File name of NVIDIA's driver. This name never refers to a stub of the toolkit.
const DRIVER_FILE: &str = "libcuda.so.1";

/// File name that cudarc tries first.
const FIRST_CANDIDATE: &str = "libcuda.so";

/// The driver of a process. It cannot be changed later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriverChoice {
    /// NVIDIA's CUDA driver, `libcuda.so.1`.
    Cuda,
    /// The emulator, whose library is this file.
    Emulator(PathBuf),
}

/// Reason why no driver could be opened.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The host has no NVIDIA driver.
    #[error("no CUDA driver: {DRIVER_FILE} cannot be opened ({reason})")]
    NoDriver {
        /// Error message of the dynamic loader.
        reason: String,
    },
    /// The emulator cannot be opened.
    #[error("cannot open the emulator {}: {reason}", path.display())]
    Emulator {
        /// Path of the emulator's library.
        path: PathBuf,
        reason: String,
    },
    /// The file is not the emulator's.
    #[error(
        "{} is not the library of the emulator ({source}); name {EMULATOR_FILE} in {EMULATOR_VARIABLE}, or unset that",
        path.display()
    )]
    Rename {
        path: PathBuf,
        #[source]
        source: SonameError,
    },
    /// Another library was found under the driver's name.
    #[error("opened {wanted}, but {FIRST_CANDIDATE} on this host is another library")]
    Mismatch {
        /// File name of the requested driver.
        wanted: String,
    },
    /// The driver lacks a function.
    #[error("the CUDA driver has no {symbol}: warpgauge needs a driver of CUDA 12.0 or later")]
    MissingSymbol {
        /// Name of the missing function.
        symbol: &'static str,
    },
    /// The driver cannot be initialised.
    #[error(transparent)]
    Driver(#[from] DeviceError),
    /// This process has already opened another driver.
    #[error("this process already opened another driver")]
    AlreadyChosen,
}

/// A driver, opened and initialised.
pub struct LoadedDriver {
    pub driver: Driver,
    /// The emulator's functions beyond the driver's interface. `None` for NVIDIA's driver.
    pub emulator: Option<EmulatorControl>,
}

struct Opened {
    choice: DriverChoice,
    // Keeps the object open, so that cudarc's own `dlopen` finds it.
    _library: Library,
}

static OPENED: OnceLock<Opened> = OnceLock::new();
static API: OnceLock<Api> = OnceLock::new();

/// Finds the emulator's library. Searches in this order: `explicit`, [`EMULATOR_VARIABLE`], the
/// executable's folder, its `../lib/warpgauge`. The first two paths are returned even if no such
/// file exists, so that a mistyped path is an error and does not select another emulator.
pub fn find_emulator(explicit: Option<&Path>) -> Option<PathBuf> {
    if let Some(path) = explicit {
        return Some(absolute(path));
    }
    if let Some(path) = std::env::var_os(EMULATOR_VARIABLE).filter(|path| !path.is_empty()) {
        return Some(absolute(Path::new(&path)));
    }
    let program = std::env::current_exe().ok()?;
    let folder = program.parent()?;
    let places = [folder.join(EMULATOR_FILE), folder.join("../lib/warpgauge").join(EMULATOR_FILE)];
    places.into_iter().find(|path| path.is_file()).map(|path| absolute(&path))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Opens and initialises the driver. During the call, `run_dir` contains a renamed copy of the
/// emulator.
///
/// # Errors
/// Fails if the driver cannot be found, opened or initialised.
pub fn load(choice: &DriverChoice, run_dir: &Path) -> Result<LoadedDriver, LoadError> {
    match OPENED.get() {
        Some(opened) if opened.choice == *choice => {}
        Some(_) => return Err(LoadError::AlreadyChosen),
        None => {
            let library = open(choice, run_dir)?;
            let opened = Opened { choice: choice.clone(), _library: library };
            OPENED.set(opened).map_err(|_| LoadError::AlreadyChosen)?;
        }
    }
    let library = cudarc_library(choice)?;
    // SAFETY: cudarc keeps the library in a static.
    let emulator = unsafe { EmulatorControl::look_up(library) };
    let kind = match choice {
        DriverChoice::Cuda => DeviceKind::Cuda,
        DriverChoice::Emulator(_) => DeviceKind::Emulator,
    };
    if emulator.is_some() != (kind == DeviceKind::Emulator) {
        let wanted = match choice {
            DriverChoice::Cuda => DRIVER_FILE.to_owned(),
            DriverChoice::Emulator(path) => path.display().to_string(),
        };
        return Err(LoadError::Mismatch { wanted });
    }
    if API.get().is_none() {
        // SAFETY: it is a CUDA driver library or the emulator, and stays open.
        let api = unsafe { Api::look_up(library) }
            .map_err(|symbol| LoadError::MissingSymbol { symbol })?;
        let _ = API.set(api);
    }
    let api = API.get().ok_or(LoadError::AlreadyChosen)?;
    Ok(LoadedDriver { driver: Driver::initialise(api, kind)?, emulator })
}

/// Opens the library before cudarc does, so that cudarc's `dlopen` finds this library.
fn open(choice: &DriverChoice, run_dir: &Path) -> Result<Library, LoadError> {
    match choice {
        DriverChoice::Cuda => {
            open_library(Path::new(DRIVER_FILE)).map_err(|reason| LoadError::NoDriver { reason })
        }
        DriverChoice::Emulator(path) => {
            let fail = |reason| LoadError::Emulator { path: path.clone(), reason };
            if !path.is_file() {
                let text = "no such file; build it with `cargo build -p warpgauge-emulator`, or \
                            name it in WARPGAUGE_EMULATOR";
                return Err(fail(text.to_owned()));
            }
            // The library stays mapped. The file is removed after the attempt to open it.
            let renamed = renamed_copy(path, run_dir)?;
            open_library(&renamed).map_err(fail)
        }
    }
}

/// Writes a copy of the emulator, whose SONAME is shortened to `libcuda.so`, to `run_dir`.
fn renamed_copy(path: &Path, run_dir: &Path) -> Result<TempPath, LoadError> {
    let fail = |error: std::io::Error| LoadError::Emulator {
        path: path.to_owned(),
        reason: format!("cannot copy it to {}: {error}", run_dir.display()),
    };
    let bytes = std::fs::read(path).map_err(fail)?;
    let renamed = shorten_soname(&bytes, FIRST_CANDIDATE)
        .map_err(|source| LoadError::Rename { path: path.to_owned(), source })?;
    // Each process needs a separate file, because another process may be running from a shared one.
    let target = tempfile::Builder::new().prefix("emulator-").suffix(".so").tempfile_in(run_dir);
    let mut target = target.map_err(fail)?;
    target.write_all(&renamed).map_err(fail)?;
    Ok(target.into_temp_path())
}

fn open_library(path: &Path) -> Result<Library, String> {
    // SAFETY: opening runs the library's initialisers. The path is the driver's well-known name or
    // a file that the operator named or installed beside this program.
    unsafe { Library::new(path) }.map_err(|error| {
        // The error's own text is only "dlopen failed"; its source has the system's message.
        std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
    })
}

/// Returns the library that cudarc found. Checks first whether there is one, and catches panics,
/// because cudarc panics if there is none.
fn cudarc_library(choice: &DriverChoice) -> Result<&'static Library, LoadError> {
    // SAFETY: opens candidates by name, as `open_library` does.
    let present = || unsafe { sys::is_culib_present() };
    // SAFETY: as above.
    let library = catch_unwind(|| present().then(|| unsafe { sys::culib() }));
    match library {
        Ok(Some(library)) => Ok(library),
        _ => Err(LoadError::NoDriver { reason: format!("cudarc finds no library for {choice:?}") }),
    }
}
