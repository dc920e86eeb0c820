//! Finds Triton or another package. The search order is: the configured interpreter, an
//! installation of this program in a configured directory, the active environment, this program's
//! installation in the cache, and last the shell's search path.
//!
//! Starting an interpreter takes longer than the rest of the search. An interpreter that is not
//! configured is therefore queried only if the package seems to be installed for it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::super::discover::ToolchainSearch;
use super::super::types::PartOrigin;
use super::ask::Answer;
use super::types::{NoTriton, NoTritonCode, Package, TRITON, TritonInstall};
use super::{ask, own};

/// Environment variable that names the interpreter.
pub const PYTHON_VARIABLE: &str = "WARPGAUGE_PYTHON";

/// Oldest and newest supported version of Triton, major and minor.
pub const TRITON_VERSIONS: ((u32, u32), (u32, u32)) = ((3, 4), (3, 9));

/// Maximum number of interpreters on the search path that are considered.
const MAX_ON_PATH: usize = 8;

/// Maximum number of entries read from one directory.
const MAX_ENTRIES: usize = 4096;

/// Converts an interpreter's answer to an installation of a package.
pub(in super::super) type Install<T> = fn(&Path, &Answer, PartOrigin) -> Result<T, NoTriton>;

/// Searches for Triton in all directories.
pub(in super::super) fn find(search: &ToolchainSearch) -> Result<TritonInstall, NoTriton> {
    find_package(search, &TRITON, ask::install)
        .map_err(|why| why.unwrap_or_else(NoTriton::not_found))
}

/// Searches for a package in all directories. Fails with the error of the first directory that
/// contains the package, or with `None` if none does.
pub(in super::super) fn find_package<T>(
    search: &ToolchainSearch,
    package: &Package,
    install: Install<T>,
) -> Result<T, Option<NoTriton>> {
    let named = search.python.as_ref().map(|path| path.as_os_str().to_owned());
    let named = named.or_else(|| env::var_os(PYTHON_VARIABLE)).filter(|name| !name.is_empty());
    find_among(named, search, &Surroundings::here(), package, install)
}

/// Active Python environments, and the search path of this process.
#[derive(Debug, Default)]
struct Surroundings {
    /// Root directories of active environments.
    active: Vec<PathBuf>,
    /// Directories of the shell's search path.
    path: Vec<PathBuf>,
}

impl Surroundings {
    fn here() -> Self {
        let active = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(env::var_os);
        let path = env::var_os("PATH").unwrap_or_default();
        Self {
            active: active.map(PathBuf::from).filter(|root| root.is_absolute()).collect(),
            path: env::split_paths(&path).filter(|dir| dir.is_absolute()).collect(),
        }
    }
}

fn find_among<T>(
    named: Option<OsString>,
    search: &ToolchainSearch,
    around: &Surroundings,
    package: &Package,
    install: Install<T>,
) -> Result<T, Option<NoTriton>> {
    let found_by = |python: &Path, source| install(python, &ask::ask(python, None)?, source);
    if let Some(name) = named {
        // A configured interpreter is the only candidate. If it is unsuitable, the search fails
        // with the reason.
        let python = located(&name, around);
        return python.and_then(|python| found_by(&python, PartOrigin::Explicit)).map_err(Some);
    }
    let is_for = |place: &PathBuf| own::is_own(place) && place.join(package.name).is_dir();
    let explicit = search.named().into_iter().filter(is_for);
    let own = search.cache_dir.join("toolchain").join(package.name);
    let active = around.active.iter().map(|root| (root.join("bin/python3"), PartOrigin::Venv));
    let on_path = around.path.iter().map(|dir| dir.join("python3")).filter(|path| path.is_file());
    let on_path = on_path.take(MAX_ON_PATH).map(|python| (python, PartOrigin::Path));
    let likely = |(python, source): (PathBuf, PartOrigin)| {
        may_have(&python, package).then(|| found_by(&python, source))
    };
    let found_in = |place: &Path, source| {
        let (python, answer) = own::answer(place, package)?;
        install(&python, &answer, source)
    };
    let attempts = explicit
        .map(|place| found_in(&place, PartOrigin::Explicit))
        .chain(active.filter_map(likely))
        .chain(own.is_dir().then(|| found_in(&own, PartOrigin::Cache)))
        .chain(on_path.filter_map(likely));
    let mut first = None;
    for attempt in attempts {
        match attempt {
            Ok(found) => return Ok(found),
            // The interpreter cannot import a folder with this name, so the folder is not the
            // package.
            Err(why) if why.code == NoTritonCode::NotInstalled => {}
            Err(why) => first = first.or(Some(why)),
        }
    }
    Err(first)
}

