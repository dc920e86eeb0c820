//! Finds compilers by examining files, without loading a library.
//!
//! Loading NVRTC maps 140 MB, so only compile children load it.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};

use super::types::{NvccInstall, NvrtcInstall, PartOrigin, Toolchain, ToolkitProgram};
use super::{cupti, files, headers, torch, triton};
use warpgauge_device::libraries;
use warpgauge_sandbox::program::{ChildProgram, Environment};

/// Environment variable that contains explicit directories, separated by colons.
pub const TOOLCHAIN_VARIABLE: &str = "WARPGAUGE_TOOLCHAIN";

/// Maximum number of entries read from one directory.
const MAX_ENTRIES: usize = 4096;

/// Where to search for compilers.
#[derive(Debug, Clone, Default)]
pub struct ToolchainSearch {
    /// Directories from the configuration, separated by colons. They are searched first. If this is
    /// not set, `WARPGAUGE_TOOLCHAIN` is used.
    pub explicit: Option<PathBuf>,
    /// The program's cache directory, to which `install` writes toolchains.
    pub cache_dir: PathBuf,
    /// The only Python interpreter whose Triton may be used. It is a path, or a name on `PATH`. If
    /// this is not set, `WARPGAUGE_PYTHON` is used.
    pub python: Option<PathBuf>,
}

impl ToolchainSearch {
    /// Returns the explicit directories, each followed by the installations in it.
    pub(super) fn named(&self) -> Vec<PathBuf> {
        self.listed().iter().flat_map(|path| with_installations(path)).collect()
    }

    fn listed(&self) -> Vec<PathBuf> {
        let list = self.explicit.as_ref().map(|path| path.as_os_str().to_owned());
        let list = list.or_else(|| env::var_os(TOOLCHAIN_VARIABLE));
        let paths = list.iter().flat_map(env::split_paths);
        paths.filter(|path| !path.as_os_str().is_empty()).collect()
    }
}

/// Returns a directory that is configured as a toolchain, and the installations in it. There are
/// installations if `warpgauge toolchain install` wrote to the directory or a child of it.
fn with_installations(path: &Path) -> Vec<PathBuf> {
    let visible =
        |path: &PathBuf| path.file_name().is_some_and(|n| !n.to_string_lossy().starts_with('.'));
    let inside = entries(path).into_iter().chain(entries(&path.join("toolchain")));
    let inside = inside.filter(|path| visible(path) && has_packages(path));
    std::iter::once(path.to_owned()).chain(inside).collect()
}

/// Returns whether a directory contains Python packages with a compiler.
fn has_packages(path: &Path) -> bool {
    ["nvidia", "triton", "torch"].iter().any(|package| path.join(package).is_dir())
}

/// Returns whether a directory or file that is configured as a toolchain contains any part of a
/// toolchain.
fn holds_a_part(path: &Path) -> bool {
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        name.is_some_and(|name| name.starts_with("libnv") || name.starts_with("libcu"))
    };
    path.is_file()
        || has_packages(path)
        || with_installations(path).len() > 1
        || toolkit_roots(path).iter().any(|root| root.join("bin").is_dir())
        || library_dirs(path).iter().flat_map(|dir| entries(dir)).any(|file| is_ours(&file))
}

/// A directory that may contain a toolchain: a toolkit's root, a `site-packages` directory, or a
/// library directory.
#[derive(Debug, Clone)]
struct Place {
    path: PathBuf,
    source: PartOrigin,
}

/// Searches all directories, the explicit ones first.
pub fn discover(search: &ToolchainSearch) -> Toolchain {
    for path in search.listed().iter().filter(|path| !holds_a_part(path)) {
        tracing::warn!(
            path = %path.display(),
            "this directory is configured as a toolchain (compile.toolchain, {TOOLCHAIN_VARIABLE}) but contains no part of one: \
             name a toolkit's root, a `site-packages`, or a directory that `warpgauge toolchain install` fills"
        );
    }
    let mut found = discover_at(&places(search));
    match triton::find(search) {
        Ok(install) => found.triton = Some(install),
        Err(why) => found.no_triton = Some(why),
    }
    match torch::find(search) {
        Ok(install) => {
            // PyTorch's wheels install libraries, too.
            let beside = library_dirs(&install.site_packages);
            found.libraries.extend(files::find(beside, libraries::major_version));
            found.torch = Some(install);
        }
        Err(why) => found.no_torch = Some(why),
    }
    found.borrow_from_triton();
    found
}

