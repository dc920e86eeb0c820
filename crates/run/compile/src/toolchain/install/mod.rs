//! Installs a toolchain from the Python package index into the program's cache.
//!
//! NVRTC, nvcc and Triton are published as wheels. `pip install --target` unpacks them into a
//! directory beside the final one. Then unneeded files are removed, the part is tested, and the
//! directory is renamed. A part is thus complete or absent. An interrupted installation leaves only
//! a temporary directory, which the next installation removes.

mod cuda;
mod error;
mod part;
mod pip;
mod strip;
mod torch;
mod triton;

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::discover::ToolchainSearch;
use super::types::Toolchain;
pub use error::InstallError;
use error::files;
use part::{Kind, Part};

/// Prefix of incomplete directories; discovery ignores them.
const STAGING: &str = ".new-";

/// Prefix of directories that have been replaced.
const REPLACED: &str = ".old-";

/// The parts to install, and where.
#[derive(Debug, Clone, Default)]
pub struct InstallRequest {
    /// Path of this program. Its compile child loads an installed library to check that the library
    /// works.
    pub program: PathBuf,
    /// The program's cache; parts are stored in its directory `toolchain`.
    pub cache_dir: PathBuf,
    /// Major versions of CUDA for which NVRTC is installed: 12, 13.
    pub cuda: Vec<u32>,
    /// Whether to install nvcc of CUDA 13. No wheels of nvcc exist for CUDA 12.
    pub nvcc: bool,
    pub triton: bool,
    /// Whether to install PyTorch with all its dependencies.
    pub torch: bool,
    /// Interpreter that the configuration names. Packages for this interpreter would be used
    /// instead of those that are installed here.
    pub named_python: Option<PathBuf>,
}

/// A part to install, and the interpreter whose pip installs it.
struct Planned {
    part: Part,
    python: PathBuf,
}

/// Installs the requested parts, and replaces those that already exist. `progress` receives one
/// line at a time. Returns the toolchain that is found afterwards.
///
/// # Errors
/// Returns what is missing on this machine or in a download. Parts before the failed one stay
/// installed.
pub fn install(
    request: &InstallRequest,
    progress: &mut dyn FnMut(&str),
) -> Result<Toolchain, InstallError> {
    // Impossible requests fail before anything is downloaded.
    let planned = plan(request)?;
    let root = request.cache_dir.join("toolchain");
    let root = std::path::absolute(&root).unwrap_or(root);
    fs::create_dir_all(&root).map_err(files("create", &root))?;
    let _alone = alone(&root, progress)?;
    for Planned { part, python } in &planned {
        progress(&format!("installing {} into {}", part.name, root.display()));
        install_part(request, part, python, &root, progress)?;
    }
    let search = ToolchainSearch {
        cache_dir: request.cache_dir.clone(),
        python: request.named_python.clone(),
        ..ToolchainSearch::default()
    };
    Ok(super::discover(&search))
}

fn plan(request: &InstallRequest) -> Result<Vec<Planned>, InstallError> {
    let mut parts = Vec::new();
    for major in &request.cuda {
        parts.push(Part::nvrtc(*major)?);
    }
    if request.nvcc {
        parts.push(Part::nvcc());
    }
    let mut planned = Vec::new();
    if !parts.is_empty() {
        let python = pip::pythons().find(|python| pip::has_pip(python));
        let python = python.ok_or(InstallError::NoPip)?;
        planned.extend(parts.into_iter().map(|part| Planned { part, python: python.clone() }));
    }
    for (wanted, title, part) in
        [(request.triton, "Triton", Part::triton()), (request.torch, "PyTorch", Part::torch())]
    {
        if !wanted {
            continue;
        }
        if let Some(python) = &request.named_python {
            let (python, packages) = (python.clone(), part.packages.join(" "));
            return Err(InstallError::Named { python, title, packages });
        }
        let python = triton::python(&part, title)?;
        planned.push(Planned { part, python });
    }
    Ok(planned)
}

/// Waits until no other process installs into this directory, and removes files of installations
/// that were killed.
fn alone(root: &Path, progress: &mut dyn FnMut(&str)) -> Result<File, InstallError> {
    let lock = File::open(root).map_err(files("open", root))?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        progress("another installation is running here: waiting until it ends");
        if flock(&lock, FlockOperation::LockExclusive).is_err() {
            // On a file system without locks, the files may belong to a running installation.
            return Ok(lock);
        }
    }
    for entry in fs::read_dir(root).map_err(files("list", root))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(STAGING) || name.starts_with(REPLACED) {
            fs::remove_dir_all(entry.path()).map_err(files("remove", &entry.path()))?;
        }
    }
    Ok(lock)
}

fn install_part(
    request: &InstallRequest,
    part: &Part,
    python: &Path,
    root: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(), InstallError> {
    // The name hides the directory from discovery. It is on the same file system as the final
    // directory.
    let staging = tempfile::Builder::new().prefix(STAGING).tempdir_in(root);
    let staging = staging.map_err(files("create a directory in", root))?;
    let folder = |name: &str| {
        let path = staging.path().join(name);
        fs::create_dir(&path).map_err(files("create", &path))?;
        // The service may run as a different user from the installer.
        let everybody = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&path, everybody).map_err(files("set the permissions of", &path))?;
        Ok(path)
    };
    let (fresh, temporary) = (folder("part")?, folder("tmp")?);
    pip::download(python, part, &fresh, &temporary, progress)?;
    progress(&format!("checking {}", part.name));
    let place = root.join(&part.name);
    match part.kind {
        Kind::Nvrtc | Kind::Nvcc => {
            cuda::tidy(&fresh).map_err(files("tidy up", &fresh))?;
            cuda::verify(request, part, &fresh)?;
        }
        Kind::Triton => triton::finish(python, part, &fresh, &place, &temporary)?,
        Kind::Torch => torch::finish(python, part, &fresh, &place, &temporary)?,
    }
    if place.exists() {
        let old = tempfile::Builder::new().prefix(REPLACED).tempdir_in(root);
        let old = old.map_err(files("create a directory in", root))?;
        fs::rename(&place, old.path().join("old")).map_err(files("replace", &place))?;
    }
    fs::rename(&fresh, &place).map_err(files("move the download to", &place))?;
    progress(&format!("installed {}", place.display()));
    Ok(())
}

#[cfg(test)]
#[path = "install_tests.rs"]
mod tests;