/// Returns a package that this program installed in `directory`.
pub(in super::super) fn find_in<T>(
    directory: &Path,
    package: &Package,
    install: Install<T>,
) -> Result<T, NoTriton> {
    let (python, answer) = own::answer(directory, package)?;
    install(&python, &answer, PartOrigin::Cache)
}

/// Returns the interpreter that `name` refers to, which is a path or a name on the search path.
fn located(name: &OsString, around: &Surroundings) -> Result<PathBuf, NoTriton> {
    let path = Path::new(name);
    located_in(path, &around.path).ok_or_else(|| {
        let what = match path.components().count() {
            1 => "was configured, but is not on the search path (PATH)",
            _ => "was configured, but does not exist",
        };
        NoTriton::interpreter(path, what)
    })
}

/// Returns the absolute path of a program, given a path or a name on the search path.
pub(in super::super) fn located_on_path(name: &Path) -> Option<PathBuf> {
    located_in(name, &Surroundings::here().path)
}

fn located_in(name: &Path, directories: &[PathBuf]) -> Option<PathBuf> {
    let found = match name.components().count() {
        1 => directories.iter().map(|directory| directory.join(name)).find(|path| path.is_file()),
        _ => std::path::absolute(name).ok(),
    };
    found.filter(|path| path.is_file())
}

/// Returns whether the package is in a directory that an interpreter searches for packages. The
/// interpreter is not started.
fn may_have(python: &Path, package: &Package) -> bool {
    let Ok(real) = python.canonicalize() else { return false };
    let prefix = |path: &Path| path.ancestors().nth(2).map(Path::to_owned);
    if ask::is_script(&real) {
        return match real.parent().filter(|dir| dir.ends_with("shims")).and_then(Path::parent) {
            // pyenv, asdf and similar tools have one script for all interpreters that they manage.
            Some(manager) => ["versions", "installs/python"]
                .iter()
                .flat_map(|folder| entries(&manager.join(folder)))
                .any(|prefix| has_package(&prefix, package)),
            None => true,
        };
    }
    // Debian's Python has pip's packages in /usr/local.
    let local = Some(PathBuf::from("/usr/local")).filter(|_| real.starts_with("/usr/bin"));
    [prefix(python), prefix(&real), local]
        .iter()
        .flatten()
        .any(|prefix| has_package(prefix, package))
}

/// Returns whether an installation contains files that look like the package.
fn has_package(prefix: &Path, package: &Package) -> bool {
    let is_python = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3"))
    };
    let libraries = ["lib", "lib64"].map(|name| entries(&prefix.join(name)));
    let mut folders =
        libraries.into_iter().flatten().filter(is_python).flat_map(|python| {
            ["site-packages", "dist-packages"].map(|folder| python.join(folder))
        });
    let is_it = |path: &PathBuf| {
        path.file_name().is_some_and(|file| {
            let file = file.to_string_lossy();
            file == package.name || (file.contains(package.name) && file.ends_with(".dist-info"))
        })
    };
    folders.any(|folder| folder.join(package.name).is_dir() || entries(&folder).iter().any(is_it))
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(listing) = fs::read_dir(directory) else { return Vec::new() };
    listing.flatten().take(MAX_ENTRIES).map(|entry| entry.path()).collect()
}

#[cfg(test)]
#[path = "find_tests.rs"]
mod tests;