/// Searches a single directory.
pub(super) fn discover_in(directory: &Path) -> Toolchain {
    discover_at(&[Place { path: directory.to_owned(), source: PartOrigin::Cache }])
}

fn discover_at(places: &[Place]) -> Toolchain {
    let mut nvrtc: Vec<NvrtcInstall> = Vec::new();
    for place in places {
        nvrtc.extend(nvrtc_in(place));
    }
    let lenders: Vec<PathBuf> =
        places.iter().flat_map(|place| toolkit_roots(&place.path)).collect();
    nvrtc.iter_mut().for_each(|install| headers::complete(install, &lenders));
    // If several installations have the same version, the first complete one takes precedence, or
    // otherwise the first.
    nvrtc.sort_by_key(|install| (std::cmp::Reverse(install.version), !install.lacks.is_empty()));
    nvrtc.dedup_by_key(|install| install.version);
    let tool = |name: &str, extra: &[PathBuf]| {
        program(places, name, extra)
            .map(|(path, _)| ToolkitProgram { version: installed_version(&path), path })
    };
    let roots: Vec<&Path> = places.iter().map(|place| place.path.as_path()).collect();
    Toolchain {
        nvrtc,
        nvcc: nvcc_in(places),
        cuobjdump: tool("cuobjdump", &[]),
        nvdisasm: tool("nvdisasm", &[]),
        ncu: tool("ncu", &nsight("/opt/nvidia/nsight-compute", "")),
        nsys: tool("nsys", &nsight("/opt/nvidia/nsight-systems", "bin")),
        compute_sanitizer: tool("compute-sanitizer", &[]),
        cupti: cupti::find(&roots, library_dirs),
        libraries: files::find(
            roots.iter().flat_map(|root| library_dirs(root)),
            libraries::major_version,
        ),
        triton: None,
        no_triton: None,
        torch: None,
        no_torch: None,
    }
}

fn places(search: &ToolchainSearch) -> Vec<Place> {
    let mut places = Vec::new();
    places.extend(
        search.named().into_iter().map(|path| Place { path, source: PartOrigin::Explicit }),
    );
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        if let Some(root) = env::var_os(variable).map(PathBuf::from) {
            let site_packages = site_packages(&root);
            places.extend(site_packages.map(|path| Place { path, source: PartOrigin::Venv }));
            places.push(Place { path: root, source: PartOrigin::Venv });
        }
    }
    let own = env::current_exe().ok().and_then(|program| site_packages_of(&program));
    places.extend(own.map(|path| Place { path, source: PartOrigin::Venv }));
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        if let Some(path) = env::var_os(variable).map(PathBuf::from) {
            places.push(Place { path, source: PartOrigin::CudaHome });
        }
    }
    let local = entries(Path::new("/usr/local"))
        .into_iter()
        .filter(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("cuda")));
    places.extend(local.map(|path| Place { path, source: PartOrigin::UsrLocal }));
    places.extend(loader_dirs().into_iter().map(|path| Place { path, source: PartOrigin::Path }));
    // A name with a leading dot belongs to a part that is being installed or removed.
    let hidden =
        |path: &PathBuf| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
    // PyTorch's CUDA files are only for PyTorch: its headers are only a part of a toolkit's, and
    // would hide the complete ones.
    let whole = |path: &PathBuf| !hidden(path) && !path.ends_with(torch::TORCH.name);
    let cached = entries(&search.cache_dir.join("toolchain")).into_iter().filter(whole);
    places.extend(cached.map(|path| Place { path, source: PartOrigin::Cache }));
    places.retain(|place| place.path.is_absolute() && place.path.exists());
    places
}

/// Returns the `site-packages` directory of the wheel that contains this program. The wheel's
/// dependencies include a compiler. The Python environment need not be active.
fn site_packages_of(program: &Path) -> Option<PathBuf> {
    let directory = program.parent()?;
    directory
        .ends_with("warpgauge/_program")
        .then(|| directory.ancestors().nth(2))?
        .map(Path::to_owned)
}

fn site_packages(root: &Path) -> impl Iterator<Item = PathBuf> {
    let pythons = entries(&root.join("lib")).into_iter();
    pythons.map(|python| python.join("site-packages")).filter(|path| path.is_dir())
}

/// Returns the entries of a directory, sorted by name; empty if it cannot be read.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(listing) = directory.read_dir() else { return Vec::new() };
    let mut found: Vec<PathBuf> =
        listing.flatten().take(MAX_ENTRIES).map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// Returns the directories in which the loader finds NVIDIA's libraries: those in
/// `LD_LIBRARY_PATH`, then those in its cache.
fn loader_dirs() -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = Vec::new();
    if let Some(list) = env::var_os("LD_LIBRARY_PATH") {
        dirs.extend(env::split_paths(&list).filter(|p| p.is_absolute()));
    }
    let listing = ["/sbin/ldconfig", "/usr/sbin/ldconfig"]
        .iter()
        .find_map(|program| asked(program).arg("-p").to_blocking().output().ok());
    if let Some(listing) = listing {
        let text = String::from_utf8_lossy(&listing.stdout).into_owned();
        dirs.extend(ldconfig_dirs(&text));
    }
    dirs
}

/// Returns the directories in the lines of `ldconfig -p` that name NVIDIA's libraries.
fn ldconfig_dirs(listing: &str) -> Vec<PathBuf> {
    let wanted = ["libnvrtc.so", "libcupti.so", "libcusparse.so", "libcublas.so"];
    let is_wanted = |line: &&str| wanted.iter().any(|name| line.trim_start().starts_with(name));
    let paths = listing.lines().filter(is_wanted);
    let paths =
        paths.filter_map(|line| line.split_once(" => ")).map(|(_, path)| Path::new(path.trim()));
    let unique: BTreeSet<PathBuf> = paths.filter_map(Path::parent).map(Path::to_owned).collect();
    unique.into_iter().collect()
}

/// Returns the directories of an installation that may contain libraries.
pub(crate) fn library_dirs(place: &Path) -> Vec<PathBuf> {
    let mut dirs = vec![
        place.to_owned(),
        place.join("lib64"),
        place.join("lib"),
        place.join("targets/x86_64-linux/lib"),
    ];
    for package in entries(&place.join("nvidia")) {
        dirs.push(package.join("lib"));
    }
    dirs.retain(|dir| dir.is_dir());
    dirs
}

fn nvrtc_in(place: &Place) -> Vec<NvrtcInstall> {
    if place.path.is_file() {
        return nvrtc_at(&place.path, place).into_iter().collect();
    }
    let dirs = library_dirs(&place.path);
    let libraries = dirs.iter().flat_map(|dir| entries(dir)).filter(|path| is_nvrtc(path));
    libraries.filter_map(|library| nvrtc_at(&library, place)).collect()
}

/// Returns whether a file name has the form `libnvrtc.so.13`, with only the major version. Such a
/// name is the library's SONAME.
fn is_nvrtc(path: &Path) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    name.strip_prefix("libnvrtc.so.")
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

fn nvrtc_at(library: &Path, place: &Place) -> Option<NvrtcInstall> {
    let real = library.canonicalize().ok()?;
    let directory = real.parent()?;
    let name = library.file_name()?.to_string_lossy().into_owned();
    let major: u32 = name.strip_prefix("libnvrtc.so.")?.split('.').next()?.parse().ok()?;
    let real_name = real.file_name()?.to_string_lossy().into_owned();
    let from_name = real_name.strip_prefix("libnvrtc.so.").filter(|v| v.contains('.'));
    let full_version = from_name
        .map(str::to_owned)
        .or_else(|| wheel_version(directory, "nvidia_cuda_nvrtc", major));
    let version = full_version
        .as_deref()
        .and_then(major_minor)
        .or_else(|| builtins_version(directory, major))?;
    let include_dirs =
        library.parent().and_then(Path::parent).map(headers::include_dirs).unwrap_or_default();
    let path = std::path::absolute(library).ok()?;
    let source = place.source;
    Some(NvrtcInstall { path, version, full_version, source, include_dirs, lacks: Vec::new() })
}

fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Returns the version in the file name of the built-ins library beside NVRTC, e.g. 13.5.
fn builtins_version(directory: &Path, major: u32) -> Option<(u32, u32)> {
    entries(directory).iter().rev().find_map(|path| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        let version = major_minor(name.strip_prefix("libnvrtc-builtins.so.")?)?;
        (version.0 == major).then_some(version)
    })
}

/// Returns the version in the directory name of the wheel's metadata:
/// `nvidia_cuda_nvrtc-13.5.37.dist-info`. It is beside the `nvidia` directory that contains the
/// library.
fn wheel_version(inside: &Path, package: &str, major: u32) -> Option<String> {
    let nvidia = inside.ancestors().find(|dir| dir.file_name().is_some_and(|n| n == "nvidia"))?;
    entries(nvidia.parent()?).iter().rev().find_map(|path| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        let (wheel, version) = name.strip_suffix(".dist-info")?.split_once('-')?;
        let suffixed = wheel.strip_prefix(package)?;
        let fits = suffixed.is_empty() || suffixed.starts_with("_cu");
        (fits && major_minor(version)?.0 == major).then(|| version.to_owned())
    })
}

/// Returns the root directories of a toolkit, which contain `bin`, `include` and so on.
pub(crate) fn toolkit_roots(place: &Path) -> Vec<PathBuf> {
    let mut roots = vec![place.to_owned()];
    roots.extend(entries(&place.join("nvidia")));
    roots.retain(|root| root.is_dir());
    roots
}

fn program(places: &[Place], name: &str, extra: &[PathBuf]) -> Option<(PathBuf, PartOrigin)> {
    let in_places = places.iter().flat_map(|place| {
        let roots = toolkit_roots(&place.path);
        roots.into_iter().map(move |root| (root.join("bin").join(name), place.source))
    });
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<_> =
        env::split_paths(&path).map(|dir| (dir.join(name), PartOrigin::Path)).collect();
    let extra = extra.iter().map(|dir| (dir.join(name), PartOrigin::Path));
    let found = in_places.chain(on_path).chain(extra).find(|(path, _)| is_program(path));
    found.filter(|(path, _)| path.is_absolute())
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Returns the version directories of a tool that is installed below /opt, newest first.
fn nsight(root: &str, inside: &str) -> Vec<PathBuf> {
    let versions = entries(Path::new(root)).into_iter().rev();
    versions.map(|version| version.join(inside)).collect()
}

/// Returns the version that a path contains, such as `/opt/nvidia/nsight-compute/2025.3.1/ncu` or
/// `/usr/local/cuda-12.9/…`.
fn installed_version(program: &Path) -> Option<String> {
    let real = program.canonicalize().ok()?;
    real.ancestors().skip(1).find_map(|dir| {
        let name = dir.file_name()?.to_string_lossy().into_owned();
        let version = name.rsplit('-').next()?.to_owned();
        let numeric =
            version.contains('.') && version.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        numeric.then_some(version)
    })
}

fn nvcc_in(places: &[Place]) -> Option<NvccInstall> {
    let (path, source) = program(places, "nvcc", &[])?;
    let path = path.canonicalize().unwrap_or(path);
    let root = path.parent()?.parent()?.to_owned();
    let version = (10..=99)
        .rev()
        .find_map(|major| wheel_version(&path, "nvidia_cuda_nvcc", major))
        .or_else(|| installed_version(&path))
        .or_else(|| nvcc_says(&path))
        .unwrap_or_else(|| "unknown".into());
    Some(NvccInstall { path, version, source, include_dirs: headers::include_dirs(&root) })
}

/// Returns the command that starts a program of this machine for a query.
fn asked(program: impl Into<PathBuf>) -> ChildProgram {
    ChildProgram::new(program, Environment::Cuda)
}

/// Returns the version that `nvcc --version` prints, for an installation whose path does not
/// contain the version.
fn nvcc_says(nvcc: &Path) -> Option<String> {
    let output = asked(nvcc).arg("--version").to_blocking().output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, rest) = text.split_once("release ")?;
    rest.split(',').next().map(|version| version.trim().to_owned())
}

#[cfg(test)]
#[path = "discover_tests.rs"]
mod tests;
